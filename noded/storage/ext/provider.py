"""Providers of external storage: directories with Ganeti's scripts, put there by root.

Source: ganeti-extstorage-interface(7) of Ganeti 3.0.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from common.errors import InvalidRequest, NodeFailure
from noded.system.roots_scripts import check_program, check_roots_own, parse_parameters

PARAMETERS = "parameters.list"

_NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9_.+-]{0,63}")


class Script(StrEnum):
    """What a provider can be asked, in the order of Ganeti's documentation."""

    CREATE = "create"
    ATTACH = "attach"
    DETACH = "detach"
    REMOVE = "remove"
    GROW = "grow"
    SETINFO = "setinfo"
    VERIFY = "verify"
    SNAPSHOT = "snapshot"
    OPEN = "open"
    CLOSE = "close"


OPTIONAL = frozenset({Script.SNAPSHOT, Script.OPEN, Script.CLOSE})


@dataclass(frozen=True, slots=True)
class Provider:
    """One that can be used."""

    name: str
    directory: Path
    scripts: frozenset[Script]
    parameters: tuple[tuple[str, str], ...]  # name and description

    def script(self, script: Script) -> str:
        return str(self.directory / script)


def check_name(name: str) -> None:
    """Refuse what would be no directory of its own.

    Raises:
        InvalidRequest: says what a name is.
    """
    if not _NAME.fullmatch(name):
        raise InvalidRequest(f"“{name}” is no name of a provider: letters, digits and “_+-.”.")


def find_provider(name: str, search_path: Sequence[Path]) -> Provider:
    """Return the first provider of this name.

    Raises:
        InvalidRequest: it is no name.
        NodeFailure: there is none, or a part of it is missing, or others than root can change it.
    """
    check_name(name)
    for place in search_path:
        if (directory := place / name).is_dir():
            return read_provider(directory)
    looked = ", ".join(map(str, search_path))
    raise NodeFailure(
        f"This node has no provider “{name}” of external storage; they are looked for in {looked}.",
        provider=name,
    )


def providers(search_path: Sequence[Path]) -> Iterator[Path]:
    """Yield the directories of all providers, those that cannot be used as well, by name."""
    found: dict[str, Path] = {}
    for place in search_path:
        for directory in place.iterdir() if place.is_dir() else ():
            if directory.is_dir() and _NAME.fullmatch(directory.name):
                found.setdefault(directory.name, directory)
    yield from (found[name] for name in sorted(found))


def read_provider(directory: Path) -> Provider:
    """Look at all parts of a provider.

    Raises:
        NodeFailure: as ``find_provider``.
    """
    check_roots_own(directory)
    scripts = frozenset(script for script in Script if _is_there(directory, script))
    path = directory / PARAMETERS
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise NodeFailure(f"Cannot read {path}: {error.strerror}.", path=str(path)) from error
    return Provider(directory.name, directory, scripts, parse_parameters(text))


def _is_there(directory: Path, script: Script) -> bool:
    path = directory / script
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        if script in OPTIONAL:
            return False
        raise NodeFailure(
            f"The provider {directory} has no script “{script}”.", path=str(path)
        ) from error
    check_program(path, mode)
    return True
