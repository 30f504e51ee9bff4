"""Write the commands of an installed Gantry to a directory.

Those that pip makes import more, and can be led astray by PYTHONPATH and the like.
"""

import argparse
from importlib.metadata import distribution
from pathlib import Path

TEXT = """\
#!{python} -I
import sys

from {module} import {function}

sys.exit({function}())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bindir", type=Path)
    parser.add_argument("python", help="which runs them; a path")
    options = parser.parse_args()
    write_launchers(options.bindir, options.python)


def write_launchers(bindir: Path, python: str) -> None:
    """Write one for each command of the Gantry that this interpreter finds."""
    for entry in distribution("gantry").entry_points.select(group="console_scripts"):
        path = bindir / entry.name
        path.write_text(
            TEXT.format(python=python, module=entry.module, function=entry.attr), encoding="utf-8"
        )
        path.chmod(0o755)


if __name__ == "__main__":
    main()
