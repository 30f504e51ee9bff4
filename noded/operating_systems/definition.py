"""Definitions of operating systems: directories of scripts that root has put on a node.

Source: ganeti-os-interface(7) of Ganeti 3.0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.os_name import read_os_name
from common.noderpc.operating_systems import DefinitionReport, Script
from noded.system.roots_scripts import check_program, check_roots_own, parse_parameters

API_FILE = "ganeti_api_version"
SUPPORTED = frozenset({10, 15, 20})
WITH_VARIANTS, WITH_PARAMETERS = 15, 20  # the versions they came with
UNTRUSTED = "create_untrusted"

_LARGEST = 64 << 10  # of a list, in bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One that can be used.

    Attributes:
        name: without a variant.
        path: its directory; empty where it is a part of noded.
        api_versions: that it declares.
        scripts: the command line of each that it has.
        variants: that it declares, the usual one first.
        parameters: names and descriptions.
        hypervisors: those it is for; none: any.
        is_trusted: its script may run as root.
        knows_formats: its scripts look in which format a disk is; others take it byte for byte.
    """

    name: str
    path: str = ""
    api_versions: tuple[int, ...]
    scripts: Mapping[Script, tuple[str, ...]]
    variants: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    hypervisors: tuple[str, ...] = ()
    is_trusted: bool = True
    knows_formats: bool = False

    @property
    def api_version(self) -> int:
        """Return the newest that both sides know."""
        return max(SUPPORTED.intersection(self.api_versions))


def find_definition(
    name: str, search_path: Sequence[Path], built_in: Sequence[Definition] = ()
) -> Definition:
    """Return the first definition of this name, without a variant.

    Raises:
        NodeFailure: there is none, or it cannot be used.
    """
    for place in search_path:
        if (directory := place / name).is_dir():
            return read_definition(directory)
    for definition in built_in:
        if definition.name == name:
            return definition
    looked = ", ".join(map(str, search_path))
    raise NodeFailure(
        f"This node has no operating system “{name}”; definitions are looked for in {looked}.",
        os=name,
    )


def reports(search_path: Sequence[Path]) -> Iterator[DefinitionReport]:
    """Yield what others are told of all definitions, by name, whole or not."""
    for directory, hidden in _directories(search_path):
        shadowed = tuple(map(str, hidden))
        try:
            yield replace(report_of(read_definition(directory)), shadowed=shadowed)
        except NodeFailure as error:
            yield DefinitionReport(
                name=directory.name, path=str(directory), problem=error.message, shadowed=shadowed
            )


def _directories(search_path: Sequence[Path]) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Yield the directories of all definitions by name, and those that each of them hides."""
    found: dict[str, list[Path]] = {}
    for place in search_path:
        for directory in sorted(place.iterdir()) if place.is_dir() else ():
            if directory.is_dir() and _is_name(directory.name):
                found.setdefault(directory.name, []).append(directory)
    for name in sorted(found):
        first, *hidden = found[name]
        yield first, tuple(hidden)


def read_definition(directory: Path) -> Definition:
    """Look at all parts of a definition.

    Raises:
        NodeFailure: a part is missing or makes no sense, or others than root can change it.
    """
    check_roots_own(directory)
    versions = _versions(directory)
    scripts = {
        script: (str(directory / script),) for script in Script if _is_there(directory / script)
    }
    is_trusted = not _is_there(directory / UNTRUSTED)
    if not is_trusted:
        scripts[Script.CREATE] = (str(directory / UNTRUSTED),)
    if Script.CREATE not in scripts:
        raise NodeFailure(f"{directory} has no script “create”.", path=str(directory))
    pair = (Script.IMPORT, Script.EXPORT)
    if any(script in scripts for script in pair) and not all(script in scripts for script in pair):
        raise NodeFailure(
            f"{directory} has one of the scripts “import” and “export”; it needs both or neither.",
            path=str(directory),
        )
    newest = max(SUPPORTED.intersection(versions))
    parameters = _text(directory / "parameters.list") if newest >= WITH_PARAMETERS else ""
    variants = _words(directory / "variants.list") if newest >= WITH_VARIANTS else ()
    for variant in variants:
        if not _is_name(variant):
            raise NodeFailure(
                f"{directory}/variants.list has “{variant}”, which is no name of a variant.",
                path=str(directory),
            )
    return Definition(
        name=directory.name,
        path=str(directory),
        api_versions=versions,
        scripts=scripts,
        variants=variants,
        parameters=parse_parameters(parameters),
        hypervisors=_words(directory / "hypervisors"),
        is_trusted=is_trusted,
    )


def report_of(found: Definition) -> DefinitionReport:
    """Return what others are told of a definition."""
    return DefinitionReport(
        name=found.name,
        path=found.path,
        api_versions=found.api_versions,
        variants=found.variants,
        parameters=found.parameters,
        hypervisors=found.hypervisors,
        scripts=tuple(sorted(found.scripts)),
        is_trusted=found.is_trusted,
        tells_endings=True,
    )


def _versions(directory: Path) -> tuple[int, ...]:
    path = directory / API_FILE
    try:
        versions = tuple(map(int, _words(path)))
    except ValueError as error:
        raise NodeFailure(f"{path} has to have a number in each line.", path=str(path)) from error
    if not SUPPORTED.intersection(versions):
        known = ", ".join(map(str, sorted(SUPPORTED)))
        there = ", ".join(map(str, versions)) or "none"
        raise NodeFailure(
            f"{directory} is for the versions {there} of the interface of operating systems; "
            f"this node knows {known}.",
            path=str(path),
        )
    return versions


def _words(path: Path) -> tuple[str, ...]:
    return tuple(line.strip() for line in _text(path).splitlines() if line.strip())


def _text(path: Path) -> str:
    """Return the text of a file; none where there is no file."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise NodeFailure(f"Cannot read {path}: {error.strerror}.", path=str(path)) from error


def _is_there(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    check_program(path, mode)
    return True


def _is_name(name: str) -> bool:
    try:
        return not read_os_name(name).variant
    except InvalidRequest:
        return False
