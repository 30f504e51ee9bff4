"""A provider of external storage in a dozen lines: volumes are files of a directory.

It notes each call with what it was told, and keeps what is open and attached beside the volumes.
"""

from pathlib import Path

_BEGINNING = r"""#!/bin/sh -e
cd "$(dirname "$0")"
echo "$(basename "$0") $(env | grep -E '^(VOL|EXTP)_' | sort | tr '\n' ' ')" >> calls
volume="$PWD/volumes/$VOL_NAME"
"""
_SCRIPTS = {
    "create": '[ ! -e "$volume" ]\ntruncate -s "${VOL_SIZE}M" "$volume"',
    "attach": 'ls "$volume"',
    "detach": "",
    "remove": 'rm "$volume"',
    "grow": '[ -e "$volume" ]\ntruncate -s "${VOL_NEW_SIZE}M" "$volume"',
    "setinfo": "",
    "snapshot": 'cp "$volume" "$PWD/volumes/$VOL_SNAPSHOT_NAME"',
    "verify": "",
    "open": "",
    "close": "",
}


class Shelf:
    """The provider “shelf”, below a directory where providers are looked for."""

    def __init__(self, place: Path) -> None:
        self.directory = place / "shelf"
        (self.directory / "volumes").mkdir(parents=True)
        for name, does in _SCRIPTS.items():
            self.write(name, does)
        (self.directory / "parameters.list").write_text(
            "row  in which of the shelf's rows it is\nlabel\n"
        )

    def write(self, name: str, does: str) -> None:
        """Have a script do something else."""
        path = self.directory / name
        path.write_text(_BEGINNING + does + "\n")
        path.chmod(0o755)

    @property
    def volumes(self) -> list[str]:
        return sorted(path.name for path in (self.directory / "volumes").iterdir())

    def calls(self) -> list[str]:
        """Return what was run, with what it was told, since this was asked last."""
        path = self.directory / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [line.strip() for line in lines]
