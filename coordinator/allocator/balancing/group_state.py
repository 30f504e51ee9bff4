"""A group of nodes on which instances move: its state at this moment, and what moves do to it.

Nodes are positions within the group, instances positions within those that have their
primary there. A move is one of six kinds, with a target node where it has one.
"""

from collections.abc import Sequence
from copy import copy

import numpy as np

from coordinator.allocator.arrays import Bools, Ints, ints
from coordinator.allocator.balancing.moves import Outcome
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.next_model import with_moved
from coordinator.allocator.model.resources import Demands, NodeResources, demand_arrays
from coordinator.allocator.model.shift import change_primary, change_secondary
from coordinator.allocator.snapshot import NOWHERE

OUTSIDE = -2  # a secondary in another group


class GroupState:
    """One group; ``apply`` changes it for good.

    Attributes:
        nodes: indices in the snapshot, rising.
        instances: the same; ``primary`` and ``secondary`` are positions in ``nodes``.
        demands, resources: see there.
        promised: row by secondary, column by primary of this group: memory kept free, in MiB.
        location: per instance, location tags its nodes share and desired locations not met.
        holders: row by exclusion tag, column by node: primaries with it.
        tagged: row by instance, column by exclusion tag.
        places: row by node, column by location tag.
        shared_places: row by node, column by node: how many location tags they share.
        unmet: row by instance, column by node: desired locations that it does not have.
        may_migrate: row by source, column by target.
    """

    def __init__(self, model: ClusterModel, nodes: Ints) -> None:
        self.model = model
        self.nodes = nodes
        place = np.full(model.size, OUTSIDE, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        primary, secondary = ints(model.primary_of), ints(model.secondary_of)
        here = place[primary] >= 0
        self.instances = np.flatnonzero(here)
        self.primary, secondary = place[primary[here]], secondary[here]
        self.secondary = np.where(secondary == NOWHERE, NOWHERE, place[secondary])
        self.demands: Demands = demand_arrays(model.demands).at(self.instances)
        self.resources: NodeResources = model.resources.at(nodes)
        self._count_reservations(place)
        self._read_tags()
        self.location = ints(model.location_scores)[self.instances]
        members = nodes.tolist()
        self.may_migrate = np.array(
            [model.may_migrate(node, members) for node in members], dtype=np.bool_
        )

    def _count_reservations(self, place: Ints) -> None:
        """What nodes keep free for the failure of nodes of this group, and of others."""
        size = len(self.nodes)
        pairs = self.model.peers.promised
        ends = np.array([*pairs], dtype=np.int64).reshape(-1, 2)
        promised = ints([*pairs.values()])
        first, second = place[ends].T
        inside, outside = (first >= 0) & (second >= 0), (first < 0) & (second >= 0)
        self.promised = np.zeros((size, size), dtype=np.int64)
        self.promised[second[inside], first[inside]] = promised[inside]
        # Per node, in MiB: the most that it keeps free for one node of another group.
        self._from_outside = np.zeros(size, dtype=np.int64)
        np.maximum.at(self._from_outside, second[outside], promised[outside])
        self._owed_outside = int(promised[outside].sum())  # MiB

    def _read_tags(self) -> None:
        model, rules, nodes = self.model, self.model.rules, self.nodes.tolist()
        tags = [model.tags[index] for index in self.instances.tolist()]
        self.tagged = _table([rules.exclusion_tags(each) for each in tags])
        self.holders = np.zeros((self.tagged.shape[1], len(nodes)), dtype=np.int64)
        np.add.at(self.holders.T, self.primary, self.tagged)
        places = [model.location_tags[node] for node in nodes]
        self.places = _table(places)
        self.shared_places = self.places @ self.places.T
        self.unmet = np.zeros((len(tags), len(nodes)), dtype=np.int64)
        for index, wanted in enumerate(map(rules.desired_locations, tags)):
            if wanted:
                self.unmet[index] = [len(wanted - place) for place in places]
        self.has_crowds = bool(self.tagged.shape[1] and self.places.shape[1])
        online = ~self.resources.offline
        real = (self.demands.count > 0) & online[self.primary]
        # Primaries online by location tag of the node and exclusion tag of the instance.
        self.crowds = self.places[self.primary[real]].T @ self.tagged[real]

    @property
    def owed(self) -> int:
        """Memory in MiB that the nodes keep free for the failure of any others."""
        return int(self.promised.sum()) + self._owed_outside

    def copy(self) -> "GroupState":
        """A state on which moves can be tried."""
        other = copy(self)
        for name in (
            "primary",
            "secondary",
            "resources",
            "promised",
            "holders",
            "location",
            "crowds",
        ):
            setattr(other, name, getattr(self, name).copy())
        return other

    def settled(self, moved: Sequence[int]) -> ClusterModel:
        """The model of the whole cluster with this group as it stands.

        ``moved`` are instances that have moved, in that order, as indices in the snapshot.
        """
        resources = self.model.resources.copy()
        resources.put(self.nodes, self.resources)
        where = {index: at for at, index in enumerate(self.instances.tolist())}
        last = {index: turn for turn, index in enumerate(moved)}
        homes = {index: self.homes(where[index]) for index in sorted(last, key=last.__getitem__)}
        return with_moved(self.model, homes, resources=resources)

    def homes(self, one: int) -> tuple[int, int]:
        """Primary and secondary of the instance at a position, as indices in the snapshot."""
        index, secondary = int(self.instances[one]), int(self.secondary[one])
        mirror = int(self.nodes[secondary] if secondary >= 0 else self.model.secondary_of[index])
        return int(self.nodes[self.primary[one]]), mirror

    @property
    def crowding(self) -> int:
        return int(self.crowds.sum() - np.count_nonzero(self.crowds))

    def is_offline(self, nodes: Ints) -> Bools:
        """Per position; what is not in the group counts as online."""
        offline: Bools = (nodes >= 0) & self.resources.offline[nodes]
        return offline

    def reserved_without(self, some: Ints) -> Ints:
        """MiB that the secondaries of instances keep free once they let go of these, one each."""
        primary, secondary = self.primary[some], self.secondary[some]
        table = self.promised
        top = table.argmax(axis=1)
        rows = np.arange(len(table))
        first = np.maximum(table[rows, top], self._from_outside)
        rest = table.copy()
        rest[rows, top] = 0
        second = np.maximum(rest.max(axis=1, initial=0), self._from_outside)
        held = table[secondary, primary]
        others = np.where(top[secondary] == primary, second[secondary], first[secondary])
        left = np.maximum(held - self.demands.needed[some], 0)
        reserved: Ints = self.resources.reserved[secondary]
        return np.where(held >= reserved, np.maximum(others, left), reserved)

    def location_at(self, some: Ints, primary: Ints, secondary: Ints) -> Ints:
        """Per instance: location tags its nodes would share, and desired ones the first lacks."""
        shared: Ints = np.where(secondary >= 0, self.shared_places[primary, secondary], 0)
        return shared + self.unmet[some, primary]

    def clashes(self, some: Ints, nodes: Ints) -> Ints:
        """Per instance: how many of its exclusion tags are taken on its node."""
        found: Ints = (self.tagged[some] * (self.holders[:, nodes].T > 0)).sum(axis=1)
        return found

    def freed(self, some: Ints) -> Ints:
        """Per instance: how many of its exclusion tags its node has more often than once."""
        found: Ints = (self.tagged[some] * (self.holders[:, self.primary[some]].T > 1)).sum(axis=1)
        return found

    def crowding_of(self, some: Ints, targets: Ints) -> Ints:
        """Per instance and new primary: what the move adds to the count of crowded locations."""
        if not self.has_crowds:
            return np.zeros(len(some), dtype=np.int64)
        again, once = self.crowd_weights(some)
        there = self.places[targets] * ~self.resources.offline[targets][:, None]
        delta: Ints = -again.sum(axis=1) + ((again + once) * there).sum(axis=1)
        return delta

    def crowd_weights(self, some: Ints) -> tuple[Ints, Ints]:
        """Per instance and location tag: what leaving takes away, what coming would add.

        A location that both nodes have is neither left nor come to, and is in the first only,
        so that taking it away and adding it again make nothing.
        """
        home = self.primary[some]
        here = (
            self.places[home]
            * (~self.resources.offline[home] & (self.demands.count[some] > 0))[:, None]
        )
        again = here * (self.tagged[some] @ (self.crowds.T > 1))
        real = (self.demands.count[some] > 0)[:, None]
        once = (1 - here) * (self.tagged[some] @ (self.crowds.T >= 1)) * real
        return again, once

    def at_home(self, some: Ints) -> tuple[NodeResources, NodeResources]:
        """Primary nodes without these instances, and secondaries without them, one each."""
        demands = self.demands.at(some)
        first, second = (self.resources.at(homes[some]) for homes in (self.primary, self.secondary))
        freed, location = self.freed(some), self.location[some]
        left = change_primary(first, demands, clashes=freed, location=location, come=False)
        reserved = self.reserved_without(some)
        return left, change_secondary(second, demands, reserved=reserved, come=False)

    def apply(self, outcome: Outcome, one: int) -> None:
        """Make the only candidate of ``outcome``, a move of instance ``one``, true."""
        home, mirror = int(self.primary[one]), int(self.secondary[one])
        for node, resources in zip(outcome.nodes[:, 0].tolist(), outcome.resources, strict=True):
            self.resources.put(node, resources.row(0))
        primary, secondary = int(outcome.primary[0]), int(outcome.secondary[0])
        needed = int(self.demands.needed[one])
        if self.demands.count[one] and mirror >= 0:
            self.promised[mirror, home] = max(0, self.promised[mirror, home] - needed)
            self.promised[secondary, primary] += needed
        self.holders[:, home] -= self.tagged[one]
        self.holders[:, primary] += self.tagged[one]
        if self.demands.count[one]:
            for node, change in ((home, -1), (primary, +1)):
                if not self.resources.offline[node]:
                    self.crowds += change * np.outer(self.places[node], self.tagged[one])
        self.primary[one], self.secondary[one] = primary, secondary
        self.location[one] = int(outcome.location[0])


def _table(rows: list[frozenset[str]]) -> Ints:
    """1 where the row has the tag; a column per tag."""
    tags = {tag: column for column, tag in enumerate(sorted(set[str]().union(*rows)))}
    table = np.zeros((len(rows), len(tags)), dtype=np.int64)
    for row, some in enumerate(rows):
        table[row, [tags[tag] for tag in some]] = 1
    return table
