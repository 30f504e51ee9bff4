"""The score of a few nodes with Python's numbers: ``Score`` without arrays.

The arithmetic is the same, in the same order, so the scores are the same to the last bit. Arrays
take as long for ten nodes as for a hundred, and a program that does without them need not load
NumPy.
"""

from __future__ import annotations

from math import isfinite, sqrt

from coordinator.allocator.arithmetic import added, replaced
from coordinator.allocator.model.standing import Standing
from coordinator.allocator.model.terms import (
    SPREADS,
    WEIGHTS,
    Term,
    TermKind,
    kind_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.allocator.model.standing import Change

    Figures = Sequence[float]  # of one node, by term

_KINDS = tuple((term, kind_of(term), WEIGHTS[term]) for term in Term)


class RowScore(Standing):
    """Nodes as they stand, and what changes of them make of their score.

    Attributes:
        before: figures of each node, see ``figures_of_row``.
        alike: per term that is a spread, the first that is equal to it on all nodes.
    """

    def __init__(self, figures: Sequence[Figures], online: Sequence[bool], crowding: int) -> None:
        """Add up.

        ``figures`` are those of each node; ``crowding`` counts crowded locations.
        """
        seen = [one for one, is_online in zip(figures, online, strict=True) if is_online]
        self.before, self.count, self.crowding = figures, len(seen), crowding
        place = 0
        self._place: list[int] = []  # among those online; -1 for others
        for is_online in online:
            self._place.append(place if is_online else -1)
            place += is_online
        self._columns = list(zip(*seen, strict=True))
        self.sums = [added(column) for column in zip(*figures, strict=True)]
        self.variances = [0.0] * len(Term)
        self.alike = list(range(len(Term)))
        first: dict[tuple[float, ...], int] = {}
        for term in SPREADS if seen else ():
            column = self._columns[term]
            self.alike[term] = at = first.setdefault(column, term)
            if at == term:
                self.sums[term], self.variances[term] = _moments(column)
            else:
                self.sums[term], self.variances[term] = self.sums[at], self.variances[at]
        self.value = self.total()

    def is_online(self, node: int) -> bool:
        """Whether a node, given by position, counts in spreads."""
        return self._place[node] >= 0

    def figures_at(self, places: Sequence[int]) -> list[Figures]:
        """The figures of some of the nodes, given by position."""
        return [self.before[place] for place in places]

    def estimated(self, changes: Sequence[Change], crowding: Sequence[int]) -> list[float]:
        """The score after each of some changes of one node, but for rounding; see ``afresh``."""
        pairs = zip(changes, crowding, strict=True)
        return [self.estimate(change, more) for (change,), more in pairs]

    def estimate(self, change: tuple[int, Figures], crowding: int) -> float:
        """The score after a change of one node, but for rounding; if there is one at all."""
        if not self.count or not isfinite(self.value):
            return self.value
        node, after = change
        before, n, is_online = self.before[node], float(self.count), self._place[node] >= 0
        total = WEIGHTS[Term.LOCATION_EXCLUSION_SCORE] * (self.crowding + crowding)
        for term, kind, weight in _KINDS:
            if kind is TermKind.CROWDING:
                continue
            old, new, sum_ = before[term], after[term], self.sums[term]
            if kind is TermKind.SUM:
                total += weight * (sum_ + (new - old))
                continue
            variance = self.variances[term]
            if is_online and new != old:
                _, variance = replaced(n, sum_, variance, old, new)
            total += weight * sqrt(variance)
        return total

    def afresh(self, changes: Sequence[Change], crowding: Sequence[int]) -> list[float]:
        """The score after each of some changes.

        Args:
            changes: of nodes, given by position, to other figures.
            crowding: what each adds to the count of crowded locations.
        """
        return [self.after(change, more) for change, more in zip(changes, crowding, strict=True)]

    def after(self, changes: Sequence[tuple[int, Figures]], crowding: int) -> float:
        """The score with other figures of some nodes, given by position."""
        if not self.count:
            return 0.0
        total = 0.0
        known: dict[tuple[float, ...], float] = {}
        for term, kind, weight in _KINDS:
            if kind is TermKind.SPREAD:
                moved = self._moved(term, changes)
                value = sqrt(self.variances[term])
                if moved:
                    key = (self.alike[term], *(new for _, new in moved))
                    if key not in known:
                        known[key] = sqrt(_moments(self._with(term, moved))[1])
                    value = known[key]
            elif term is Term.RESERVED_MEM_RTOTAL:
                moved = self._moved(term, changes)
                value = added(self._with(term, moved)) if moved else self.sums[term]
            elif kind is TermKind.SUM:
                shift = added(new[term] - self.before[node][term] for node, new in changes)
                value = self.sums[term] + shift
            else:
                value = float(self.crowding + crowding)
            total += weight * value
        return total

    def _moved(self, term: Term, changes: Sequence[tuple[int, Figures]]) -> list[tuple[int, float]]:
        """Places among those online with other figures of a term."""
        return [
            (self._place[node], new[term])
            for node, new in changes
            if self._place[node] >= 0 and new[term] != self.before[node][term]
        ]

    def _with(self, term: Term, moved: Sequence[tuple[int, float]]) -> list[float]:
        column = list(self._columns[term])
        for place, value in moved:
            column[place] = value
        return column


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Sum and variance."""
    count, total = len(values), added(values)
    mean = total / count
    return total, added((value - mean) * (value - mean) for value in values) / count
