"""``deploy/manual OUTDIR``: write one page a program."""

import argparse
from pathlib import Path

from deploy.manpages.pages import pages


def main() -> None:
    parser = argparse.ArgumentParser(prog="deploy/manual", description=__doc__)
    parser.add_argument("outdir", type=Path, metavar="OUTDIR", help="is made if it is not there")
    outdir = parser.parse_args().outdir
    outdir.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (outdir / name).write_text(text, encoding="utf-8")
        print(outdir / name)


if __name__ == "__main__":
    main()
