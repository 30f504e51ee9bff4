"""How long something took, of all the times that it was done: counted by length.

As a histogram of Prometheus has it, so that any quantile can be estimated later, of any time.
"""

from bisect import bisect_left
from collections.abc import Iterator

from common.messages import Report

BOUNDS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


class Distribution(Report):
    """What was counted.

    Attributes:
        bounds: of the lengths in seconds, ascending.
        counts: how often it took so long at most, but longer than the bound before; the last is
            of what took longer than all.
        total_s: all lengths added.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = (0,)
    total_s: float = 0.0

    def up_to(self) -> Iterator[tuple[float, int]]:
        """Yield each bound, and how often it took so long at most; the last is infinity."""
        sum_ = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            sum_ += count
            yield bound, sum_


class Timings:
    """Counts lengths of time."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._total_s = 0.0

    def note(self, length_s: float) -> None:
        self._counts[bisect_left(BOUNDS_S, length_s)] += 1
        self._total_s += length_s

    def so_far(self) -> Distribution:
        return Distribution(bounds=BOUNDS_S, counts=tuple(self._counts), total_s=self._total_s)
