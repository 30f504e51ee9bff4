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

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.occupy import add_primary, add_secondary
from coordinator.allocator.picture import Demand
from coordinator.allocator.rank import TOLERANCE, from_best
from coordinator.allocator.refusal import Reason
from coordinator.allocator.score import SPREADS, WEIGHTS, Kind, Term, figures, kind_of
from coordinator.allocator.state import Scope, State

_BLOCK = 64  # rows of the matrix at a time, so that what is worked on stays in the cache


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
        self, state: State, scope: Scope, candidates: Ints, demand: Demand, *, force: bool = False
    ) -> None:
        self.nodes = candidates
        self._standing = scope.standing
        books = state.accounts.at(candidates)
        self.primary_codes, as_primary = add_primary(
            books,
            demand,
            clashes=state.clashes(demand, candidates),
            location=state.ledger.unmet_locations(demand, candidates),
            force=force,
        )
        forbidden = state.ledger.forbidden(demand, candidates)
        self.primary_codes = np.where(forbidden > 0, forbidden, self.primary_codes)
        nothing = np.zeros(len(candidates), dtype=np.int64)
        self.secondary_codes, as_secondary = add_secondary(books, demand, promised=nothing)
        self._primary = figures(as_primary)
        self._secondary = figures(as_secondary)
        self._before = scope.standing.before[:, np.searchsorted(scope.nodes, candidates)]
        self._offline = books.offline
        self._keep_spreads(self._primary, np.arange(len(candidates)))
        self._keep_spreads(self._secondary, np.arange(len(candidates)))
        self._crowding = state.crowding(demand, scope, candidates)
        self._shared = (
            state.ledger.shared_locations(candidates) * ~books.offline[:, None]
            if state.ledger.has_locations and not demand.forthcoming
            else None
        )
        self._rows = np.flatnonzero(self.primary_codes == 0)
        self._find_special(state, demand)

    def _find_special(self, state: State, demand: Demand) -> None:
        """Work out the pairs that have instances in common."""
        peers, nodes = state.ledger.peers, self.nodes
        here = np.isin(peers.primary, nodes) & np.isin(peers.secondary, nodes)
        secondary = peers.secondary[here]
        self._special_primary = np.searchsorted(nodes, peers.primary[here])
        self._special_secondary = np.searchsorted(nodes, secondary)
        self._special_key = self._special_primary * len(nodes) + self._special_secondary
        self._special_codes, books = add_secondary(
            state.accounts.at(secondary), demand, promised=peers.promised[here]
        )
        self._special = figures(books)
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
        estimates = self._estimates
        if allowed is not None:
            estimates = np.where(allowed, estimates, np.inf)
        enough = np.inf
        best_of_row = estimates.min(axis=1, initial=np.inf)
        if count is not None and len(best_of_row) > count:
            enough = np.partition(best_of_row, count - 1)[count - 1] + TOLERANCE
        rows = np.flatnonzero((best_of_row <= enough) & (best_of_row < np.inf))
        near = estimates[rows]
        row, column = np.nonzero((near <= enough) & (near < np.inf))
        primary = self._rows[rows[row]]

        def exact(some: Ints) -> Floats:
            return self._scores(primary[some], column[some])

        options = from_best(near[row, column], exact)
        if not self._is_finite:
            scores = self._scores(primary, column)
            options = ((int(i), float(scores[i])) for i in _in_order(primary, column, scores))
        for choice, score in options:
            yield (int(self.nodes[primary[choice]]), int(self.nodes[column[choice]])), score

    def count_rejected(self, allowed: Bools) -> int:
        """How many pairs hail tries in vain before it is content, primary by primary."""
        rejected = 0
        possible = self._estimates < np.inf
        for row in np.flatnonzero((possible & ~allowed).any(axis=1)).tolist():
            columns = np.flatnonzero(possible[row])
            good = allowed[row, columns]
            primary = np.full(len(columns), self._rows[row])
            order = _in_order(primary, columns, self._scores(primary, columns))
            rejected += int(np.argmax(good[order])) if good.any() else len(columns)
        return rejected

    def _scores(self, primary: Ints, secondary: Ints) -> Floats:
        """Scores of pairs given by the candidates' positions, rounded as hail does."""
        before_one, after_one = self._before[:, primary], self._primary[:, primary]
        before_two, after_two = self._before[:, secondary], self._secondary[:, secondary]
        key = primary * len(self.nodes) + secondary
        at = np.searchsorted(self._special_key, key)
        at[at == len(self._special_key)] = 0
        if len(self._special_key):
            special = self._special_key[at] == key
            after_two[:, special] = self._special[:, at[special]]
        if self._shared is not None:
            after_one[Term.LOCATION_SCORE] += self._shared[primary, secondary]
        total = np.zeros(len(primary))
        for term in Term:
            if kind_of(term) is Kind.SPREAD:
                sums, variances = self._replaced(
                    self._standing.sums[term],
                    self._standing.variances[term],
                    before_one[term],
                    after_one[term],
                )
                _, variances = self._replaced(sums, variances, before_two[term], after_two[term])
                value = np.sqrt(variances)
            elif kind_of(term) is Kind.SUM:
                value = self._standing.sums[term] + (after_one[term] - before_one[term])
                value = value + (after_two[term] - before_two[term])
            else:
                value = self._standing.crowding + self._crowding[primary].astype(np.float64)
            total = total + WEIGHTS[term] * value
        return total

    def _replaced(
        self, sums: float | Floats, variances: float | Floats, before: Floats, after: Floats
    ) -> tuple[Floats, Floats]:
        """Sum and variance after one figure changed; rounding may not make it negative."""
        n = float(self._standing.online)
        with np.errstate(invalid="ignore", over="ignore"):
            shift = after - before
            growth = after * after - before * before
            change = (n * growth - (2 * sums) * shift) - shift * shift
            # Not np.maximum: a figure that is no number makes the variance 0, as in hail.
            return sums + shift, np.fmax(0, variances + change / (n * n))

    @property
    def _is_finite(self) -> bool:
        """Whether there are numbers to compare: a node may have no memory, for one."""
        return bool(np.isfinite(self._standing.score()))

    @cached_property
    def _estimates(self) -> Floats:
        """The matrix of scores, but for the order in which the terms are added up.

        Shape (primaries that are not refused, candidates); infinite where it cannot be.
        """
        with np.errstate(invalid="ignore"):
            return self._estimated()

    def _estimated(self) -> Floats:
        rows, size = self._rows, len(self.nodes)
        of_row, of_column = np.zeros(len(rows)), np.zeros(size)
        both: dict[bytes, tuple[Term, float]] = {}  # equal terms once, with their weights added
        primary, before = self._primary[:, rows], self._before[:, rows]
        for term in Term:
            weight = WEIGHTS[term]
            if kind_of(term) is Kind.CROWDING:
                of_row += weight * (self._standing.crowding + self._crowding[rows])
            elif kind_of(term) is Kind.SUM:
                of_row += weight * (self._standing.sums[term] + primary[term] - before[term])
                of_column += weight * (self._secondary[term] - self._before[term])
            elif np.array_equal(self._secondary[term], self._before[term], equal_nan=True):
                _, variances = self._replaced(
                    self._standing.sums[term],
                    self._standing.variances[term],
                    before[term],
                    primary[term],
                )
                of_row += weight * np.sqrt(variances)
            else:
                content = b"".join(
                    np.asarray(of_term[term]).tobytes()
                    for of_term in (
                        self._standing.sums,  # the nodes beside the candidates
                        self._standing.variances,
                        self._before,
                        primary,
                        self._secondary,
                    )
                )
                term_of, so_far = both.get(content, (term, 0.0))
                both[content] = (term_of, so_far + weight)
        if not self._is_finite:  # nothing to estimate; infinity is to mean "impossible" only
            both, of_row, of_column = {}, np.zeros(len(rows)), np.zeros(size)
        matrix = of_row[:, None] + of_column
        for term, weight in both.values():
            self._add_spread(matrix, term, weight)
        if self._shared is not None:
            matrix += WEIGHTS[Term.LOCATION_SCORE] * self._shared[rows]
        matrix[:, self.secondary_codes > 0] = np.inf
        self._set_special(matrix)
        matrix[np.arange(len(rows)), rows] = np.inf
        return matrix

    def _add_spread(self, matrix: Floats, term: Term, weight: float) -> None:
        """Add one spread that depends on both nodes; the same steps as ``_replaced``."""
        n = float(self._standing.online)
        sums, variances = self._replaced(
            self._standing.sums[term],
            self._standing.variances[term],
            self._before[term, self._rows],
            self._primary[term, self._rows],
        )
        before, after = self._before[term], self._secondary[term]
        with np.errstate(invalid="ignore", over="ignore"):
            shift = after - before
            growth = n * (after * after - before * before)
            for start in range(0, len(matrix), _BLOCK):
                part = slice(start, start + _BLOCK)
                change = np.multiply.outer(2 * sums[part], shift)
                np.subtract(growth, change, out=change)
                change -= shift * shift
                change /= n * n
                change += variances[part, None]
                np.fmax(change, 0, out=change)
                np.sqrt(change, out=change)
                change *= weight
                matrix[part] += change

    def _set_special(self, matrix: Floats) -> None:
        chosen = self.primary_codes[self._special_primary] == 0
        primary = self._special_primary[chosen]
        secondary = self._special_secondary[chosen]
        scores = self._scores(primary, secondary) if self._is_finite else np.zeros(len(primary))
        scores[self._special_codes[chosen] > 0] = np.inf
        matrix[np.searchsorted(self._rows, primary), secondary] = scores


def _in_order(primary: Ints, secondary: Ints, scores: Floats) -> Ints:
    """Sort all pairs the best first; among equals the last primary, then the last secondary.

    Of scores that are no numbers, which hail cannot compare, the first secondary.
    """
    by_secondary = np.where(np.isnan(scores), secondary, -secondary)
    return np.lexsort((by_secondary, -primary, scores))
