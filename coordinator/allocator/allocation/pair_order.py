"""The order of pairs by their scores: the least first, and among equals the last."""

from __future__ import annotations

from math import isnan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    # Of one pair: what it is ordered by, the least first, and the score.
    Entry = tuple[bool, float, int, float, float]

IMPOSSIBLE = -1.0  # the score of two nodes that cannot be a pair


def without(scores: Sequence[float], columns: Iterable[int]) -> list[float]:
    """The scores of one primary without those of some secondaries."""
    left = [*scores]
    for column in columns:
        left[column] = IMPOSSIBLE
    return left


def entries(row: int, scores: Sequence[float], columns: Iterable[int]) -> Iterator[Entry]:
    """What pairs of one primary are ordered by."""
    for column in columns:
        score = scores[column]
        if isnan(score):  # which hail cannot compare: the first secondary, in the end
            yield True, 0.0, -row, column, score
        elif score >= 0.0:
            yield False, score, -row, -column, score


def first_of(row: int, scores: list[float]) -> Entry | None:
    """The least of the entries, without making them all."""
    lowest = min(filter((0.0).__le__, scores), default=None)  # a generator takes twice as long
    if lowest is None:
        return min(entries(row, scores, range(len(scores))), default=None)
    return False, lowest, -row, scores[::-1].index(lowest) + 1 - len(scores), lowest
