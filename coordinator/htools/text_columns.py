"""The fields of a line of Ganeti's text format, by kind of object.

Source: htools(1), section "Text backend".
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from common.model.allocation_policy import AllocationPolicy
from common.record import Record, values_of
from coordinator.allocator.policy import TEMPLATES, Bounds, Spec
from coordinator.allocator.snapshot import STATUSES
from coordinator.htools.numbers import amount, real, whole

T = TypeVar("T")


class Column(Record):
    """A field of a line.

    Attributes:
        name: of the value in the snapshot.
        what: it is, for complaints.
        read: makes the value; raises ValueError, which says what the text is not.
        show: makes the text.
        usual: the text where a line is too short to have it; None if it has to be there.
    """

    name: str
    what: str
    read: Callable[[str], Any]
    show: Callable[[Any], str] = str
    usual: str | None = None


def _list_of(read: Callable[[str], T], separator: str = ",") -> Callable[[str], tuple[T, ...]]:
    def read_list(text: str) -> tuple[T, ...]:
        found = []
        for part in text.split(separator) if text else ():
            try:
                found.append(read(part))
            except ValueError as error:
                raise ValueError(f"has {part!r}, which {error}") from error
        return tuple(found)

    return read_list


def _flag(text: str) -> bool:
    if text not in {"Y", "N"}:
        raise ValueError("is neither Y nor N")
    return text == "Y"


def _one_of(known: Collection[T]) -> Callable[[str], T]:
    by_name = {str(each): each for each in known}

    def read(text: str) -> T:
        if text not in by_name:
            raise ValueError("is unknown")
        return by_name[text]

    return read


def _spec(text: str) -> Spec:
    sizes = _list_of(whole)(text)
    if len(sizes) < 6:
        raise ValueError(f"has {len(sizes)} sizes instead of 6")
    return Spec(*sizes[:6])


def _bounds(text: str) -> tuple[Bounds, ...]:
    specs = _list_of(_spec, ";")(text)
    if len(specs) % 2:
        raise ValueError("has a minimum without a maximum")
    return tuple(map(Bounds, specs[::2], specs[1::2]))


def _yes(value: bool) -> str:
    return "Y" if value else "N"


def _sizes(spec: Spec) -> str:
    return ",".join(map(str, values_of(spec)))


def _pairs(minmax: Sequence[Bounds]) -> str:
    return ";".join(_sizes(spec) for bounds in minmax for spec in (bounds.min, bounds.max))


_list, _joined, _rounded = _list_of(str), ",".join, "{:.0f}".format
GROUP = (
    Column("name", "name", str),
    Column("uuid", "UUID", str),
    Column("alloc_policy", "allocation policy", _one_of([*AllocationPolicy])),
    Column("tags", "tags", _list, _joined),
    Column("networks", "networks", _list, _joined, ""),
)
NODE = (
    Column("name", "name", str),
    Column("total_memory", "total memory", amount, _rounded),
    Column("own_memory", "memory for itself", whole),
    Column("free_memory", "free memory", whole),
    Column("total_disk", "total disk", amount, _rounded),
    Column("free_disk", "free disk", whole),
    Column("total_cpus", "processors", amount, _rounded),
    Column("flag", "state", str),
    Column("group", "group", str),
    Column("spindles", "spindles", whole, str, "1"),
    Column("tags", "tags", _list, _joined, ""),
    Column("exclusive", "exclusive storage", _flag, _yes, "N"),
    Column("free_spindles", "free spindles", whole, str, "0"),
    Column("own_cpus", "processors for itself", whole, str, "1"),
    Column("speed", "processor speed", amount, str, "1.0"),
)
INSTANCE = (
    Column("name", "name", str),
    Column("memory", "memory", whole),
    Column("disk", "disk", whole),
    Column("vcpus", "processors", whole),
    Column("status", "status", _one_of(STATUSES)),
    Column("auto_balance", "auto_balance", _flag, _yes),
    Column("primary", "primary node", str),
    Column("secondary", "secondary node", str),
    Column("template", "disk template", _one_of(TEMPLATES)),
    Column("tags", "tags", _list, _joined),
    Column("spindle_use", "spindle use", whole, str, "1"),
    Column(
        "disk_spindles",
        "spindles",
        lambda text: None if text == "-" else whole(text),
        lambda spindles: "-" if spindles is None else str(spindles),
        "-",
    ),
    Column("forthcoming", "forthcoming", _flag, _yes, "N"),
)
POLICY = (
    Column("owner", "group", str),
    Column("std", "standard size", _spec, _sizes),
    Column("minmax", "bounds", _bounds, _pairs),
    Column("disk_templates", "disk templates", _list_of(_one_of(TEMPLATES)), _joined),
    Column("vcpu_ratio", "processor ratio", real),
    Column("spindle_ratio", "spindle ratio", real),
)
