"""The state of a model while instances are moved about in a simulation."""

from collections import Counter
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.model import shift
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.occupy import asked_row
from coordinator.allocator.model.reservations import Reservations
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.score import Score, figures_of_row
from coordinator.allocator.model.terms import merge_crowds
from coordinator.allocator.refusal import Reason
from coordinator.allocator.snapshot import Instance


@dataclass(frozen=True, slots=True)
class Resident:
    """A real instance on its primary node.

    Attributes:
        location: its part of the location score; a failover leaves it as it was.
        primary: the node, unless the instance is thought to be elsewhere at the same time.
    """

    demand: Instance
    primary: int
    secondary: int
    location: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Nodes that are scored together.

    Attributes:
        nodes: rising indices.
        crowds: primaries counted by (location tag, exclusion tag) over the online ones.
    """

    nodes: Ints
    standing: Score
    crowds: Counter[tuple[str, str]]


class State:
    """A copy of what changes in a model when instances move; the model stays as it is.

    Attributes:
        holders: per exclusion tag and node, how many primaries have it.
        crowds: per node, its primaries by (location tag, exclusion tag).
    """

    def __init__(self, model: ClusterModel) -> None:
        self.model = model
        self._changed: dict[int, NodeResources] = {}  # rows
        self._figures: dict[int, tuple[float, ...]] = {}  # of these
        self.holders = {tag: Counter(counts) for tag, counts in model.holders.items()}
        self.crowds = {node: Counter(crowd) for node, crowd in model.crowds.items()}
        self._reservations = Reservations(model.peers, model.size)

    def copy(self) -> "State":
        """The same state, to be changed on its own."""
        other = copy(self)
        other._changed = dict(self._changed)  # noqa: SLF001 -- one of our own, as below
        other._figures = dict(self._figures)  # noqa: SLF001
        other.holders = {tag: Counter(counts) for tag, counts in self.holders.items()}
        other.crowds = {node: Counter(crowd) for node, crowd in self.crowds.items()}
        other._reservations = self._reservations.copy()  # noqa: SLF001
        return other

    @property
    def resources(self) -> NodeResources:
        """Those of all nodes, as arrays of their own."""
        found = self.model.resources.copy()
        for node, row in self._changed.items():
            found.put_row(node, row)
        return found

    def at(self, nodes: Ints) -> NodeResources:
        """The resources of some nodes, as arrays of their own."""
        found = self.model.resources.at(nodes)
        for node, row in self._changed.items():
            for position in np.flatnonzero(nodes == node).tolist():
                found.put_row(position, row)
        return found

    def row(self, node: int) -> NodeResources:
        """The resources of one node, as Python's numbers."""
        return self._changed[node] if node in self._changed else self.model.row(node)

    def figures(self, node: int) -> tuple[float, ...]:
        """What one node contributes to each term of the score."""
        if node not in self._changed:
            return self.model.figures(node)
        if node not in self._figures:
            self._figures[node] = figures_of_row(self._changed[node])
        return self._figures[node]

    def _change(self, node: int, row: NodeResources) -> None:
        self._changed[node] = row
        self._figures.pop(node, None)

    def scope(self, nodes: Ints) -> Scope:
        """Look at ``nodes`` as they stand now."""
        crowds = self.crowds_of(nodes)
        crowding = crowds.total() - len(crowds)
        return Scope(nodes, Score(self.at(nodes), crowding), crowds)

    def crowds_of(self, nodes: Ints) -> Counter[tuple[str, str]]:
        """Primaries counted by (location tag, exclusion tag) over those that are online."""
        members = frozenset(nodes.tolist()) if self.crowds else frozenset[int]()
        return merge_crowds(
            crowd
            for node, crowd in self.crowds.items()
            if self.model.usable[node] and node in members
        )

    def clashes(self, demand: Instance, nodes: Ints) -> Ints:
        """How many exclusion tags of the instance are taken, per node."""
        clashes = np.zeros(self.model.size, dtype=np.int64)
        for tag in self.model.rules.exclusion_tags(demand.tags):
            holders = self.holders.get(tag, Counter())
            clashes[[node for node, count in holders.items() if count > 0]] += 1
        return clashes[nodes]

    def crowding(self, demand: Instance, scope: Scope, nodes: Ints) -> Ints:
        """How much more crowded locations would be with the instance on each of ``nodes``."""
        crowding = np.zeros(len(nodes), dtype=np.int64)
        if scope.crowds:
            found = [self.crowding_on(demand, scope.crowds, node) for node in nodes.tolist()]
            crowding[:] = found
        return crowding

    def crowding_on(self, demand: Instance, crowds: Counter[tuple[str, str]], node: int) -> int:
        """The same of one node, by what ``crowds_of`` counted."""
        if not crowds or demand.forthcoming or not self.model.usable[node]:
            return 0
        tags, places = self.model.rules.exclusion_tags(demand.tags), self.model.location_tags[node]
        return sum((place, tag) in crowds for place in places for tag in tags)

    def promised(self, nodes: Ints, primary: int) -> Ints:
        """Per node: memory it keeps free for the failure of ``primary``."""
        return self._reservations.towards(primary, nodes)

    def promised_by(self, node: int, primaries: Ints) -> Ints:
        """Per primary: memory that ``node`` keeps free for its failure."""
        held = self._reservations.of(node)
        return np.array([held.get(each, 0) for each in primaries.tolist()], dtype=np.int64)

    def promises_between(self, nodes: Ints) -> tuple[Ints, Ints, Ints]:
        """Pairs of ``nodes`` of which the second keeps memory for the first, and how much."""
        return self._reservations.between(nodes)

    def put_primary(
        self, demand: Instance, node: int, location: int, *, force: bool = True
    ) -> Reason:
        """Run an instance on a node; nothing changes on refusal.

        With ``force``, as by default, the soft limits do not count.
        """
        code, after = self.with_primary(demand, node, location, force=force)
        if not code:
            self._change(node, after)
            self._count_tags(demand, node, +1)
        return Reason(code)

    def with_primary(
        self, demand: Instance, node: int, location: int, *, force: bool
    ) -> tuple[int, NodeResources]:
        """The code of the ``Reason`` not to run an instance on a node, and the node with it."""
        code, after = shift.add_primary(
            self.row(node),
            asked_row(demand),
            clashes=self.taken_tags(demand, node),
            location=location,
            force=force,
        )
        return code, after

    def taken_tags(self, demand: Instance, node: int) -> int:
        """How many exclusion tags of the instance are taken on a node."""
        tags = self.model.rules.exclusion_tags(demand.tags)
        return sum(tag in self.holders and self.holders[tag][node] > 0 for tag in tags)

    def take_primary(self, demand: Instance, node: int, location: int) -> None:
        self._count_tags(demand, node, -1)
        freed = self.taken_tags(demand, node)
        after = shift.remove_primary(
            self.row(node), asked_row(demand), freed=freed, location=location
        )
        self._change(node, after)

    def put_secondary(
        self,
        demand: Instance,
        node: int,
        primary: int,
        *,
        force: bool = True,
        ignore_disk: bool = False,
    ) -> Reason:
        """Keep a copy on a node; nothing changes on refusal.

        With ``force``, as by default, the soft limits do not count; ``ignore_disk`` is for
        a node that is offline, where the disk cannot be had anyway.
        """
        promised = self._reservations.of(node)
        held = promised.get(primary, 0)
        code, after = shift.add_secondary(
            self.row(node), asked_row(demand), promised=held, force=force, any_disk=ignore_disk
        )
        if code:
            return Reason(code)
        self._change(node, after)
        if not demand.forthcoming:
            promised[primary] = held + demand.reserved_memory
        return Reason.NONE

    def take_secondary(self, demand: Instance, node: int, primary: int) -> None:
        promised = self._reservations.of(node)
        reserved: Any = self.row(node).reserved
        held = promised.get(primary, 0)
        if not demand.forthcoming:
            left = promised.pop(primary, 0) - demand.reserved_memory
            if left > 0:
                promised[primary] = left
        if held >= reserved:
            reserved = max(promised.values(), default=0)
        after = shift.remove_secondary(self.row(node), asked_row(demand), reserved=reserved)
        self._change(node, after)

    def _count_tags(self, demand: Instance, node: int, change: int) -> None:
        tags = self.model.rules.exclusion_tags(demand.tags)
        for tag in tags:
            self.holders.setdefault(tag, Counter())[node] += change
        if not demand.forthcoming:
            crowd = self.crowds.setdefault(node, Counter())
            for key in [(place, tag) for place in self.model.location_tags[node] for tag in tags]:
                crowd[key] += change
                if not crowd[key]:
                    del crowd[key]


def residents_of(model: ClusterModel, node: int, latest: int | None = None) -> list[Resident]:
    """The real primaries of a node, the newest first, as hail keeps them.

    Args:
        model: the cluster.
        node: index of the node.
        latest: index of an instance that was taken off and put back, which makes it the newest.
    """
    there = np.flatnonzero(model.real & (model.primary_of == node))[::-1].tolist()
    for index in (*model.arrivals, latest):
        if index in there:
            there.remove(index)
            there.insert(0, index)
    residents = []
    for index in there:
        demand, secondary = model.snapshot.instances[index], int(model.secondary_of[index])
        location = model.location_score(demand, node, secondary)
        residents.append(Resident(demand, node, secondary, location))
    return residents
