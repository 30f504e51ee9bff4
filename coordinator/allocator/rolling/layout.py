"""What is where, and what it leaves of nodes, as values: trying a move changes nothing.

Only what a node has to have counts: memory, disk, and spindles where storage is exclusive.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from immutables import Map

from common.record import Record, replace
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import NodeResources, asked
from coordinator.allocator.model.shift import (
    add_primary,
    add_secondary,
    change_primary,
    change_secondary,
)
from coordinator.allocator.snapshot import NOWHERE, Instance


class Place(Record):
    """A node as it stands, and its real instances, the newest first."""

    group: int
    resources: NodeResources
    primaries: tuple[int, ...]
    secondaries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """What is where: nodes by index, and the primary and secondary of each instance."""

    places: Map[int, Place]
    assignments: Map[int, tuple[int, int]]

    def moved(self, places: Mapping[int, Place], index: int, homes: tuple[int, int]) -> "Layout":
        """The same with an instance on other nodes, and with some nodes as they are then."""
        return Layout(self.places.update(places), self.assignments.set(index, homes))


def layout_of(model: ClusterModel) -> Layout:
    """How things are at the start."""
    snapshot = model.snapshot
    primaries: dict[int, list[int]] = {}
    secondaries: dict[int, list[int]] = {}
    for index in reversed(range(len(snapshot.instances))):
        instance = snapshot.instances[index]
        if not instance.forthcoming:
            primaries.setdefault(instance.primary, []).append(index)
            secondaries.setdefault(instance.secondary, []).append(index)
    places = {
        index: Place(
            group=node.group,
            resources=model.rows[index],
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
    refused, after = add_primary(place.resources, asked(one), clashes=0, location=0, force=True)
    return None if refused else replace(place, resources=after, primaries=(index, *place.primaries))


def without_primary(place: Place, index: int, one: Instance) -> Place:
    """The node once the instance runs elsewhere."""
    after = change_primary(place.resources, asked(one), clashes=0, location=0, come=False)
    return replace(place, resources=after, primaries=_without(place.primaries, index))


def with_secondary(place: Place, index: int, one: Instance) -> Place | None:
    """The node with a copy of the instance; None if there is no room, or it cannot be mirrored."""
    refused, after = add_secondary(place.resources, asked(one), promised=0, force=True)
    copies = (index, *place.secondaries)
    return None if refused else replace(place, resources=after, secondaries=copies)


def without_secondary(place: Place, index: int, one: Instance) -> Place:
    """The node without its copy."""
    after = change_secondary(place.resources, asked(one), reserved=0, come=False)
    return replace(place, resources=after, secondaries=_without(place.secondaries, index))


def _without(some: tuple[int, ...], index: int) -> tuple[int, ...]:
    return tuple(each for each in some if each != index)


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
