"""The scores of all pairs, roughly: enough to leave a few that may be the best.

With the primary in place the variance of a figure is a number of the primary; what the secondary
then changes of it is a number of the secondary, less a product of two. So the variances of all
pairs are a product of two thin matrices, and bounds of them come from vectors. Mostly the bounds
rule out nearly all rows and columns, and the matrix is never made.
"""

from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.model.score import Score
from coordinator.allocator.model.terms import (
    SPREADS,
    TOLERANCE,
    WEIGHTS,
    Term,
    TermKind,
    kind_of,
)

SPREAD_ROWS = np.array(SPREADS)
SUM_ROWS = np.array([term for term in Term if kind_of(term) is TermKind.SUM])
WEIGHT = np.array(WEIGHTS)

_BLOCK = 1 << 16  # pairs worked on at a time, so that the numbers stay in the cache
_FEW = 1 << 14  # pairs for which bounds are not worth while


@dataclass(frozen=True, slots=True)
class Figures:
    """What candidates contribute to each term, and what they would: shape (20, candidates)."""

    before: Floats
    as_primary: Floats
    as_secondary: Floats


def replaced(
    n: float, sums: Floats, variances: Floats, before: Floats, after: Floats
) -> tuple[Floats, Floats]:
    """Sum and variance after one of ``n`` figures changed; rounding may not make it negative."""
    with np.errstate(invalid="ignore", over="ignore"):
        shift = after - before
        growth = after * after - before * before
        change = (n * growth - (2 * sums) * shift) - shift * shift
        # Not np.maximum: a figure that is no number makes the variance 0, as in hail.
        return sums + shift, np.fmax(0, variances + change / (n * n))


