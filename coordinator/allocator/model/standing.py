"""The score of nodes as they stand, whichever way it was added up."""

from __future__ import annotations

from math import sqrt

from coordinator.allocator.model.terms import SPREADS, WEIGHTS, Term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    # Nodes, by position among those scored, with their figures afterwards.
    Change = Sequence[tuple[int, Sequence[float]]]


class Standing:
    """Sums of figures.

    Attributes:
        count: number of nodes online.
        crowding: count of crowded locations.
        sums, variances: per term; the latter of spreads only.
        value: the score; NaN when a node has none of something.
    """

    count: int
    crowding: int
    sums: Any
    variances: Any
    value: float

    def values(self) -> list[float]:
        """The terms as they stand, without weights; none with no node online."""
        if not self.count:
            return []
        values = [float(sum_) for sum_ in self.sums]
        for term in SPREADS:
            values[term] = sqrt(self.variances[term])
        values[Term.LOCATION_EXCLUSION_SCORE] = float(self.crowding)
        return values

    def total(self) -> float:
        """The score: all terms with their weights, added in their order."""
        total = 0.0
        for weight, value in zip(WEIGHTS, self.values(), strict=False):
            total += weight * value
        return total

    def parts(self) -> dict[Term, float]:
        """What each term adds to the score."""
        values = self.values() or [0.0] * len(Term)
        return {term: WEIGHTS[term] * value for term, value in zip(Term, values, strict=True)}
