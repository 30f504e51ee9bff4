"""A field: one thing that can be asked about each object of a kind."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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
    """``get`` takes a row and returns a JSON value or a ``Missing``."""

    name: str
    title: str  # of the column; no spaces
    kind: Kind
    doc: str
    get: Callable[[R], Any]
    needs: Needs = Needs.CONFIG

    def describe(self) -> dict[str, str]:
        """Return the definition that goes over the wire."""
        return {"name": self.name, "title": self.title, "kind": self.kind, "doc": self.doc}


Table = Mapping[str, Field[R]]


def table(*groups: Iterable[Field[R]]) -> Table[R]:
    """Index fields by name, keeping their order."""
    return {field.name: field for group in groups for field in group}


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
