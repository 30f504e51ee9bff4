"""What is where, and how much room it leaves, as values: trying a move changes nothing.

Only what a node has to have counts: memory, disk, and spindles where storage is exclusive.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from immutables import Map

from common.record import Record, replace
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import UNKNOWN
from coordinator.allocator.snapshot import NOWHERE, Instance


class Place(Record):
    """A node's room, and its real instances, the newest first; MiB.

    Attributes:
        index: of the node.
        spindles: free ones; they count where storage is exclusive.
    """

    index: int
    group: int
    memory: int
    disk: int
    spindles: int
    exclusive: bool
    primaries: tuple[int, ...]
    secondaries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """What is where: nodes by index, and the primary and secondary of each instance."""

    places: Map[int, Place]
    assignments: Map[int, tuple[int, int]]


def layout_of(model: ClusterModel) -> Layout:
    """How things are at the start."""
    snapshot, resources = model.snapshot, model.resources
    primaries: dict[int, list[int]] = {}
    secondaries: dict[int, list[int]] = {}
    for index in reversed(range(len(snapshot.instances))):
        instance = snapshot.instances[index]
        if not instance.forthcoming:
            primaries.setdefault(instance.primary, []).append(index)
            secondaries.setdefault(instance.secondary, []).append(index)
    places = {
        index: Place(
            index=index,
            group=node.group,
            memory=int(resources.memory[index]),
            disk=int(resources.disk[index]),
            spindles=int(resources.free_spindles[index]),
            exclusive=node.exclusive,
            primaries=tuple(primaries.get(index, ())),
            secondaries=tuple(secondaries.get(index, ())),
        )
        for index, node in enumerate(snapshot.nodes)
    }
    assignments = {
        index: (one.primary, one.secondary) for index, one in enumerate(snapshot.instances)
    }
    return Layout(Map(places), Map(assignments))


def with_primary(place: Place, index: int, one: Instance) -> Place | None:
    """The node running instance ``one``; None if there is no room."""
    after = replace(
        place,
        memory=place.memory - (one.memory if one.uses_memory else 0),
        disk=place.disk - (one.disk if one.is_local else 0),
        spindles=_taken(place, one),
        primaries=(index, *place.primaries),
    )
    crowded = one.is_local and (after.disk <= 0 or after.spindles < 0)
    return None if after.memory <= 0 or crowded else after


def without_primary(place: Place, index: int, one: Instance) -> Place:
    """The node once the instance runs elsewhere."""
    return replace(
        place,
        memory=place.memory + (one.memory if one.uses_memory else 0),
        disk=place.disk + (one.disk if one.is_local else 0),
        spindles=_given_back(place, one),
        primaries=tuple(each for each in place.primaries if each != index),
    )


def with_secondary(place: Place, index: int, one: Instance) -> Place | None:
    """The node with a copy of the instance; None if there is no room, or it cannot be mirrored."""
    after = replace(
        place,
        disk=place.disk - one.disk,
        spindles=_taken(place, one),
        secondaries=(index, *place.secondaries),
    )
    is_refused = not one.is_mirrored or after.disk <= 0 or after.spindles < 0
    return None if is_refused else after


def without_secondary(place: Place, index: int, one: Instance) -> Place:
    """The node without its copy."""
    return replace(
        place,
        disk=place.disk + (one.disk if one.is_local else 0),
        spindles=_given_back(place, one),
        secondaries=tuple(each for each in place.secondaries if each != index),
    )


def _taken(place: Place, one: Instance) -> int:
    """Free spindles with the instance; below 0 if it does not tell how many it needs."""
    if not place.exclusive:
        return 0
    return UNKNOWN if one.disk_spindles is None else place.spindles - one.disk_spindles


def _given_back(place: Place, one: Instance) -> int:
    return place.spindles + (one.disk_spindles or 0) if place.exclusive else 0


def moves_between(
    instances: Sequence[Instance], before: Layout, after: Layout
) -> list[tuple[int, int, int]]:
    """Instances that went elsewhere: index, new primary, new secondary or ``NOWHERE``.

    Those that only exchanged the parts of their two nodes did not.
    """
    found = []
    for index, instance in enumerate(instances):
        (primary, secondary), (new, copy) = before.assignments[index], after.assignments[index]
        is_mirrored = instance.is_mirrored
        has_moved = primary != new or (is_mirrored and secondary != copy)
        if has_moved and not (new == secondary and copy == primary):
            found.append((index, new, copy if is_mirrored else NOWHERE))
    return found
