"""The score of nodes as they stand, and after changes of a few of them, with Python's numbers.

Arrays take as long for ten nodes as for a hundred, and a program that does without them need not
load NumPy. Many changes side by side are ``Score``'s, which is made of this.
"""

from __future__ import annotations

from itertools import compress, count
from math import isfinite, sqrt

from coordinator.allocator.arithmetic import added, replaced
from coordinator.allocator.model.terms import KINDS, SPREADS, WEIGHTS, Term, TermKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Figures = Sequence[float]  # of one node, by term
    Change = Sequence[tuple[int, Figures]]  # nodes by position, with their figures afterwards


class RowScore:
    """Nodes as they stand, and what changes of them make of their score.

    Attributes:
        count: number of nodes online.
        crowding: count of crowded locations.
        sums, variances: per term; the latter of spreads only.
        alike: per term that is a spread, the first that is equal to it on all nodes.
        value: the score; NaN when a node has none of something.
    """

    sums: Any
    variances: Any

    def __init__(self, figures: Sequence[Figures], online: Sequence[bool], crowding: int) -> None:
        """Add up.

        ``figures`` are those of each node, see ``figures_of_row``.
        """
        self._rows = figures
        self._add_up(list(zip(*figures, strict=True)), online, crowding)

    def _add_up(
        self, columns: Sequence[Sequence[float]], online: Sequence[bool], crowding: int
    ) -> None:
        """The same of figures given by term; without nodes there may be none."""
        places = count()
        # Among those online; -1 for others.
        self._place = [next(places) if is_online else -1 for is_online in online]
        self._columns = [tuple(compress(column, online)) for column in columns]
        self.count, self.crowding = sum(online), crowding
        self.sums, self.variances = [0.0] * len(Term), [0.0] * len(Term)
        self.alike = list(range(len(Term)))
        first: dict[tuple[float, ...], int] = {}
        for term, kind, _ in KINDS if self.count else ():
            if kind is not TermKind.SPREAD:
                self.sums[term] = added(columns[term])
                continue
            self.alike[term] = at = first.setdefault(self._columns[term], term)
            moments = _moments(self._columns[term]) if at == term else None
            self.sums[term], self.variances[term] = moments or (self.sums[at], self.variances[at])
        self.value = 0.0
        for weight, value in zip(WEIGHTS, self.values(), strict=False):
            self.value += weight * value

    def values(self) -> list[float]:
        """The terms as they stand, without weights; none with no node online."""
        if not self.count:
            return []
        values = [float(sum_) for sum_ in self.sums]
        for term in SPREADS:
            values[term] = sqrt(self.variances[term])
        values[Term.LOCATION_EXCLUSION_SCORE] = float(self.crowding)
        return values

    def parts(self) -> dict[Term, float]:
        """What each term adds to the score."""
        values = self.values() or [0.0] * len(Term)
        return {term: WEIGHTS[term] * value for term, value in zip(Term, values, strict=True)}

    def is_online(self, node: int) -> bool:
        """Whether a node, given by position, counts in spreads."""
        return self._place[node] >= 0

    def figures_at(self, places: Sequence[int]) -> Any:
        """The figures of some of the nodes, given by position."""
        return [self._rows[place] for place in places]

    def estimated(self, changes: Sequence[Change], crowding: Sequence[int]) -> list[float]:
        """The score after each of some changes of one node, but for rounding; see ``afresh``."""
        pairs = zip(changes, crowding, strict=True)
        return [self.estimate(change, more) for (change,), more in pairs]

    def estimate(self, change: tuple[int, Figures], crowding: int) -> float:
        """The score after a change of one node, but for rounding; if there is one at all."""
        if not self.count or not isfinite(self.value):
            return self.value
        node, after = change
        before, n, is_online = self._rows[node], float(self.count), self._place[node] >= 0
        total = WEIGHTS[Term.LOCATION_EXCLUSION_SCORE] * (self.crowding + crowding)
        for term, kind, weight in KINDS:
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

    def after(self, changes: Change, crowding: int) -> float:
        """The score with other figures of some nodes, given by position."""
        if not self.count:
            return 0.0
        total = 0.0
        known: dict[tuple[float, ...], float] = {}
        for term, kind, weight in KINDS:
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
                shift = added(new[term] - self._rows[node][term] for node, new in changes)
                value = self.sums[term] + shift
            else:
                value = float(self.crowding + crowding)
            total += weight * value
        return total

    def _moved(self, term: Term, changes: Change) -> list[tuple[int, float]]:
        """Places among those online with other figures of a term."""
        return [
            (self._place[node], new[term])
            for node, new in changes
            if self._place[node] >= 0 and new[term] != self._rows[node][term]
        ]

    def _with(self, term: Term, moved: Sequence[tuple[int, float]]) -> list[float]:
        column = list(self._columns[term])
        for place, value in moved:
            column[place] = value
        return column


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Sum and variance."""
    size, total = len(values), added(values)
    mean = total / size
    return total, added((value - mean) * (value - mean) for value in values) / size
