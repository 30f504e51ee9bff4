"""The best of all pairs of changes on two different nodes, one of each of two kinds.

As with ``estimate``, the variance after both is a sum of what each brings, less a product, so all
pairs are estimated by products of thin matrices, a block of rows at a time. Only pairs next to the
best are scored exactly.
"""

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.model.score import Changed, Score
from coordinator.allocator.model.terms import SPREADS, WEIGHTS, Term, TermKind, kind_of
from coordinator.allocator.rank import TOLERANCE

_BLOCK = 1 << 17  # pairs estimated at a time, so that little memory is needed
_MOST = 1 << 15  # pairs scored exactly at a time
_SUMS = [term for term in Term if kind_of(term) is TermKind.SUM]


class TwoChanges:
    """Rows are the first changes, columns the second; both kinds on the same nodes."""

    def __init__(
        self,
        score: Score,
        positions: Ints,
        first: Floats,
        second: Floats,
        crowding: Ints,
        shared: Ints | None,
        special: tuple[Ints, Ints, Floats],
    ) -> None:
        """Prepare.

        Args:
            score: of the scored nodes as they stand.
            positions: of the nodes among them.
            first: the nodes' figures after the first change, shape (20, nodes).
            second: the same after the second.
            crowding: per row, what it adds to the count of crowded locations.
            shared: matrix of what a pair adds to the first's location score, if anything.
            special: rows and columns of pairs whose second change is another, and the figures.
        """
        self._score, self._positions, self._shared = score, positions, shared
        self._first, self._second, self._crowding = first, second, crowding
        keys = special[0] * len(positions) + special[1]
        order = np.argsort(keys)
        self._special_keys, self._special = keys[order], special[2][:, order]
        before = score.before[:, positions]
        weight = WEIGHTS[Term.LOCATION_EXCLUSION_SCORE]
        self._of_row = weight * (score.crowding + crowding.astype(np.float64))
        self._of_column = np.zeros(len(positions))
        for term in _SUMS:
            own = WEIGHTS[term] * (score.sums[term] + first[term] - before[term])
            self._of_row = self._of_row + own
            self._of_column = self._of_column + WEIGHTS[term] * (second[term] - before[term])
        self._factors = list(self._thin(before).values()) if score.count else []

    def _thin(self, before: Floats) -> dict[bytes, tuple[float, Floats, Floats]]:
        """Per distinct spread its weight and two thin matrices; the weight goes under the root."""
        score, found = self._score, dict[bytes, tuple[float, Floats, Floats]]()
        n, online = score.count, score.online[self._positions]
        for term in SPREADS:
            centred = before[term] - score.means[term]
            parts = []
            for after in (self._first[term], self._second[term]):
                shift = np.where(online, after - before[term], 0.0) / n
                growth = np.where(online, shift * (2 * centred + shift * n), 0.0)
                parts.append((shift, growth - shift * shift))
            (shift, grown), (other_shift, other_grown) = parts
            ones, base = np.ones(len(shift)), score.variances[term]
            left = np.stack((base + grown, ones, -2 * shift))
            right = np.stack((ones, other_grown, other_shift))
            key = left.tobytes() + right.tobytes()
            weight = WEIGHTS[term] + (found[key][0] if key in found else 0.0)
            found[key] = weight, left, right
        return found

    def best(self, possible: Bools) -> tuple[int, int]:
        """The pair with the lowest score, the last among equals.

        Args:
            possible: matrix of the pairs in question; there is one.
        """
        if not np.isfinite(self._score.value):
            return self._last_best(*np.nonzero(possible))
        size = len(self._positions)
        special_row, special_column = np.divmod(self._special_keys, size)
        fits = np.flatnonzero(possible[special_row, special_column])
        special_row, special_column = special_row[fits], special_column[fits]
        values = [self._score.estimates(self._changed(special_row, special_column))]
        rows, columns = [special_row], [special_column]
        lowest = float(values[0].min(initial=np.inf))
        usual = possible.copy()
        usual[special_row, special_column] = False
        step = max(1, _BLOCK // size)
        for start in range(0, size, step):
            part = slice(start, start + step)
            table = np.where(usual[part], self._estimates(part), np.inf)
            lowest = min(lowest, float(table.min()))
            row, column = np.nonzero((table <= lowest + TOLERANCE) & usual[part])
            rows.append(row + start)
            columns.append(column)
            values.append(table[row, column])
        row, column = np.concatenate(rows), np.concatenate(columns)
        near = np.flatnonzero(np.concatenate(values) <= lowest + TOLERANCE)
        row, column = row[near], column[near]
        order = np.argsort(row * size + column)
        return self._last_best(row[order], column[order])

    def _estimates(self, part: slice) -> Floats:
        table: Floats = self._of_row[part][:, None] + self._of_column
        for weight, left, right in self._factors:
            variances = (left[:, part].T * (weight * weight)) @ right
            np.maximum(variances, 0, out=variances)
            np.sqrt(variances, out=variances)
            table += variances
        if self._shared is not None:
            table += WEIGHTS[Term.LOCATION_SCORE] * self._shared[part]
        return table

    def _last_best(self, row: Ints, column: Ints) -> tuple[int, int]:
        """By exact scores; the pairs are in order."""
        best, at = np.inf, 0
        for start in range(0, len(row), _MOST):
            part = slice(start, start + _MOST)
            scores = self._score.exact(self._changed(row[part], column[part]))
            unknown = np.flatnonzero(np.isnan(scores))
            if len(unknown):  # no number is better than another; the last is taken
                best, at = -np.inf, start + int(unknown[-1])
            elif scores.min() <= best:
                best = float(scores.min())
                at = start + int(np.flatnonzero(scores == best)[-1])
        return int(row[at]), int(column[at])

    def _changed(self, row: Ints, column: Ints) -> Changed:
        first, second = self._first[:, row], self._second[:, column]
        if len(self._special_keys):
            keys = row * len(self._positions) + column
            at = np.minimum(np.searchsorted(self._special_keys, keys), len(self._special_keys) - 1)
            found = self._special_keys[at] == keys
            second[:, found] = self._special[:, at[found]]
        if self._shared is not None:
            first[Term.LOCATION_SCORE] += self._shared[row, column]
        positions = self._positions
        return Changed(
            np.stack((positions[row], positions[column])),
            np.stack((first, second), axis=1),
            self._crowding[row],
        )
