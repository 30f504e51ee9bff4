"""All pairs of nodes for one mirrored instance, scored at once.

A score is a sum of terms. Most depend on one node of the pair only; the few spreads that
depend on both make a matrix, row by primary and column by secondary. What the secondary
promises to keep free for the primary depends on the pair only where the two have instances
in common already; those few pairs are worked out one by one (``_special``).

hail scores pairs by updating sums, not afresh, which rounds differently; so do we.
"""

from collections import Counter
from collections.abc import Iterator
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
from coordinator.allocator.arrays import Bools, Floats, Ints, among
from coordinator.allocator.model.occupy import add_primary, add_secondary
from coordinator.allocator.model.score import figures
from coordinator.allocator.model.state import Scope, State
from coordinator.allocator.model.terms import SPREADS, Term
from coordinator.allocator.rank import TOLERANCE, from_best
from coordinator.allocator.refusal import Reason
from coordinator.allocator.snapshot import Instance

_AT_ONCE = 1 << 15  # pairs scored exactly at a time
_FIRST = 512  # pairs gone through before all are


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
        self, state: State, scope: Scope, candidates: Ints, demand: Instance, *, force: bool = False
    ) -> None:
        self.nodes = candidates
        self._standing = scope.standing
        resources = state.at(candidates)
        self.primary_codes, as_primary = add_primary(
            resources,
            demand,
            clashes=state.clashes(demand, candidates),
            location=state.model.unmet_locations(demand, candidates),
            force=force,
        )
        forbidden = state.model.forbidden(demand, candidates)
        self.primary_codes = np.where(forbidden > 0, forbidden, self.primary_codes)
        nothing = np.zeros(len(candidates), dtype=np.int64)
        self.secondary_codes, as_secondary = add_secondary(resources, demand, promised=nothing)
        self._primary = figures(as_primary)
        self._secondary = figures(as_secondary)
        self._before = scope.standing.before[:, np.searchsorted(scope.nodes, candidates)]
        self._offline = resources.offline
        self._keep_spreads(self._primary, np.arange(len(candidates)))
        self._keep_spreads(self._secondary, np.arange(len(candidates)))
        self._crowding = state.crowding(demand, scope, candidates)
        self._shared = (
            state.model.shared_locations(candidates) * ~resources.offline[:, None]
            if state.model.has_locations and not demand.forthcoming
            else None
        )
        self._rows = np.flatnonzero(self.primary_codes == 0)
        self._find_special(state, demand)

    def _find_special(self, state: State, demand: Instance) -> None:
        """Work out the pairs that have instances in common."""
        peers, nodes = state.model.peers, self.nodes
        size = state.model.size
        here = among(peers.primary, nodes, size) & among(peers.secondary, nodes, size)
        secondary = peers.secondary[here]
        self._special_primary = np.searchsorted(nodes, peers.primary[here])
        self._special_secondary = np.searchsorted(nodes, secondary)
        self._special_key = self._special_primary * len(nodes) + self._special_secondary
        self._special_codes, resources = add_secondary(
            state.at(secondary), demand, promised=peers.promised[here]
        )
        self._special = figures(resources)
        self._keep_spreads(self._special, self._special_secondary)

    def _keep_spreads(self, after: Floats, where: Ints) -> None:
        """Undo what happens to spreads on offline nodes, which have no part in them.

        Such nodes are no candidates but for the second node of an instance that has one.
        """
        offline = np.flatnonzero(self._offline[where])
        if len(offline):
            rows = np.array(SPREADS)[:, None]
            after[rows, offline] = self._before[rows, where[offline]]

    def count(self) -> tuple[int, Counter[Reason]]:
        """How many pairs there are, and how many are refused for what."""
        size, usable = len(self.nodes), self.primary_codes == 0
        times = np.bincount(self.primary_codes, minlength=len(Reason)) * (size - 1)
        # How many usable primaries each candidate can be the secondary of.
        partners = np.count_nonzero(usable) - usable
        np.add.at(times, self.secondary_codes, partners)
        special = usable[self._special_primary]
        np.subtract.at(times, self.secondary_codes[self._special_secondary[special]], 1)
        np.add.at(times, self._special_codes[special], 1)
        times[Reason.NONE] = 0
        return size * (size - 1), +Counter(dict(zip(Reason, times.tolist(), strict=True)))

    def count_of(self, primary: int) -> Counter[Reason]:
        """How many pairs with this primary are refused for what."""
        row = int(np.searchsorted(self.nodes, primary))
        if self.primary_codes[row]:
            return Counter({Reason(int(self.primary_codes[row])): len(self.nodes) - 1})
        codes = self.secondary_codes.copy()
        mine = self._special_primary == row
        codes[self._special_secondary[mine]] = self._special_codes[mine]
        codes[row] = 0
        return Counter(Reason(code) for code in codes.tolist() if code)

    @property
    def primaries(self) -> Ints:
        """Node indices of the candidates that can be primary: the rows of ``allowed``."""
        return self.nodes[self._rows]

    def from_best(
        self, allowed: Bools | None, count: int | None
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
            yield (int(self.nodes[primary[choice]]), int(self.nodes[column[choice]])), score

    def _near(self, allowed: Bools | None, count: int | None) -> tuple[Ints, Ints, Floats]:
        """The pairs to go through, rising: places of rows, positions of columns, estimates."""
        if allowed is not None or count is None:
            matrix = self._matrix if allowed is None else np.where(allowed, self._matrix, np.inf)
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
        order = np.argsort(row * len(self.nodes) + column, kind="stable")
        return row[order], column[order], estimates[order]

    def _in_vain(self, allowed: Bools | None) -> Iterator[tuple[tuple[int, int], float]]:
        """Where nodes lack something: the pairs in hail's order, with scores that mean nothing."""
        possible = self._possible if allowed is None else self._possible & allowed
        row, column = np.nonzero(possible)
        primary = self._rows[row]
        scores = self._scores(primary, column)
        for at in _in_order(primary, column, scores).tolist():
            yield (int(self.nodes[primary[at]]), int(self.nodes[column[at]])), float(scores[at])

    def count_rejected(self, allowed: Bools) -> int:
        """How many pairs hail tries in vain before it is content, primary by primary."""
        if not self._is_finite:
            row, column = np.nonzero(self._possible)
            return self._count_in_order(row, column, allowed)
        rejected = 0
        step = max(1, _AT_ONCE // max(1, len(self.nodes)))
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
        before_one, after_one = self._before[:, primary], self._primary[:, primary]
        before_two, after_two = self._before[:, secondary], self._secondary[:, secondary]
        if len(self._special_key):
            key = primary * len(self.nodes) + secondary
            at = np.searchsorted(self._special_key, key)
            at[at == len(self._special_key)] = 0
            special = self._special_key[at] == key
            after_two[:, special] = self._special[:, at[special]]
        if self._shared is not None:
            after_one[Term.LOCATION_SCORE] += self._shared[primary, secondary]
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

    @property
    def _is_finite(self) -> bool:
        """Whether there are numbers to compare: a node may have no memory, for one."""
        return bool(np.isfinite(self._standing.value))

    @cached_property
    def _possible(self) -> Bools:
        """Matrix of the pairs that are not refused, row by primary."""
        possible = np.repeat((self.secondary_codes == 0)[None], len(self._rows), axis=0)
        possible[np.arange(len(self._rows)), self._rows] = False
        row, column, is_refused = self._special_places
        possible[row, column] = ~is_refused
        return possible

    @cached_property
    def _special_places(self) -> tuple[Ints, Ints, Bools]:
        """Pairs with instances in common: places of rows, positions, whether they are refused."""
        chosen = self.primary_codes[self._special_primary] == 0
        row = np.searchsorted(self._rows, self._special_primary[chosen])
        return row, self._special_secondary[chosen], self._special_codes[chosen] > 0

    @cached_property
    def _is_special(self) -> Bools | None:
        row, column, _ = self._special_places
        if not len(row):
            return None
        table = np.zeros((len(self._rows), len(self.nodes)), dtype=np.bool_)
        table[row, column] = True
        return table

    @cached_property
    def _specials(self) -> tuple[Ints, Ints, Floats]:
        """Pairs with instances in common that are not refused, with estimates."""
        row, column, is_refused = self._special_places
        chosen = self.primary_codes[self._special_primary] == 0
        figures, fits = self._special[:, chosen][:, ~is_refused], ~is_refused
        row, column = row[fits], column[fits]
        return row, column, self._estimates.of_pairs(row, column, figures, self._before[:, column])

    @cached_property
    def _estimates(self) -> Estimates:
        return Estimates(
            self._standing,
            Figures(self._before, self._primary, self._secondary),
            self._rows,
            np.flatnonzero(self.secondary_codes == 0),
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


def _in_order(primary: Ints, secondary: Ints, scores: Floats) -> Ints:
    """Sort all pairs the best first; among equals the last primary, then the last secondary.

    Of scores that are no numbers, which hail cannot compare, the first secondary.
    """
    by_secondary = np.where(np.isnan(scores), secondary, -secondary)
    return np.lexsort((by_secondary, -primary, scores))
