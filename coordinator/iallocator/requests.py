"""The request part of a message: what is to be placed or moved."""

from __future__ import annotations

from enum import StrEnum

from common.errors import InvalidRequest
from common.record import Record
from coordinator.iallocator.cluster import read_instance
from coordinator.iallocator.fields import Fields, an_object, list_of, one_of, text, texts, whole
from coordinator.iallocator.names import common_suffix, find_group, find_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.allocator.snapshot import Instance, Snapshot


class EvacuationMode(StrEnum):
    """Which of its nodes an instance leaves."""

    PRIMARY = "primary-only"
    SECONDARY = "secondary-only"
    ALL = "all"


class New(Record):
    """A new instance and the number of nodes it gets."""

    instance: Instance
    required_nodes: int


class AllocateOne(Record):
    new: New
    group_name: str | None
    among: tuple[str, ...] | None


class AllocateMany(Record):
    """New instances, one after the other; hail finds a group's name beside them, not in each."""

    news: tuple[New, ...]
    group_name: str | None


class RelocateOne(Record):
    """Another node for an instance; ``among`` are the only ones to look at, None for all."""

    instance: int
    required_nodes: int
    leaving: tuple[int, ...]
    among: frozenset[str] | None = None


class Evacuate(Record):
    instances: tuple[int, ...]
    mode: EvacuationMode


class ChangeGroup(Record):
    instances: tuple[int, ...]
    groups: tuple[int, ...]


class AllocateSecondary(Record):
    instance: int


class BalanceCluster(Record):
    """Moves that make the cluster better; of one group only, if it is named."""

    max_operations: int | None
    group_name: str | None


class Capacity(Record):
    """How many of one instance fit; ``limit`` None for all."""

    one: AllocateOne
    limit: int | None


Request = (
    AllocateOne
    | AllocateMany
    | RelocateOne
    | Evacuate
    | ChangeGroup
    | AllocateSecondary
    | BalanceCluster
    | Capacity
)

_mode = one_of("EvacMode", EvacuationMode)


def read_request(fields: Fields, cluster: Snapshot) -> Request:
    """Read what is asked.

    Raises:
        InvalidRequest: something is missing, of the wrong type, or names nothing there is.
    """
    kind = fields.get("type", text)
    match kind:
        case "allocate":
            return _allocate_one(fields)
        case "relocate":
            name = fields.get("name", text)
            instance = _exact_instance(name, cluster)
            required = fields.get("required_nodes", whole)
            leaving = fields.get("relocate_from", texts)
            return RelocateOne(
                instance, required, _found(leaving, cluster.columns[0].names, cluster)
            )
        case "node-evacuate":
            instances = _instances(fields, cluster)
            return Evacuate(instances, fields.get("evac_mode", _mode))
        case "change-group":
            instances = _instances(fields, cluster)
            wanted = fields.get("target_groups", texts)
            return ChangeGroup(
                instances, tuple(find_group(name, cluster.groups) for name in wanted)
            )
        case "multi-allocate":
            elements = [
                Fields(value, fields.what) for value in fields.get("instances", list_of(an_object))
            ]
            news = tuple(_new(element) for element in elements)
            return AllocateMany(news, fields.find("group_name", text))
        case "allocate-secondary":
            return AllocateSecondary(_exact_instance(fields.get("name", text), cluster))
        case "balance":
            most = _not_negative(fields, "max_operations")
            return BalanceCluster(most, fields.find("group_name", text))
        case "capacity":
            return Capacity(_allocate_one(fields), _not_negative(fields, "limit"))
        case _:
            raise InvalidRequest(f"Invalid request type '{kind}'")


def _not_negative(fields: Fields, key: str) -> int | None:
    value = fields.find(key, whole)
    if value is not None and value < 0:
        raise InvalidRequest(f"{key} is {value}, less than none at all")
    return value


def _allocate_one(fields: Fields) -> AllocateOne:
    new = _new(fields)
    group = fields.find("group_name", text)
    return AllocateOne(new, group, fields.find("restrict-to-nodes", texts))


def _new(fields: Fields) -> New:
    name = fields.get("name", text)
    instance = read_instance(name, fields)
    return New(instance, fields.get("required_nodes", whole))


def _exact_instance(name: str, cluster: Snapshot) -> int:
    names = cluster.columns[1].names
    if name not in names:
        raise InvalidRequest(f"Unknown instance '{name}'")
    return names.index(name)


def _instances(fields: Fields, cluster: Snapshot) -> tuple[int, ...]:
    found = _found(fields.get("instances", texts), cluster.columns[1].names, cluster)
    # One that is named twice is moved once: the second move would take it back.
    return tuple(dict.fromkeys(found))


def _found(wanted: Sequence[str], names: Sequence[str], cluster: Snapshot) -> tuple[int, ...]:
    """Which nodes or instances are meant, by their names, which may be shortened."""
    domain = common_suffix(cluster)
    aliases = [name.removesuffix(domain) for name in names]
    return tuple(find_one(name, names, aliases) for name in wanted)
