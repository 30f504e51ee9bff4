"""A group of nodes on which instances move: the books at this moment, and what moves do to them.

Nodes are positions within the group, instances positions within those that have their
primary there. A move is one of six kinds, with a target node where it has one.
"""

from copy import copy

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.balancing.carrying import Carrying
from coordinator.allocator.balancing.moves import Kind as Kind
from coordinator.allocator.balancing.moves import Outcome as Outcome
from coordinator.allocator.books.books import Books, Demands
from coordinator.allocator.books.opening import Opening
from coordinator.allocator.books.shift import remove_primary, remove_secondary
from coordinator.allocator.snapshot import NOWHERE

OUTSIDE = -2  # a secondary in another group


class Board:
    """One group; ``apply`` changes it for good.

    Attributes:
        nodes: indices in the snapshot, rising.
        instances: the same; ``primary`` and ``secondary`` are positions in ``nodes``.
        demands, books: see there.
        promised: row by secondary, column by primary of this group: memory kept free.
        location: per instance, location tags its nodes share and wishes that are not met.
    """

    def __init__(self, opening: Opening, nodes: Ints) -> None:
        self.opening = opening
        self.nodes = nodes
        place = np.full(len(opening.snapshot.nodes), OUTSIDE, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        here = place[opening.primary] >= 0
        self.instances = np.flatnonzero(here)
        self.primary = place[opening.primary[here]]
        secondary = opening.secondary[here]
        self.secondary = np.where(secondary == NOWHERE, NOWHERE, place[secondary])
        self.demands: Demands = opening.demands.at(self.instances)
        self.books: Books = opening.books.at(nodes)
        self.promised = opening.promised[np.ix_(nodes, nodes)].copy()
        others = np.delete(opening.promised[nodes], nodes, axis=1)
        self._from_outside = others.max(axis=1, initial=0)
        self.holders = opening.holders[:, nodes].copy()
        self.tagged = opening.tagged[self.instances]
        self.places = opening.places[nodes]
        self.shared_places = self.places @ self.places.T
        self.unmet = opening.unmet[np.ix_(self.instances, nodes)]
        self.location = opening.own_location[self.instances].copy()
        self.may_migrate = opening.may_migrate[np.ix_(nodes, nodes)]
        self.has_crowds = bool(self.tagged.shape[1] and self.places.shape[1])
        online = ~self.books.offline
        real = (self.demands.count > 0) & online[self.primary]
        # Primaries online by location tag of the node and exclusion tag of the instance.
        self.crowds = self.places[self.primary[real]].T @ self.tagged[real]

    def copy(self) -> "Board":
        """A board on which moves can be tried."""
        other = copy(self)
        for name in ("primary", "secondary", "books", "promised", "holders", "location", "crowds"):
            setattr(other, name, getattr(self, name).copy())
        return other

    @property
    def crowding(self) -> int:
        return int(self.crowds.sum() - np.count_nonzero(self.crowds))

    def is_offline(self, nodes: Ints) -> Bools:
        """Per position; what is not in the group counts as online."""
        return (nodes >= 0) & self.books.offline[nodes]

    def reserved_without(self, some: Ints) -> Ints:
        """What the secondaries of instances keep free once they let go of these, one each."""
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
        reserved = self.books.reserved[secondary]
        return np.where(held >= reserved, np.maximum(others, left), reserved)

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
        there = self.places[targets] * ~self.books.offline[targets][:, None]
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
            * (~self.books.offline[home] & (self.demands.count[some] > 0))[:, None]
        )
        again = here * (self.tagged[some] @ (self.crowds.T > 1))
        real = (self.demands.count[some] > 0)[:, None]
        once = (1 - here) * (self.tagged[some] @ (self.crowds.T >= 1)) * real
        return again, once

    def at_home(self, some: Ints) -> tuple[Books, Books]:
        """Primary nodes without these instances, and secondaries without them, one each."""
        demands = self.demands.at(some)
        first = remove_primary(
            self.books.at(self.primary[some]),
            demands,
            freed=self.freed(some),
            location=self.location[some],
        )
        second = remove_secondary(
            self.books.at(self.secondary[some]), demands, reserved=self.reserved_without(some)
        )
        return first, second

    def carry_out(self, kind: Kind, some: Ints, targets: Ints, *, force: bool) -> Outcome:
        """Move each instance by a move of one kind; ``targets`` count where it has one.

        Args:
            kind: of all the moves.
            some: positions of instances.
            targets: positions of nodes.
            force: ignore soft limits everywhere.
        """
        return Carrying(self, some, targets, force=force).out(kind)

    def apply(self, outcome: Outcome, one: int) -> None:
        """Make the only candidate of ``outcome``, a move of instance ``one``, true."""
        home, mirror = int(self.primary[one]), int(self.secondary[one])
        for node, books in zip(outcome.nodes[:, 0].tolist(), outcome.books, strict=True):
            self.books.put(node, books)
        primary, secondary = int(outcome.primary[0]), int(outcome.secondary[0])
        needed = int(self.demands.needed[one])
        if self.demands.count[one] and mirror >= 0:
            self.promised[mirror, home] = max(0, self.promised[mirror, home] - needed)
            self.promised[secondary, primary] += needed
        self.holders[:, home] -= self.tagged[one]
        self.holders[:, primary] += self.tagged[one]
        if self.demands.count[one]:
            for node, change in ((home, -1), (primary, +1)):
                if not self.books.offline[node]:
                    self.crowds += change * np.outer(self.places[node], self.tagged[one])
        self.primary[one], self.secondary[one] = primary, secondary
        self.location[one] = int(outcome.location[0])
