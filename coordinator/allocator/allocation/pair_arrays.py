"""The scores of all pairs of many nodes at once, as arrays.

A score is a sum of terms. Most depend on one node of the pair only; the few spreads that
depend on both make a matrix, row by primary and column by secondary, of which mostly bounds are
enough (see ``estimate``). Of special pairs, see ``pair``, the figures are worked out one by one.

hail scores pairs by updating sums, not afresh, which rounds differently; so do we.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from coordinator.allocator.allocation.estimate import (
    SPREAD_ROWS,
    SUM_ROWS,
    WEIGHT,
    Estimates,
    Figures,
    lowest,
    replaced,
)
from coordinator.allocator.model.score import Changed
from coordinator.allocator.model.terms import SPREADS, TOLERANCE, Term
from coordinator.allocator.rank import from_best

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coordinator.allocator.allocation.pair import AllowedPairs, TwoNodes
    from coordinator.allocator.arrays import Bools, Floats, Ints
    from coordinator.allocator.model.score import Score

_AT_ONCE = 1 << 15  # pairs scored exactly at a time
_FIRST = 512  # pairs gone through before all are


class ArrayPairs:
    """Pairs side by side; see ``TwoNodes`` for what they are made of."""

    def __init__(self, standing: Score, pairs: TwoNodes) -> None:
        self._standing = standing
        self._size = len(pairs.places)
        self._places = np.array(pairs.places, dtype=np.int64)
        self._first, self._second = pairs.first, pairs.second
        self._before = standing.before[:, self._places]
        self._offline = ~standing.online[self._places]
        self._rows = np.array(pairs.rows, dtype=np.int64)
        self._columns = np.array(pairs.columns, dtype=np.int64)
        self._crowding = np.array(pairs.crowding, dtype=np.int64)
        everyone = np.arange(self._size)
        self._keep_spreads(self._first, everyone)
        self._keep_spreads(self._second, everyone)
        self._shared = None
        if pairs.locations is not None:
            self._shared = shared_locations(pairs.locations) * ~self._offline[:, None]
        self._read_special(pairs)

    def _read_special(self, pairs: TwoNodes) -> None:
        ends = np.array([*pairs.special], dtype=np.int64).reshape(-1, 2)
        keys = ends[:, 0] * self._size + ends[:, 1]
        order = np.argsort(keys)
        self._special_key = keys[order]
        self._special_primary, self._special_secondary = ends[order].T
        codes = np.array([*pairs.special.values()], dtype=np.int64)
        self._is_refused = codes[order] > 0
        self._special = pairs.special_figures[:, order]
        self._keep_spreads(self._special, self._special_secondary)

    def _keep_spreads(self, after: Floats, where: Ints) -> None:
        """Undo what happens to spreads on offline nodes, which have no part in them.

        Such nodes are no candidates but for the second node of an instance that has one.
        """
        offline = np.flatnonzero(self._offline[where])
        if len(offline):
            rows = np.array(SPREADS)[:, None]
            after[rows, offline] = self._before[rows, where[offline]]

    def from_best(
        self, allowed: AllowedPairs | None, count: int | None
    ) -> Iterator[tuple[tuple[int, int], float]]:
        """Yield ((primary, secondary), score), the best first.

        Among equals the last primary comes first, then the last secondary.

        Args:
            allowed: which pairs to look at, row by primary; None for all.
            count: how many are wanted at most; None for no limit, which is slower.
        """
        if not self._is_finite:
            yield from self._in_vain(allowed)
            return
        if count is not None:
            yield from self._going_through(*self._near(allowed, count))
            return
        # Mostly one of the first is taken, and the others need not be looked at.
        near = self._near(allowed, _FIRST)
        limit, done = lowest(near[2], _FIRST), set[tuple[int, int]]()
        for pair, score in self._going_through(*near):
            if score > limit:  # others might come before
                break
            done.add(pair)
            yield pair, score
        if limit < np.inf:
            for pair, score in self._going_through(*self._near(allowed, None)):
                if pair not in done:
                    yield pair, score

    def _going_through(
        self, row: Ints, column: Ints, estimates: Floats
    ) -> Iterator[tuple[tuple[int, int], float]]:
        primary = self._rows[row]

        def exact(some: Ints) -> Floats:
            return self._scores(primary[some], column[some])

        for choice, score in from_best(estimates, exact):
            yield (int(primary[choice]), int(column[choice])), score

    def _near(self, allowed: AllowedPairs | None, count: int | None) -> tuple[Ints, Ints, Floats]:
        """The pairs to go through, rising: places of rows, positions of columns, estimates."""
        if allowed is not None or count is None:
            matrix = self._matrix
            if allowed is not None:
                matrix = np.where(self._where(allowed), matrix, np.inf)
            enough = np.inf if count is None else lowest(matrix, count) + TOLERANCE
            row, column = np.nonzero((matrix <= enough) & (matrix < np.inf))
            return row, column, matrix[row, column]
        row, column, estimates = self._estimates.near(count, self._is_special)
        special_row, special_column, of_special = self._specials
        row = np.concatenate((row, special_row))
        column = np.concatenate((column, special_column))
        estimates = np.concatenate((estimates, of_special))
        near = np.flatnonzero(estimates <= lowest(estimates, count) + TOLERANCE)
        row, column, estimates = row[near], column[near], estimates[near]
        order = np.argsort(row * self._size + column, kind="stable")
        return row[order], column[order], estimates[order]

    def _in_vain(self, allowed: AllowedPairs | None) -> Iterator[tuple[tuple[int, int], float]]:
        """Where nodes lack something: the pairs in hail's order, with scores that mean nothing."""
        possible = self._possible if allowed is None else self._possible & self._where(allowed)
        row, column = np.nonzero(possible)
        primary = self._rows[row]
        scores = self._scores(primary, column)
        for at in _in_order(primary, column, scores).tolist():
            yield (int(primary[at]), int(column[at])), float(scores[at])

    def _where(self, allowed: AllowedPairs) -> Bools:
        """Matrix of the pairs that are allowed, row by primary."""
        first, second = (np.zeros(self._size, dtype=np.bool_) for _ in range(2))
        first[list(allowed.firsts)] = second[list(allowed.seconds)] = True
        table: Bools = first[self._rows][:, None] & second
        place = {at: number for number, at in enumerate(self._rows.tolist())}
        for row, column in allowed.forbidden:
            if row in place:
                table[place[row], column] = False
        return table

    def count_rejected(self, rule: AllowedPairs) -> int:
        """How many pairs hail tries in vain before it is content, primary by primary."""
        allowed = self._where(rule)
        if not self._is_finite:
            row, column = np.nonzero(self._possible)
            return self._count_in_order(row, column, allowed)
        rejected = 0
        step = max(1, _AT_ONCE // max(1, self._size))
        for start in range(0, len(allowed), step):
            part = slice(start, start + step)
            matrix, is_good = self._matrix[part], allowed[part]
            good = np.where(is_good, matrix, np.inf).min(axis=1, initial=np.inf)[:, None]
            surely = ~is_good & (matrix < good - TOLERANCE)
            # Next to the best that is allowed, only the exact scores tell which comes first.
            in_doubt = ~surely & (matrix <= good + TOLERANCE) & (good < np.inf)
            in_doubt[~(in_doubt & ~is_good).any(axis=1)] = False
            row, column = np.nonzero(in_doubt)
            rejected += int(np.count_nonzero(surely))
            rejected += self._count_in_order(row + start, column, allowed)
        return rejected

    def _count_in_order(self, row: Ints, column: Ints, allowed: Bools) -> int:
        """Of these pairs, how many come before the first of their row that is allowed."""
        primary = self._rows[row]
        scores = self._scores(primary, column)
        by_secondary = np.where(np.isnan(scores), column, -column)
        order = np.lexsort((by_secondary, scores, row))
        is_good = allowed[row, column][order]
        rejected = 0
        seen = -1
        for at, is_allowed in zip(row[order].tolist(), is_good.tolist(), strict=True):
            if at != seen and is_allowed:
                seen = at  # the rest of the row does not count
            rejected += at != seen
        return rejected

    def _scores(self, primary: Ints, secondary: Ints) -> Floats:
        """Scores of pairs given by the candidates' positions, rounded as hail does."""
        if len(primary) <= _AT_ONCE:
            return self._some_scores(primary, secondary)
        parts = range(0, len(primary), _AT_ONCE)
        return np.concatenate(
            [
                self._some_scores(primary[at : at + _AT_ONCE], secondary[at : at + _AT_ONCE])
                for at in parts
            ]
        )

    def _some_scores(self, primary: Ints, secondary: Ints) -> Floats:
        if not self._standing.count:
            return np.zeros(len(primary))
        before_one, before_two = self._before[:, primary], self._before[:, secondary]
        after_one, after_two = self._figures_of(primary, secondary)
        n, standing = float(self._standing.count), self._standing
        values = np.empty((len(Term), len(primary)))
        sums, variances = replaced(
            n,
            standing.sums[SPREAD_ROWS, None],
            standing.variances[SPREAD_ROWS, None],
            before_one[SPREAD_ROWS],
            after_one[SPREAD_ROWS],
        )
        _, variances = replaced(n, sums, variances, before_two[SPREAD_ROWS], after_two[SPREAD_ROWS])
        values[SPREAD_ROWS] = np.sqrt(variances)
        with np.errstate(invalid="ignore"):
            grown = standing.sums[SUM_ROWS, None] + (after_one - before_one)[SUM_ROWS]
            values[SUM_ROWS] = grown + (after_two - before_two)[SUM_ROWS]
            crowding = standing.crowding + self._crowding[primary]
            values[Term.LOCATION_EXCLUSION_SCORE] = crowding
            # Added up strictly in the order of the terms.
            total: Floats = np.add.accumulate(WEIGHT[:, None] * values, axis=0)[-1]
        return total

    def _figures_of(self, primary: Ints, secondary: Ints) -> tuple[Floats, Floats]:
        """Those of the nodes of pairs, afterwards."""
        first, second = self._first[:, primary], self._second[:, secondary]
        if len(self._special_key):
            key = primary * self._size + secondary
            at = np.searchsorted(self._special_key, key)
            at[at == len(self._special_key)] = 0
            special = self._special_key[at] == key
            second[:, special] = self._special[:, at[special]]
        if self._shared is not None:
            first[Term.LOCATION_SCORE] += self._shared[primary, secondary]
        return first, second

    @property
    def _is_finite(self) -> bool:
        """Whether there are numbers to compare: a node may have no memory, for one."""
        return bool(np.isfinite(self._standing.value))

    @cached_property
    def _possible(self) -> Bools:
        """Matrix of the pairs that are not refused, row by primary."""
        possible = np.zeros((len(self._rows), self._size), dtype=np.bool_)
        possible[:, self._columns] = True
        possible[np.arange(len(self._rows)), self._rows] = False
        row, column, is_refused = self._special_places
        possible[row, column] = ~is_refused
        return possible

    @cached_property
    def _special_places(self) -> tuple[Ints, Ints, Bools]:
        """Pairs with instances in common: places of rows, positions, whether they are refused."""
        row = np.searchsorted(self._rows, self._special_primary[self._chosen])
        return row, self._special_secondary[self._chosen], self._is_refused[self._chosen]

    @cached_property
    def _chosen(self) -> Bools:
        """Which of the special pairs have a primary that is not refused."""
        return np.isin(self._special_primary, self._rows)

    @cached_property
    def _is_special(self) -> Bools | None:
        row, column, _ = self._special_places
        if not len(row):
            return None
        table = np.zeros((len(self._rows), self._size), dtype=np.bool_)
        table[row, column] = True
        return table

    @cached_property
    def _specials(self) -> tuple[Ints, Ints, Floats]:
        """Pairs with instances in common that are not refused, with estimates."""
        row, column, is_refused = self._special_places
        figures, fits = self._special[:, self._chosen][:, ~is_refused], ~is_refused
        row, column = row[fits], column[fits]
        return row, column, self._estimates.of_pairs(row, column, figures, self._before[:, column])

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(
            self._standing,
            Figures(self._before, self._first, self._second),
            self._rows,
            self._columns,
            self._crowding,
            self._shared,
        )

    @cached_property
    def _matrix(self) -> Floats:
        """The scores of all pairs, roughly; infinite where it cannot be."""
        matrix = self._estimates.matrix()
        row, column, _ = self._special_places
        matrix[row, column] = np.inf
        row, column, estimates = self._specials
        matrix[row, column] = estimates
        return matrix

    def best_afresh(self) -> tuple[int, int]:
        """The pair that is best when the score is computed afresh; the last among equals."""
        if self._is_finite:
            row, column, _ = self._near(None, 1)
        else:
            row, column = np.nonzero(self._possible)
        primary = self._rows[row]
        best, found = np.inf, 0
        for start in range(0, len(primary), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            scores = self._standing.exact(self._changed(primary[part], column[part]))
            unknown = np.flatnonzero(np.isnan(scores))
            if len(unknown):  # no number is better than another; the last is taken
                best, found = -np.inf, start + int(unknown[-1])
            elif scores.min() <= best:
                best = float(scores.min())
                found = start + int(np.flatnonzero(scores == best)[-1])
        return int(primary[found]), int(column[found])

    def _changed(self, primary: Ints, secondary: Ints) -> Changed:
        first, second = self._figures_of(primary, secondary)
        return Changed(
            np.stack((self._places[primary], self._places[secondary])),
            np.stack((first, second), axis=1),
            self._crowding[primary],
        )


def shared_locations(locations: Sequence[frozenset[str]]) -> Ints:
    """Matrix: how many location tags each two nodes share, given the tags of each."""
    index = {tag: column for column, tag in enumerate(sorted(set[str]().union(*locations)))}
    table = np.zeros((len(locations), len(index)), dtype=np.int64)
    for row, tags in enumerate(locations):
        table[row, [index[tag] for tag in tags]] = 1
    shared: Ints = table @ table.T
    return shared


def _in_order(primary: Ints, secondary: Ints, scores: Floats) -> Ints:
    """Sort all pairs the best first; among equals the last primary, then the last secondary.

    Of scores that are no numbers, which hail cannot compare, the first secondary.
    """
    by_secondary = np.where(np.isnan(scores), secondary, -secondary)
    return np.lexsort((by_secondary, -primary, scores))
