"""``python -m deploy.completion OUTDIR``: write what each shell reads, below OUTDIR/share."""

import argparse
from pathlib import Path

from deploy.completion.bash import bash_script
from deploy.completion.fish import fish_script
from deploy.completion.table import programs
from deploy.completion.zsh import zsh_script


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("outdir", type=Path, metavar="OUTDIR", help="is made if it is not there")
    outdir = parser.parse_args().outdir
    for name, text in scripts().items():
        path = outdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)


def scripts() -> dict[str, str]:
    """Return every file, by its path below the directory for software of this machine."""
    table = programs()
    made = {"share/zsh/site-functions/_gantry": zsh_script(table)}
    for program in table:  # each shell looks for a file of the command's name
        made[f"share/bash-completion/completions/{program}"] = bash_script(table)
        made[f"share/fish/vendor_completions.d/{program}.fish"] = fish_script(program, table)
    return made


if __name__ == "__main__":
    main()
