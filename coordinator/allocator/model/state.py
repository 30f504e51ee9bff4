"""The state of a model while instances are moved about in a simulation."""

from __future__ import annotations

import sys
from collections import Counter
from copy import copy
from functools import cached_property

from coordinator.allocator.model import shift
from coordinator.allocator.model.figures import figures_of_row
from coordinator.allocator.model.resources import asked
from coordinator.allocator.model.row_score import RowScore
from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from coordinator.allocator.arrays import Ints
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.model.resources import NodeResources
    from coordinator.allocator.snapshot import Instance

FEW = 64
"""Nodes up to which trying them one by one is faster than arrays."""

FEW_IN_PAIRS, FEW_WITH_NUMPY = 160, 14
"""The same of pairs of nodes: where NumPy would have to be loaded for arrays, and where it is."""


def expect_pairs(instances: int, nodes: int) -> None:
    """Load NumPy if so many instances to be placed in pairs, one by one, take longer than that."""
    if instances * nodes**2 > FEW_IN_PAIRS**2:
        import numpy as np  # noqa: F401 -- from now on ``State.scope`` prefers arrays


def standing_of(model: ClusterModel, nodes: Sequence[int]) -> RowScore:
    """How balanced some nodes are."""
    return State(model).scope(nodes).standing


class Scope:
    """Nodes that are scored together.

    Attributes:
        nodes: rising indices.
        place: the position of each among them.
        is_small: whether loops over its nodes are taken to be faster than arrays.
        crowds: primaries counted by (location tag, exclusion tag) over the online ones.
    """

    def __init__(
        self,
        nodes: Sequence[int],
        make: Callable[[], RowScore],
        crowds: Mapping[tuple[str, str], int],
        *,
        is_small: bool,
    ) -> None:
        self.nodes, self.is_small, self.crowds = nodes, is_small, crowds
        self.place = {node: at for at, node in enumerate(nodes)}
        self._make = make

    @cached_property
    def standing(self) -> RowScore:
        """How they stood when the scope was made; not worked out where no score decides."""
        return self._make()


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
        self._held: dict[int, dict[int, int]] = {}  # by node and primary, where that may change
        self.holders = {tag: Counter(counts) for tag, counts in model.holders.items()}
        self.crowds = {node: Counter(crowd) for node, crowd in model.crowds.items()}

    def copy(self) -> State:
        """The same state, to be changed on its own."""
        other = copy(self)
        other._changed, other._figures = dict(self._changed), dict(self._figures)  # noqa: SLF001 -- one of our own
        other._held = {node: dict(held) for node, held in self._held.items()}  # noqa: SLF001
        other.holders = {tag: Counter(counts) for tag, counts in self.holders.items()}
        other.crowds = {node: Counter(crowd) for node, crowd in self.crowds.items()}
        return other

    @property
    def rows(self) -> list[NodeResources]:
        """The resources of all nodes, as Python's numbers."""
        rows = [*self.model.rows]
        for node, row in self._changed.items():
            rows[node] = row
        return rows

    def at(self, nodes: Ints) -> NodeResources:
        """The resources of some nodes, as arrays of their own."""
        found = self.model.resources.at(nodes)
        for position, node in enumerate(nodes.tolist()) if self._changed else ():
            if node in self._changed:
                found.put(position, self._changed[node])
        return found

    def row(self, node: int) -> NodeResources:
        """The resources of one node, as Python's numbers."""
        return self._changed[node] if node in self._changed else self.model.rows[node]

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

    def scope(self, nodes: Sequence[int], *, for_pairs: bool = False) -> Scope:
        """Look at ``nodes`` as they stand now, to try others ``for_pairs`` or one by one."""
        crowds = self.crowds_of(nodes)
        crowding = crowds.total() - len(crowds)
        few = FEW
        if for_pairs:
            few = FEW_WITH_NUMPY if "numpy" in sys.modules else FEW_IN_PAIRS
        is_small = len(nodes) <= few
        make = self._by_rows if is_small else self._by_arrays
        return Scope(nodes, make(nodes, crowding), crowds, is_small=is_small)

    def _by_rows(self, nodes: Sequence[int], crowding: int) -> Callable[[], RowScore]:
        figures, usable = [*map(self.figures, nodes)], self.model.usable
        return lambda: RowScore(figures, [usable[node] for node in nodes], crowding)

    def _by_arrays(self, nodes: Sequence[int], crowding: int) -> Callable[[], RowScore]:
        import numpy as np

        from coordinator.allocator.model.score import Score

        resources = self.at(np.array(nodes))
        return lambda: Score(resources, crowding)

    def crowds_of(self, nodes: Sequence[int]) -> Counter[tuple[str, str]]:
        """Primaries counted by (location tag, exclusion tag) over those that are online."""
        found: Counter[tuple[str, str]] = Counter()
        for node in nodes if self.crowds else ():
            if self.model.usable[node]:
                found.update(self.crowds.get(node, ()))
        return found

    def clashes(self, demand: Instance, nodes: Sequence[int]) -> list[int]:
        """How many exclusion tags of the instance are taken, per node."""
        tags = self.model.rules.exclusion_tags(demand.tags)
        taken = [self.holders[tag] for tag in tags if tag in self.holders]
        if not taken:
            return [0] * len(nodes)
        return [sum(counts[node] > 0 for counts in taken) for node in nodes]

    def crowding(self, demand: Instance, scope: Scope, nodes: Sequence[int]) -> list[int]:
        """How much more crowded locations would be with the instance on each of ``nodes``."""
        if not scope.crowds or demand.forthcoming:
            return [0] * len(nodes)
        tags, crowds, model = self.model.rules.exclusion_tags(demand.tags), scope.crowds, self.model
        return [
            sum((place, tag) in crowds for place in model.location_tags[node] for tag in tags)
            if model.usable[node]
            else 0
            for node in nodes
        ]

    def promised(self, nodes: Sequence[int], primary: int) -> list[int]:
        """Per node: memory it keeps free for the failure of ``primary``."""
        return [self.held(node).get(primary, 0) for node in nodes]

    def held(self, node: int) -> Mapping[int, int]:
        """By primary: what ``node`` keeps free."""
        return self._held[node] if node in self._held else self.model.peers.held[node]

    def _held_by(self, node: int) -> dict[int, int]:
        """The same to be changed in place."""
        if node not in self._held:
            self._held[node] = dict(self.model.peers.held[node])
        return self._held[node]

    def put_primary(
        self, demand: Instance, node: int, location: int, *, force: bool = True
    ) -> Reason:
        """Run an instance on a node; nothing changes on refusal.

        With ``force``, as by default, the soft limits do not count.
        """
        (clashes,) = self.clashes(demand, [node])
        code, after = shift.add_primary(
            self.row(node), asked(demand), clashes=clashes, location=location, force=force
        )
        if not code:
            self._change(node, after)
            self._count_tags(demand, node, +1)
        return Reason(code)

    def put(self, demand: Instance, nodes: Sequence[int]) -> None:
        """Have an instance on ``nodes``, primary first, whatever the soft limits."""
        self.put_primary(demand, nodes[0], self.model.location_score(demand, *nodes))
        if len(nodes) > 1:
            self.put_secondary(demand, nodes[1], nodes[0])

    def take_primary(self, demand: Instance, node: int, location: int) -> None:
        self._count_tags(demand, node, -1)
        (freed,) = self.clashes(demand, [node])
        after = shift.change_primary(
            self.row(node), asked(demand), clashes=freed, location=location, come=False
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
        promised = self._held_by(node)
        held = promised.get(primary, 0)
        code, after = shift.add_secondary(
            self.row(node), asked(demand), promised=held, force=force, any_disk=ignore_disk
        )
        if code:
            return Reason(code)
        self._change(node, after)
        if not demand.forthcoming:
            promised[primary] = held + demand.reserved_memory
        return Reason.NONE

    def take_secondary(self, demand: Instance, node: int, primary: int) -> None:
        promised = self._held_by(node)
        reserved: Any = self.row(node).reserved
        held = promised.get(primary, 0)
        if not demand.forthcoming:
            left = promised.pop(primary, 0) - demand.reserved_memory
            if left > 0:
                promised[primary] = left
        if held >= reserved:
            reserved = max(promised.values(), default=0)
        row = self.row(node)
        self._change(
            node, shift.change_secondary(row, asked(demand), reserved=reserved, come=False)
        )

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
