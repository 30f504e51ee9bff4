"""Reboots in rounds: which nodes may be down at once, and where their instances go meanwhile.

Two nodes may not be down together that mirror an instance between them, or whose instances
fail over to the same node. A colouring of that graph gives the rounds; each is split further
where the nodes that stay up have no room for what has to be moved.

The choices are those of Debian's hroller, to the last tie.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from coordinator.allocator.rolling.colouring import Graph, graph_of
from coordinator.allocator.rolling.layout import (
    Layout,
    with_primary,
    with_secondary,
    without_primary,
    without_secondary,
)
from coordinator.allocator.snapshot import NOWHERE, Instance

Round = tuple[list[int], Layout]
"""Nodes that may be down together, and where their instances are then."""


_Empty = Callable[[Layout, int, list[int]], Layout | None]
"""Empties a node, each of its instances onto the first target with room; None if one has none."""


def graph_of_nodes(
    layout: Layout, instances: Sequence[Instance], nodes: Collection[int], *, all_off: bool
) -> Graph:
    """Edges between nodes that may not be down together.

    Args:
        layout: what is where.
        instances: by index.
        nodes: those that count. The vertices go from the first to the last of them; those in
            between that do not count are without edges.
        all_off: whether all instances are off, so that nothing fails over.
    """
    mirrored: list[tuple[int, int]] = []
    for instance in instances:
        if instance.is_mirrored:
            ends = instance.primary, instance.secondary
            mirrored += (ends, ends[::-1])
    edges = mirrored
    if not all_off:
        known = set(mirrored)
        shared = dict.fromkeys(
            (one, other)
            for node in range(len(layout.places))
            for homes in [[instances[index].primary for index in layout.places[node].secondaries]]
            for one in homes
            for other in homes
        )
        edges = mirrored + [edge for edge in shared if edge not in known]
    inside = [edge for edge in edges if edge[0] in nodes and edge[1] in nodes]
    return graph_of(range(min(nodes), max(nodes) + 1), inside)


class Mover:
    """Empties nodes of a cluster, on paper; ``targets`` are the nodes that take instances."""

    def __init__(self, instances: Sequence[Instance], targets: Sequence[int]) -> None:
        self._instances = instances
        self._targets = list(targets)

    def unmirrored(self, layout: Layout, node: int) -> list[int]:
        """The primaries of a node that have no second copy."""
        there = layout.places[node].primaries
        return [index for index in there if not self._instances[index].is_mirrored]

    def rounds_by_room(self, nodes: Sequence[int], layout: Layout) -> list[Round] | None:
        """Split nodes by whether what is not mirrored finds room; None if it does not."""

        def empty(now: Layout, node: int, targets: list[int]) -> Layout | None:
            return _each(self.unmirrored(now, node), now, partial(self._move, targets=targets))

        return self._split(nodes, layout, empty)

    def rounds_by_copies(self, nodes: Sequence[int], layout: Layout) -> list[Round] | None:
        """Split nodes by whether their copies find room elsewhere; None if they do not."""

        def empty(now: Layout, node: int, targets: list[int]) -> Layout | None:
            return _each(now.places[node].secondaries, now, partial(self._copy, targets=targets))

        return self._split(nodes, layout, empty)

    def failed_over(self, nodes: Iterable[int], layout: Layout) -> Layout | None:
        """Every mirrored primary of the nodes on its other node; None if one does not fit."""
        some = [
            index
            for node in nodes
            for index in layout.places[node].primaries
            if self._instances[index].is_mirrored
        ]
        return _each(some, layout, self._swap)

    def _split(self, nodes: Sequence[int], layout: Layout, empty: _Empty) -> list[Round] | None:
        """Clear as many nodes as can be at once, then as many of the rest, each anew."""
        rounds: list[Round] = []
        left = list(nodes)
        while left:
            cleared, now = self._clear(left, layout, empty)
            if not cleared:
                return None
            rounds.append((cleared, now))
            left = [node for node in left if node not in cleared]
        return rounds

    def _clear(self, nodes: Sequence[int], layout: Layout, empty: _Empty) -> Round:
        """Clear node after node, passing over those whose instances find no room.

        Those that are cleared later may still take instances of the earlier ones.
        """
        cleared: list[int] = []
        targets = list(self._targets)
        for node in nodes:
            others = [each for each in targets if each != node]
            group = layout.places[node].group
            near = [each for each in others if layout.places[each].group == group]
            now = empty(layout, node, near)
            if now is not None:
                cleared.append(node)
                layout, targets = now, others
        return cleared, layout

    def _move(self, layout: Layout, index: int, targets: list[int]) -> Layout | None:
        """Run an instance on the first target with room."""
        one = self._instances[index]
        home, secondary = layout.assignments[index]
        for target in targets:
            place = with_primary(layout.places[target], index, one)
            if place is not None:
                left = without_primary(layout.places[home], index, one)
                return layout.moved({target: place, home: left}, index, (target, secondary))
        return None

    def _copy(self, layout: Layout, index: int, targets: list[int]) -> Layout | None:
        """Put an instance's copy on the first target with room.

        In the resources of the node that the copy leaves, its primary's are entered, as in
        Debian's program. As this node is down, they are hardly ever looked at again.
        """
        one = self._instances[index]
        primary, old = layout.assignments[index]
        for target in targets:
            place = with_secondary(layout.places[target], index, one)
            if place is not None and target != primary:
                left = without_secondary(layout.places[primary], index, one)
                return layout.moved({target: place, old: left}, index, (primary, target))
        return None

    def _swap(self, layout: Layout, index: int) -> Layout | None:
        one = self._instances[index]
        primary, secondary = layout.assignments[index]
        if secondary == NOWHERE:
            return None
        left = without_secondary(layout.places[secondary], index, one)
        first = with_primary(left, index, one)
        second = with_secondary(without_primary(layout.places[primary], index, one), index, one)
        if first is None or second is None:
            return None
        return layout.moved({secondary: first, primary: second}, index, (secondary, primary))


def _each(
    some: Iterable[int], layout: Layout, step: Callable[[Layout, int], Layout | None]
) -> Layout | None:
    """Take one step after the other; None as soon as one cannot be taken."""
    now: Layout | None = layout
    for one in some:
        now = None if now is None else step(now, one)
    return now
