"""The scores of pairs of a few nodes: a loop over primaries, a list of secondaries for each.

hail scores pairs by updating sums, not afresh, which rounds differently; so do we. Most terms of a
score depend on one node of the pair only, or not at all, so only few lists are worked through.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from heapq import merge
from math import inf, isfinite, isnan, sqrt

from coordinator.allocator.model.row_score import replaced
from coordinator.allocator.model.terms import SPREADS, TOLERANCE, WEIGHTS, Term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from coordinator.allocator.allocation.pair import AllowedPairs, TwoNodes
    from coordinator.allocator.model.row_score import Figures, RowScore

    # Of one pair: what it is ordered by, primary and secondary by position, and its score.
    Entry = tuple[bool, float, int, int, int, int, float]
    # Of a change: what it adds to squares, to the sum, and the square of the latter.
    _Step = tuple[float, float, float]

_SPREADS = frozenset(SPREADS)
_IMPOSSIBLE = -1.0
_BY_PAIR = frozenset((Term.N1_CNT, Term.RESERVED_MEM_CV, Term.RESERVED_MEM_RTOTAL))


class RowPairs:
    """Pairs side by side; see ``TwoNodes`` for what they are made of."""

    def __init__(self, standing: RowScore, pairs: TwoNodes) -> None:
        self._standing, self._pairs = standing, pairs
        self._before = [standing.before[place] for place in pairs.places]
        online = [standing.is_online(place) for place in pairs.places]
        self._online = online
        self._first = [self._kept(at, figures) for at, figures in enumerate(pairs.first)]
        self._second = [self._kept(at, figures) for at, figures in enumerate(pairs.second)]
        figures = zip(pairs.special.items(), pairs.special_figures, strict=True)
        self._special = {pair: None if code else own for (pair, code), own in figures}
        self._n = float(standing.count)
        self._kinds = self._kinds_of_terms()

    def _kept(self, at: int, figures: Figures) -> Figures:
        """Figures without what happens to spreads on an offline node, which has no part in them."""
        if self._online[at]:
            return figures
        before = self._before[at]
        return [before[t] if t in _SPREADS else value for t, value in enumerate(figures)]

    def _kinds_of_terms(self) -> list[tuple[int, int, bool]]:
        """Per term: itself, the first that is equal to it, and whether secondaries change it."""
        pairs, standing = self._pairs, self._standing
        first: dict[object, int] = {}
        kinds = []
        for term in map(int, Term):
            after = tuple(self._second[at][term] for at in pairs.columns)
            before = tuple(self._before[at][term] for at in pairs.columns)
            alike, varies = term, after != before or term in _BY_PAIR
            if term in _SPREADS and term not in _BY_PAIR:
                own = tuple(self._first[at][term] for at in pairs.rows)
                alike = first.setdefault((standing.alike[term], own, after), term)
                # Where figures are no numbers even what stays the same is worked out, as in hail.
                varies |= not isfinite(standing.value)
            kinds.append((term, alike, varies))
        return kinds

    @cached_property
    def _scores(self) -> list[list[float]]:
        """Per row the scores of the columns; ``_IMPOSSIBLE`` where a pair cannot be."""
        columns = self._pairs.columns
        usual = [(at, self._second[at]) for at in columns]
        steps, place = self._steps(usual), {at: number for number, at in enumerate(columns)}
        special: dict[int, list[tuple[int, Figures]]] = defaultdict(list)
        for (row, column), figures in self._special.items():
            if figures is not None and column in place:
                special[row].append((column, self._kept(column, figures)))
        rows = {}
        for row in self._pairs.rows if columns else ():
            rows[row] = self._row(row, columns, steps)
            if row in place:
                rows[row][place[row]] = _IMPOSSIBLE
            if row in special:
                others = [column for column, _ in special[row]]
                scores = self._row(row, others, self._steps(special[row]))
                for column, score in zip(others, scores, strict=True):
                    rows[row][place[column]] = score
        for (row, column), figures in self._special.items():
            if figures is None and row in rows and column in place:
                rows[row][place[column]] = _IMPOSSIBLE
        return [*rows.values()]

    def _steps(self, seconds: Sequence[tuple[int, Figures]]) -> dict[int, list[_Step]]:
        """By term: what secondaries, given by position and figures, change of it."""
        return {
            term: [self._step(self._before[at][term], figures[term]) for at, figures in seconds]
            for term, alike, varies in self._kinds
            if varies and alike == term
        }

    def _step(self, before: float, after: float) -> _Step:
        """What of a change does not depend on the other one."""
        shift = after - before
        return self._n * (after * after - before * before), shift, shift * shift

    def _moments(self, term: int, row: int) -> tuple[float, float]:
        """Sum and variance of a spread with the primary in place."""
        sum_, variance = self._standing.sums[term], self._standing.variances[term]
        return replaced(self._n, sum_, variance, self._before[row][term], self._first[row][term])

    def _row(
        self, row: int, columns: Sequence[int], steps: Mapping[int, Sequence[_Step]]
    ) -> list[float]:
        """The scores of one primary with each of the columns."""
        known: dict[int, float | list[float]] = {}
        for term, alike, _ in self._kinds:
            if alike not in known:
                known[alike] = self._part(term, row, columns, steps.get(term, ()))
        total, totals = 0.0, None
        for term, alike, _ in self._kinds if self._standing.count else ():
            part, weight = known[alike], WEIGHTS[term]
            if isinstance(part, list):
                so_far = totals or [total] * len(part)
                totals = [one + weight * more for one, more in zip(so_far, part, strict=True)]
            elif totals is None:
                total += weight * part
            elif part:
                more = weight * part
                totals = [one + more for one in totals]
        return totals or [total] * len(columns)

    def _part(
        self, term: int, row: int, columns: Sequence[int], steps: Sequence[_Step]
    ) -> float | list[float]:
        """A term of the scores of a primary with each of the columns, if they differ."""
        pairs, squared = self._pairs, self._n * self._n
        if term in _SPREADS:
            sum_, variance = self._moments(term, row)
            if not steps:
                return sqrt(variance)
            twice = 2 * sum_
            return [
                sqrt(v) if (v := variance + ((g - twice * s) - q) / squared) > 0 else 0.0
                for g, s, q in steps
            ]
        if term == Term.LOCATION_EXCLUSION_SCORE:
            return float(self._standing.crowding + pairs.crowding[row])
        value = self._standing.sums[term]
        value += self._first[row][term] - self._before[row][term]
        if term == Term.LOCATION_SCORE and pairs.locations is not None:
            return [value + self._shared(row, at) for at in columns]
        return [value + shift for _, shift, _ in steps] if steps else value

    def _shared(self, row: int, column: int) -> int:
        """What a pair adds to the location score of its primary."""
        locations = self._pairs.locations
        if locations is None or not self._online[row]:
            return 0
        return len(locations[row] & locations[column])

    def from_best(
        self, allowed: AllowedPairs | None, count: int | None
    ) -> Iterator[tuple[tuple[int, int], float]]:
        """Yield positions and score of each pair, the best first; as ``Pairs.from_best``."""
        del count  # it costs as much to find them all
        rows = [self._row_from_best(number, allowed) for number in range(len(self._scores))]
        for *_, row, column, score in merge(*rows):
            yield (row, column), score

    def _entries(self, number: int) -> Iterator[Entry]:
        """Those of one row, to be ordered."""
        row = self._pairs.rows[number]
        for column, score in zip(self._pairs.columns, self._scores[number], strict=True):
            if isnan(score):  # which hail cannot compare: the first secondary, in the end
                yield True, 0.0, -row, column, row, column, score
            elif score >= 0.0:
                yield False, score, -row, -column, row, column, score

    def _row_from_best(self, number: int, allowed: AllowedPairs | None) -> Iterator[Entry]:
        entries = [*self._entries(number)]
        if allowed is not None:
            entries = [entry for entry in entries if allowed.has(entry[4], entry[5])]
        if entries:
            yield min(entries)  # of most rows no other is ever looked at
            entries.sort()
            yield from entries[1:]

    def count_rejected(self, allowed: AllowedPairs) -> int:
        """How many pairs hail tries in vain before it is content, primary by primary."""
        rejected = 0
        for number in range(len(self._scores)):
            good: list[Entry] = []
            bad: list[Entry] = []
            for entry in self._entries(number):
                (good if allowed.has(entry[4], entry[5]) else bad).append(entry)
            best = min(good, default=None)
            rejected += sum(best is None or entry < best for entry in bad)
        return rejected

    def best_afresh(self) -> tuple[int, int]:
        """The pair that is best when the score is computed afresh; the last among equals."""
        entries = [entry for number in range(len(self._scores)) for entry in self._entries(number)]
        if isfinite(self._standing.value):
            lowest = min(entry[1] for entry in entries)
            entries = [entry for entry in entries if entry[1] <= lowest + TOLERANCE]
        best, found = inf, (-1, -1)
        for *_, row, column, _ in entries:
            score = self._afresh(row, column)
            if isnan(score):  # no number is better than another; the last is taken
                score = -inf
            if score <= best:
                best, found = score, (row, column)
        return found

    def _afresh(self, row: int, column: int) -> float:
        pairs = self._pairs
        second = self._special.get((row, column), pairs.second[column])
        assert second is not None, "it is not refused"
        first = list(pairs.first[row])
        first[Term.LOCATION_SCORE] += self._shared(row, column)
        changes = [(pairs.places[row], first), (pairs.places[column], second)]
        return self._standing.after(changes, pairs.crowding[row])
