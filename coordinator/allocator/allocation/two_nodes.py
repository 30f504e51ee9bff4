"""Two nodes for one instance: who can be which, and what either then contributes to the score.

What the secondary promises to keep free for the primary depends on the pair only where the two
have instances in common already; those few pairs are worked out one by one (*special* ones).
"""

from __future__ import annotations

from collections import defaultdict

from coordinator.allocator.model.trials import as_secondary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from coordinator.allocator.model.state import Scope, State
    from coordinator.allocator.model.trials import Trials
    from coordinator.allocator.snapshot import Instance


class AllowedPairs:
    """Pairs that a rule allows, by position of the candidates.

    Attributes:
        firsts: those that may be primary.
    """

    __slots__ = ("_closed", "_forbidden", "_size", "firsts")

    def __init__(
        self,
        size: int,
        firsts: Collection[int],
        seconds: Collection[int],
        forbidden: Iterable[tuple[int, int]],
    ) -> None:
        """Make a rule.

        Args:
            size: number of candidates.
            firsts: as of the class.
            seconds: those that may be secondary.
            forbidden: pairs of such that are not allowed all the same.
        """
        self._size, self.firsts = size, frozenset(firsts)
        self._closed = frozenset(range(size)).difference(seconds)
        self._forbidden: dict[int, list[int]] = defaultdict(list)
        for first, second in forbidden:
            self._forbidden[first].append(second)

    def closed_to(self, first: int) -> Collection[int]:
        """The secondaries with which a primary makes no pair that is allowed."""
        if first not in self.firsts:
            return range(self._size)
        return self._closed.union(self._forbidden.get(first, ()))


class TwoNodes:
    """Candidates changed in two ways, and which of them make a pair, by position.

    Attributes:
        places: of the candidates among the nodes that are scored.
        first, second: their figures after either change, as ``Trials`` have them.
        rows, columns: those that the first and the second change are made of.
        special: pairs whose second change is another: the code of its ``Reason`` if it is refused.
        special_figures: the figures after these, which keep another amount of memory free.
        crowding: per candidate, what its first change adds to the count of crowded locations.
        locations: per candidate its location tags, if those that a pair shares count.
    """

    def __init__(
        self,
        state: State,
        scope: Scope,
        demand: Instance,
        first: Trials,
        second: Trials,
        *,
        force: bool = False,
    ) -> None:
        """Make pairs.

        Args:
            state: the cluster in which the second change is made.
            scope: the nodes whose score counts.
            demand: the instance.
            first: it running on each candidate.
            second: a copy of it on each of the same, which have no instances in common with others.
            force: whether soft limits do not count for copies.
        """
        model, nodes = state.model, first.nodes
        here = {node: at for at, node in enumerate(nodes)}
        promised = {
            (here[primary], at): memory
            for at, secondary in enumerate(nodes)
            for primary, memory in state.held(secondary).items()
            if primary in here
        }
        holders, amounts = [nodes[column] for _, column in promised], [*promised.values()]
        special = as_secondary(state, scope, holders, demand, promised=amounts, force=force)
        self.places = [scope.place[node] for node in nodes]
        self.first, self.second = first.figures, second.figures
        self.rows = [at for at, code in enumerate(first.codes) if not code]
        self.columns = [at for at, code in enumerate(second.codes) if not code]
        self.special = dict(zip(promised, special.codes, strict=True))
        self.special_figures = special.figures
        self.crowding = first.crowding
        self.locations = None
        if model.has_locations and not demand.forthcoming:
            self.locations = [model.location_tags[node] for node in nodes]
