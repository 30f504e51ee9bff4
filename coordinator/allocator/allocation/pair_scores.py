"""The scores of pairs of nodes: one primary with all secondaries at a time, the best first.

hail scores pairs by updating sums, not afresh, which rounds differently; so do we. Most terms of a
score depend on the primary only. With it in place the variance of a figure is a number, and what
the secondary then changes of it is a number of the secondary, less a product of two. So bounds tell
which primaries cannot be part of the best pair, and mostly but a few are looked at.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush
from math import inf, isfinite, isnan

from coordinator.allocator.allocation.pair_order import IMPOSSIBLE, entries, first_of, without
from coordinator.allocator.allocation.second_step import SecondStep
from coordinator.allocator.arithmetic import above_zero, like, replaced, root, unwarned
from coordinator.allocator.model.terms import SPREADS, TOLERANCE, WEIGHTS, Term
from coordinator.allocator.several import Several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from coordinator.allocator.allocation.pair_order import Entry
    from coordinator.allocator.allocation.second_step import Vector
    from coordinator.allocator.allocation.two_nodes import AllowedPairs, TwoNodes
    from coordinator.allocator.model.row_score import RowScore

_BY_PAIR = frozenset((Term.N1_CNT, Term.RESERVED_MEM_CV, Term.RESERVED_MEM_RTOTAL))


class PairScores:
    """Pairs side by side, by position; see ``TwoNodes`` for what they are made of."""

    def __init__(self, standing: RowScore, pairs: TwoNodes) -> None:
        self._standing, self._pairs = standing, pairs
        self._n = float(standing.count)
        self._online = [standing.is_online(place) for place in pairs.places]
        self._before = _by_term(standing.figures_at(pairs.places))
        self._first, self._second = _by_term(pairs.first), _by_term(pairs.second)
        holders = [column for _, column in pairs.special]
        self._special = _by_term(pairs.special_figures)
        everyone = range(len(pairs.places))
        self._keep_spreads(self._first, everyone)
        self._keep_spreads(self._second, everyone)
        self._keep_spreads(self._special, holders)
        # By primary: the position and the number of special secondaries.
        self._others: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._refused: dict[int, list[int]] = defaultdict(list)
        for number, ((row, column), code) in enumerate(pairs.special.items()):
            if code:
                self._refused[row].append(column)
            else:
                self._others[row].append((column, number))
        self._closed = sorted({*everyone}.difference(pairs.columns))
        with unwarned(self._first[0]):
            self._prepare(holders)

    def _keep_spreads(self, after: Sequence[Vector], where: Sequence[int]) -> None:
        """Undo what happens to spreads on offline nodes, which have no part in them.

        Such nodes are no candidates but for the second node of an instance that has one.
        """
        for at, position in enumerate(where):
            if not self._online[position]:
                for term in SPREADS:
                    after[term][at] = self._before[term][position]

    def _prepare(self, holders: Sequence[int]) -> None:
        """Work out what is the same for all primaries; ``holders`` are special secondaries."""
        standing, n, first_like = self._standing, self._n, dict[object, Term]()
        self._alike: list[tuple[Term, Term]] = []  # each with the first that is equal to it
        self._steps: dict[Term, SecondStep] = {}  # where the secondary changes something
        self._special_steps: dict[Term, SecondStep] = {}
        self._moments: dict[Term, tuple[Vector, Vector]] = {}  # with the primary in place
        for term in Term if n else ():
            before, first, second = self._before[term], self._first[term], self._second[term]
            alike, is_spread = term, term in SPREADS
            sums, variance = float(standing.sums[term]), float(standing.variances[term])
            if is_spread and term not in _BY_PAIR:
                key = sums, variance, *map(_key, (before, first, second))
                alike = first_like.setdefault(key, term)
            self._alike.append((term, alike))
            if alike is not term:
                continue
            if is_spread:
                self._moments[term] = replaced(n, sums, variance, before, first)
            step = SecondStep(n, before, second)
            shift = step.shift.tolist()
            # Where figures are no numbers even what stays the same is worked out, as in hail.
            is_odd = is_spread and not self._is_finite
            if term in _BY_PAIR or is_odd or any(shift[at] for at in self._pairs.columns):
                self._steps[term] = step
            if term in _BY_PAIR:
                there = _some(before, holders)
                self._special_steps[term] = SecondStep(n, there, self._special[term])

    @property
    def _is_finite(self) -> bool:
        """Whether there are numbers to compare: a node may have no memory, for one."""
        return isfinite(self._standing.value)

    def _row(self, row: int) -> list[float]:
        """The scores of one primary with each candidate; ``IMPOSSIBLE`` where it cannot be."""
        known: dict[tuple[Term, float], Vector] = {}
        total: Vector = 0.0
        with unwarned(self._first[0]):
            for term, alike in self._alike:
                key = alike, WEIGHTS[term]
                if key not in known:
                    known[key] = self._part(alike, row) * WEIGHTS[term]
                if not isinstance(known[key], float) or known[key]:
                    total = known[key] + total
        scores: list[float] = total.tolist() if self._alike else [0.0] * len(self._online)
        for column in (row, *self._closed, *self._refused.get(row, ())):
            scores[column] = IMPOSSIBLE
        return scores

    def _part(self, term: Term, row: int) -> Vector:
        """A term of the scores of a primary: one number, or one per secondary."""
        step = self._steps.get(term)
        if step is not None and term in _BY_PAIR and row in self._others:
            step = step.patched(self._special_steps[term], self._others[row])
        if term in SPREADS:
            sums, variances = (float(moment[row]) for moment in self._moments[term])
            if step is None:
                return root(variances)
            return root(above_zero(step.change(self._n, sums) + variances))
        value = self._of_primary(term, row)
        if term is Term.LOCATION_SCORE and self._pairs.locations is not None:
            shared = [self._shared(row, column) for column in range(len(self._online))]
            return like(self._first[0], shared) + value
        return value if step is None else step.shift + value

    def _of_primary(self, term: Term, row: int) -> float:
        """A term that is no spread, with the primary in place."""
        if term is Term.LOCATION_EXCLUSION_SCORE:
            return float(self._standing.crowding + self._pairs.crowding[row])
        return float(self._standing.sums[term] + (self._first[term][row] - self._before[term][row]))

    def _shared(self, row: int, column: int) -> int:
        """What a pair adds to the location score of its primary."""
        locations = self._pairs.locations
        if locations is None or not self._online[row]:
            return 0
        return len(locations[row] & locations[column])

    def _bounds(self) -> list[float]:
        """Per candidate as primary: less than which none of its pairs can be."""
        if not self._alike or not self._is_finite:
            return [0.0] * len(self._online)
        total = like(self._first[0], [-TOLERANCE] * len(self._online))
        with unwarned(total):
            for term, alike in self._alike:
                total = self._least(alike) * WEIGHTS[term] + total
        bounds: list[float] = total.tolist()
        return bounds

    def _least(self, term: Term) -> Vector:
        """Per candidate as primary: less than which a term of none of its pairs can be."""
        # What the secondary changes, and which of the elements count.
        parts: list[tuple[SecondStep, Sequence[int]]] = []
        if term in self._steps:
            parts.append((self._steps[term], self._pairs.columns))
        if term in self._special_steps:
            parts.append((self._special_steps[term], range(len(self._pairs.special))))
        if term in SPREADS:
            sums, variances = self._moments[term]
            every = sums.tolist()
            some = [every[row] for row in self._pairs.rows]
            # The product is least where its one factor, which hardly differs, is at an end.
            ends = (min(some, default=0.0), max(some, default=0.0)) if parts else ()
            least = min(
                (_lowest(step.change(self._n, end), at) for step, at in parts for end in ends),
                default=0.0,
            )
            return root(above_zero(variances + least))
        least = min((_lowest(step.shift, at) for step, at in parts), default=0.0)
        if term is Term.LOCATION_EXCLUSION_SCORE:
            return like(self._first[0], self._pairs.crowding) + self._standing.crowding
        grown = (self._first[term] - self._before[term]) + float(self._standing.sums[term])
        return grown + least

    def from_best(self, allowed: AllowedPairs | None = None) -> Iterator[tuple[int, int, float]]:
        """Yield primary, secondary and score of each pair, or of those allowed, the best first.

        Among equals the last primary comes first, then the last secondary.
        """
        bounds = self._bounds()
        rows = [row for row in self._pairs.rows if allowed is None or row in allowed.firsts]
        waiting: list[tuple[Entry, Iterator[Entry]]] = [
            ((False, bounds[row], -row, -inf, IMPOSSIBLE), self._row_from_best(row, allowed))
            for row in rows
        ]
        heapify(waiting)
        while waiting:
            (_, _, primary, column, score), others = heappop(waiting)
            if column != -inf:  # else the bound
                yield -primary, abs(int(column)), score
            following = next(others, None)
            if following is not None:
                heappush(waiting, (following, others))

    def _row_from_best(self, row: int, allowed: AllowedPairs | None) -> Iterator[Entry]:
        first = first_of(row, self._allowed(row, allowed))
        if first is not None:
            yield first  # of most rows no other is ever looked at
            everyone = range(len(self._online))
            yield from sorted(entries(row, self._allowed(row, allowed), everyone))[1:]

    def _allowed(self, row: int, allowed: AllowedPairs | None) -> list[float]:
        """The scores of a row, of those that a rule allows."""
        scores = self._row(row)
        return scores if allowed is None else without(scores, allowed.closed_to(row))

    def count_rejected(self, allowed: AllowedPairs) -> int:
        """How many pairs hail tries in vain before it is content, primary by primary."""
        rejected = 0
        for row in self._pairs.rows:
            closed = sorted(allowed.closed_to(row))
            if closed:
                scores = self._row(row)
                best = first_of(row, without(scores, closed))
                tried = entries(row, scores, closed)
                rejected += sum(best is None or entry < best for entry in tried)
        return rejected

    def best_afresh(self) -> tuple[int, int]:
        """The pair that is best when the score is computed afresh; the last among equals."""
        near: list[tuple[int, int]] = []
        limit = inf
        for row, column, score in self.from_best():
            if self._is_finite:
                limit = min(limit, score + TOLERANCE)
                if score > limit:
                    break
            near.append((row, column))
        near.sort()
        scores = self._standing.afresh(
            [self._changes(row, column) for row, column in near],
            [self._pairs.crowding[row] for row, _ in near],
        )
        # No number is better than another where there is none; the last is taken.
        keys = [-inf if isnan(score) else score for score in scores]
        return near[len(keys) - 1 - keys[::-1].index(min(keys))]

    def _changes(self, row: int, column: int) -> list[tuple[int, list[float]]]:
        """The nodes of a pair, by place, with their figures afterwards."""
        special = dict(self._others[row]).get(column)
        first = [figures[row] for figures in self._first]
        first[Term.LOCATION_SCORE] += self._shared(row, column)
        second = [figures[column] for figures in self._second]
        if special is not None:
            second = [figures[special] for figures in self._special]
        places = self._pairs.places
        return [(places[row], first), (places[column], second)]


def _by_term(figures: Any) -> list[Vector]:
    """Figures of several nodes as a vector per term."""
    if isinstance(figures, list):
        return [Several(column) for column in zip(*figures, strict=True)] or [Several(())] * len(
            Term
        )
    return [*figures]


def _some(vector: Vector, positions: Sequence[int]) -> Vector:
    return like(vector, [vector[at] for at in positions])


def _lowest(vector: Vector, positions: Sequence[int]) -> float:
    values = vector.tolist()
    return min((values[at] for at in positions), default=inf)


def _key(vector: Vector) -> object:
    """What is equal for equal vectors."""
    return tuple(vector) if isinstance(vector, Several) else vector.tobytes()
