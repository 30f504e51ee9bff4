"""All pairs of nodes for one mirrored instance.

What the secondary promises to keep free for the primary depends on the pair only where the two
have instances in common already; those few pairs are worked out one by one (*special* ones).
"""

from __future__ import annotations

from collections import Counter

from coordinator.allocator.model.row_score import RowScore
from coordinator.allocator.model.trials import as_primary, as_secondary
from coordinator.allocator.refusal import REASONS, Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from coordinator.allocator.allocation.pair_arrays import ArrayPairs
    from coordinator.allocator.allocation.pair_rows import RowPairs
    from coordinator.allocator.model.state import Scope, State
    from coordinator.allocator.model.trials import Trials
    from coordinator.allocator.snapshot import Instance


class AllowedPairs:
    """Pairs that a rule allows.

    Attributes:
        firsts, seconds: positions of candidates that may be primary, or secondary.
        forbidden: pairs of such that are not allowed all the same.
    """

    __slots__ = ("firsts", "forbidden", "seconds")

    def __init__(
        self,
        firsts: Collection[int],
        seconds: Collection[int],
        forbidden: Collection[tuple[int, int]],
    ) -> None:
        self.firsts, self.seconds = frozenset(firsts), frozenset(seconds)
        self.forbidden = frozenset(forbidden)

    def has(self, first: int, second: int) -> bool:
        pair = first, second
        return first in self.firsts and second in self.seconds and pair not in self.forbidden


class TwoNodes:
    """Candidates changed in two ways, and which of them make a pair, by position.

    Attributes:
        places: of the candidates among the nodes that are scored.
        first, second: their figures after either change, as ``Trials`` have them.
        rows, columns: those that the first and the second change are made of.
        special: pairs whose second change is another: the code of its ``Reason`` if it is refused.
        special_figures: the figures after these.
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
        self.crowding = state.crowding(demand, scope, nodes)
        self.locations = None
        if model.has_locations and not demand.forthcoming:
            self.locations = [model.location_tags[node] for node in nodes]

    def scored(self, scope: Scope) -> RowPairs | ArrayPairs:
        """The scores of the pairs."""
        if isinstance(scope.standing, RowScore):
            from coordinator.allocator.allocation.pair_rows import RowPairs

            return RowPairs(scope.standing, self)
        from coordinator.allocator.allocation.pair_arrays import ArrayPairs

        return ArrayPairs(scope.standing, self)


class Pairs:
    """Every two candidates as primary and secondary.

    Attributes:
        nodes: the candidates' indices, rising.
        primary_codes: ``Reason`` per candidate as primary.
        secondary_codes: the same as secondary of a node it has no instances with.

    With ``force`` the soft limits of the primary do not count, as in hail; those of the
    secondary do.
    """

    def __init__(
        self,
        state: State,
        scope: Scope,
        candidates: Sequence[int],
        demand: Instance,
        *,
        force: bool = False,
    ) -> None:
        model = state.model
        self.nodes = candidates
        self._position = {node: at for at, node in enumerate(candidates)}
        location = model.unmet_locations(demand, candidates)
        first = as_primary(state, scope, candidates, demand, location=location, force=force)
        first.refuse(model.forbidden(demand, candidates))
        second = as_secondary(state, scope, candidates, demand)
        self.primary_codes, self.secondary_codes = first.codes, second.codes
        pairs = TwoNodes(state, scope, demand, first, second)
        self._special_codes, self._scores = pairs.special, pairs.scored(scope)

    def count(self) -> tuple[int, Counter[Reason]]:
        """How many pairs there are, and how many are refused for what."""
        size = len(self.nodes)
        usable = [not code for code in self.primary_codes]
        times, count = [0] * len(REASONS), sum(usable)
        for first, second, is_usable in zip(
            self.primary_codes, self.secondary_codes, usable, strict=True
        ):
            times[first] += size - 1
            # How many usable primaries the candidate can be the secondary of.
            times[second] += count - is_usable
        for (first, second), code in self._special_codes.items():
            if usable[first]:
                times[self.secondary_codes[second]] -= 1
                times[code] += 1
        refused = {
            reason: many for reason, many in zip(REASONS, times, strict=True) if reason and many
        }
        return size * (size - 1), Counter(refused)

    def count_of(self, primary: int) -> Counter[Reason]:
        """How many pairs with this primary are refused for what."""
        row = self._position[primary]
        if self.primary_codes[row]:
            return Counter({REASONS[self.primary_codes[row]]: len(self.nodes) - 1})
        codes = [
            self._special_codes.get((row, at), code)
            for at, code in enumerate(self.secondary_codes)
            if at != row
        ]
        return Counter(REASONS[code] for code in codes if code)

    def allowed(
        self,
        firsts: Collection[int],
        seconds: Collection[int],
        forbidden: Collection[tuple[int, int]] = (),
    ) -> AllowedPairs | None:
        """Some of the pairs, given by nodes; None if these are all."""
        here = self._position
        rows = [here[node] for node in firsts if node in here]
        columns = [here[node] for node in seconds if node in here]
        pairs = [(here[one], here[two]) for one, two in forbidden if one in here and two in here]
        possible = sum(not code for code in self.primary_codes)
        is_all = sum(not self.primary_codes[at] for at in rows) == possible
        if is_all and len(columns) == len(here) and not pairs:
            return None
        return AllowedPairs(rows, columns, pairs)

    def from_best(
        self, allowed: AllowedPairs | None, count: int | None
    ) -> Iterator[tuple[tuple[int, int], float]]:
        """Yield ((primary, secondary), score), the best first.

        Among equals the last primary comes first, then the last secondary.

        Args:
            allowed: which pairs to look at; None for all.
            count: how many are wanted at most; None for no limit, which may be slower.
        """
        for (first, second), score in self._scores.from_best(allowed, count):
            yield (self.nodes[first], self.nodes[second]), score

    def count_rejected(self, allowed: AllowedPairs) -> int:
        """How many pairs hail tries in vain before it is content, primary by primary."""
        return self._scores.count_rejected(allowed)