class Estimates:
    """Scores of pairs but for rounding; rows are primaries that are not refused."""

    def __init__(
        self,
        score: Score,
        figures: Figures,
        rows: Ints,
        columns: Ints,
        crowding: Ints,
        shared: Ints | None,
    ) -> None:
        """Prepare.

        Args:
            score: of the scored nodes as they stand.
            figures: of the candidates.
            rows: positions of the primaries among the candidates.
            columns: positions of the candidates that can be secondary.
            crowding: per candidate, what it adds as primary to the count of crowded locations.
            shared: location tags each two candidates share, if that counts.
        """
        self.rows, self.columns, self._shared = rows, columns, shared
        self._n = float(score.count)
        self._spreads: list[tuple[int, float]] = []
        self._left: list[Floats] = []
        self._right: list[Floats] = []
        if not score.count:  # with no node online there is nothing to score
            self.of_row, self.of_column = np.zeros(len(rows)), np.zeros(len(crowding))
            return
        with np.errstate(invalid="ignore"):  # nodes that are refused may have none of anything
            self._prepare(score, figures, crowding)

    def _prepare(self, score: Score, figures: Figures, crowding: Ints) -> None:
        n, rows = self._n, self.rows
        before, primary = figures.before[:, rows], figures.as_primary[:, rows]
        second, was = figures.as_secondary, figures.before
        self._sums, variances = replaced(
            n,
            score.sums[SPREAD_ROWS, None],
            score.variances[SPREAD_ROWS, None],
            before[SPREAD_ROWS],
            primary[SPREAD_ROWS],
        )
        self._variances = variances
        weights = WEIGHT[SPREAD_ROWS]
        shift = second[SPREAD_ROWS] - was[SPREAD_ROWS]
        grown = (n * (second[SPREAD_ROWS] ** 2 - was[SPREAD_ROWS] ** 2) - shift * shift) / (n * n)
        # What is kept free is apart: some pairs change it where others do not.
        reserve = SPREADS.index(Term.RESERVED_MEM_CV)
        fixed = ~shift[:, self.columns].any(axis=1)
        fixed[reserve] = False
        self.of_row = weights[fixed] @ np.sqrt(variances[fixed])
        of_sums = WEIGHT[SUM_ROWS]
        self.of_row += of_sums @ (score.sums[SUM_ROWS, None] + (primary - before)[SUM_ROWS])
        weight = WEIGHTS[Term.LOCATION_EXCLUSION_SCORE]
        self.of_row += weight * (score.crowding + crowding[rows])
        self.of_column = of_sums @ (second - was)[SUM_ROWS]
        # Per distinct spread, with its squared weight: thin matrices to be multiplied.
        found: dict[bytes, tuple[int, float]] = {}
        for at in np.flatnonzero(~fixed).tolist():
            parts = (self._sums, variances, shift, grown)
            key = b"".join(part[at].tobytes() for part in parts) if at != reserve else b""
            first, so_far = found.get(key, (at, 0.0))
            found[key] = first, so_far + float(weights[at])
        self._spreads = list(found.values())
        ones = np.ones(len(rows))
        self._left = [
            w * w * np.stack((variances[at], ones, -2 * self._sums[at])) for at, w in self._spreads
        ]
        self._right = [
            np.stack((np.ones(len(self.of_column)), grown[at], shift[at] / (n * n)))
            for at, _ in self._spreads
        ]

    def of_pairs(self, row: Ints, column: Ints, secondary: Floats, before: Floats) -> Floats:
        """Single pairs whose secondaries have figures of their own.

        Args:
            row: places in ``rows``.
            column: positions of the secondaries.
            secondary: their figures with the instance.
            before: and without it.
        """
        n = self._n
        if not n:
            return np.zeros(len(row))
        estimates: Floats = self.of_row[row] + WEIGHT[SUM_ROWS] @ (secondary - before)[SUM_ROWS]
        for at, weight in self._spreads:
            term = SPREADS[at]
            _, variance = replaced(
                n, self._sums[at, row], self._variances[at, row], before[term], secondary[term]
            )
            estimates += weight * np.sqrt(variance)
        if self._shared is not None:
            estimates += WEIGHTS[Term.LOCATION_SCORE] * self._shared[self.rows[row], column]
        return estimates

    def block(self, rows: Ints, columns: Ints) -> Floats:
        """Matrix of some rows, given by place, and some columns, given by position.

        A node with itself is infinite.
        """
        matrix: Floats = self.of_row[rows][:, None] + self.of_column[columns]
        step = max(1, _BLOCK // max(1, len(columns)))
        for left, right in zip(self._left, self._right, strict=True):
            some, factors = right[:, columns], left[:, rows].T
            for start in range(0, len(rows), step):
                part = slice(start, start + step)
                variances = factors[part] @ some
                np.maximum(variances, 0, out=variances)
                np.sqrt(variances, out=variances)
                matrix[part] += variances
        if self._shared is not None:
            own = self._shared[np.ix_(self.rows[rows], columns)]
            matrix += WEIGHTS[Term.LOCATION_SCORE] * own
        matrix[self.rows[rows][:, None] == columns] = np.inf
        return matrix

    def matrix(self) -> Floats:
        """All pairs; infinite where the secondary is refused."""
        table = np.full((len(self.rows), len(self.of_column)), np.inf)
        table[:, self.columns] = self.block(np.arange(len(self.rows)), self.columns)
        return table

    def near(self, count: int, special: Bools | None) -> tuple[Ints, Ints, Floats]:
        """Pairs that may be among the best ``count``: places of rows, positions, estimates.

        Args:
            count: how many are wanted.
            special: matrix of pairs that are looked at elsewhere; None if there are none.
        """
        rows, columns = np.arange(len(self.rows)), self.columns
        enough = np.inf
        if len(rows) > count + 1 and len(rows) * len(columns) > _FEW:
            of_rows, of_columns = self._bounds()
            best = np.argpartition(of_rows, count)[: count + 1]
            enough = lowest(self._without(best, columns, special), count) + TOLERANCE
            rows, columns = rows[of_rows <= enough], columns[of_columns[columns] <= enough]
        matrix = self._without(rows, columns, special)
        enough = min(enough, lowest(matrix, count) + TOLERANCE)
        row, column = np.nonzero((matrix <= enough) & (matrix < np.inf))
        return rows[row], columns[column], matrix[row, column]

    def _without(self, rows: Ints, columns: Ints, special: Bools | None) -> Floats:
        matrix = self.block(rows, columns)
        if special is not None:
            matrix[special[np.ix_(rows, columns)]] = np.inf
        return matrix

    def _bounds(self) -> tuple[Floats, Floats]:
        """Per row and per column: less than which none of its pairs can be."""
        columns = self.columns
        of_rows = self.of_row + self.of_column[columns].min(initial=np.inf)
        of_columns = self.of_column + self.of_row.min(initial=np.inf)
        for left, right in zip(self._left, self._right, strict=True):
            # The product is least where its one factor, which hardly differs, is at an end.
            ends = np.array((left[2].min(), left[2].max()))
            scale = left[1, 0]
            least = scale * right[1] + np.minimum(ends[0] * right[2], ends[1] * right[2])
            of_rows = of_rows + np.sqrt(np.maximum(left[0] + least[columns].min(), 0))
            of_columns = of_columns + np.sqrt(np.maximum(left[0].min() + least, 0))
        return of_rows - TOLERANCE, of_columns - TOLERANCE


def lowest(matrix: Floats, count: int) -> float:
    """The so-many-th lowest value; infinite if there are not as many."""
    if matrix.size <= count:
        return float("inf")
    return float(np.partition(matrix, count - 1, axis=None)[count - 1])
