"""The state of a model while instances are moved about in a simulation."""

from collections import Counter
from copy import copy
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.occupy import (
    add_primary,
    add_secondary,
    remove_primary,
    remove_secondary,
)
from coordinator.allocator.model.reservations import Reservations
from coordinator.allocator.model.score import Score
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
        resources: of all nodes.
        holders: per exclusion tag and node, how many primaries have it.
        crowds: per node, its primaries by (location tag, exclusion tag).
    """

    def __init__(self, model: ClusterModel) -> None:
        self.model = model
        self.resources = model.resources.copy()
        self.holders = {tag: Counter(counts) for tag, counts in model.holders.items()}
        self.crowds = {node: Counter(crowd) for node, crowd in model.crowds.items()}
        self._reservations = Reservations(model.peers, model.size)

    def copy(self) -> "State":
        """The same state, to be changed on its own."""
        other = copy(self)
        other.resources = self.resources.copy()
        other.holders = {tag: Counter(counts) for tag, counts in self.holders.items()}
        other.crowds = {node: Counter(crowd) for node, crowd in self.crowds.items()}
        other._reservations = self._reservations.copy()  # noqa: SLF001 -- one of our own
        return other

    def scope(self, nodes: Ints) -> Scope:
        """Look at ``nodes`` as they stand now."""
        members = frozenset(nodes.tolist()) if self.crowds else frozenset[int]()
        crowds = merge_crowds(
            crowd
            for node, crowd in self.crowds.items()
            if self.model.usable[node] and node in members
        )
        crowding = crowds.total() - len(crowds)
        return Scope(nodes, Score(self.resources.at(nodes), crowding), crowds)

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
        if scope.crowds and not demand.forthcoming:
            tags = self.model.rules.exclusion_tags(demand.tags)
            for row, node in enumerate(nodes.tolist()):
                if self.model.usable[node]:
                    places = self.model.location_tags[node]
                    crowding[row] = sum((p, tag) in scope.crowds for p in places for tag in tags)
        return crowding

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
        here = np.array([node])
        codes, after = add_primary(
            self.resources.at(here),
            demand,
            clashes=self.clashes(demand, here),
            location=np.array([location]),
            force=force,
        )
        reason = Reason(int(codes[0]))
        if not reason:
            self.resources.put(node, after)
            self._count_tags(demand, node, +1)
        return reason

    def take_primary(self, demand: Instance, node: int, location: int) -> None:
        here = np.array([node])
        self._count_tags(demand, node, -1)
        after = remove_primary(
            self.resources.at(here),
            demand,
            clashes=self.clashes(demand, here),
            location=np.array([location]),
        )
        self.resources.put(node, after)

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
        here = np.array([node])
        promised = self._reservations.of(node)
        held = promised.get(primary, 0)
        codes, after = add_secondary(
            self.resources.at(here),
            demand,
            promised=np.array([held]),
            force=force,
            ignore_disk=ignore_disk,
        )
        reason = Reason(int(codes[0]))
        if reason:
            return reason
        self.resources.put(node, after)
        if not demand.forthcoming:
            promised[primary] = held + demand.reserved_memory
        return Reason.NONE

    def take_secondary(self, demand: Instance, node: int, primary: int) -> None:
        here = np.array([node])
        promised = self._reservations.of(node)
        reserved = int(self.resources.reserved[node])
        held = promised.get(primary, 0)
        if not demand.forthcoming:
            left = promised.pop(primary, 0) - demand.reserved_memory
            if left > 0:
                promised[primary] = left
        if held >= reserved:
            reserved = max(promised.values(), default=0)
        after = remove_secondary(self.resources.at(here), demand, reserved=np.array([reserved]))
        self.resources.put(node, after)

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
