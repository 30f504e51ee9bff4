"""A field: one thing that can be asked about each object of a kind."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Kind(StrEnum):
    """How a field's values are shown and compared; names are Ganeti's."""

    UNKNOWN = "unknown"
    TEXT = "text"
    BOOL = "bool"
    NUMBER = "number"
    FLOAT = "float"
    UNIT = "unit"  # a size in MiB
    TIMESTAMP = "timestamp"  # seconds since 1970, UTC
    OTHER = "other"  # any JSON value


class Missing(Enum):
    """Why there is no value; the number goes over the wire, 0 being "there is one"."""

    UNKNOWN_FIELD = 1
    NO_DATA = 2  # who would know did not answer
    UNAVAILABLE = 3  # this object has no such thing
    OFFLINE = 4  # who would know is marked offline


class Needs(StrEnum):
    """What has to be asked for before the field has a value."""

    CONFIG = "config"  # nothing: it is in the state
    GUESTS = "guests"  # the nodes' lists of guests
    FACTS = "facts"  # the nodes' facts
    MIRRORS = "mirrors"  # how the nodes' ends of mirrored disks are
    THIN = "thin"  # what disks take that take less than their size


@dataclass(frozen=True, slots=True)
class Field(Generic[R]):
    """``get`` takes a row and returns a JSON value or a ``Missing``.

    ``is_worth_asking`` tells whether nodes are asked for its sake, if nothing else is wanted of
    them.
    """

    name: str
    title: str  # of the column; no spaces
    kind: Kind
    doc: str
    get: Callable[[R], Any]
    needs: Needs = Needs.CONFIG
    is_worth_asking: bool = True

    def describe(self) -> dict[str, str]:
        """Return the definition that goes over the wire."""
        return {"name": self.name, "title": self.title, "kind": self.kind, "doc": self.doc}


# How Ganeti's design calls parameters in lists, and how its programs and ours do.
_LONGER = {"beparam/": "be/", "hvparam/": "hv/"}


class Table(Mapping[str, Field[R]]):
    """Fields by name, in their order; those of parameters are found by their longer names, too."""

    def __init__(self, fields: Iterable[Field[R]]) -> None:
        self._fields = {field.name: field for field in fields}

    def __getitem__(self, name: object) -> Field[R]:
        if not isinstance(name, str):
            raise KeyError(name)
        found = self._fields.get(name)
        if found is not None:
            return found
        for longer, usual in _LONGER.items():
            if name.startswith(longer):
                return replace(self._fields[usual + name.removeprefix(longer)], name=name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def table(*groups: Iterable[Field[R]]) -> Table[R]:
    """Index fields by name, keeping their order."""
    return Table(field for group in groups for field in group)


def unknown_field(name: str) -> Field[Any]:
    """Return what stands for a field that does not exist: a column without values."""
    return Field(
        name, name, Kind.UNKNOWN, f"Unknown field '{name}'", lambda _: Missing.UNKNOWN_FIELD
    )


def entity_fields(what: str) -> tuple[Field[Any], ...]:
    """Return the fields of every object; rows have it as ``entity``.

    Args:
        what: the kind as its documentation begins: "Instance".
    """
    return (
        Field("ctime", "CTime", Kind.TIMESTAMP, "Creation timestamp", lambda row: row.entity.ctime),
        Field(
            "mtime", "MTime", Kind.TIMESTAMP, "Modification timestamp", lambda row: row.entity.mtime
        ),
        Field(
            "serial_no",
            "SerialNo",
            Kind.NUMBER,
            f"{what} object serial number, incremented on each modification",
            lambda row: row.entity.serial_no,
        ),
        Field("tags", "Tags", Kind.OTHER, "Tags", lambda row: list(row.entity.tags)),
        Field("uuid", "UUID", Kind.TEXT, f"{what} UUID", lambda row: row.entity.uuid),
    )
