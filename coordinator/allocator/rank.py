"""Going through candidates from best to worst, with exact scores only where they decide."""

from collections.abc import Callable, Iterator

import numpy as np

from coordinator.allocator.arrays import Floats, Ints

TOLERANCE = 1e-6
"""More than twice the error of an estimated score.

An error of 1e-15 in a variance, which rounding makes, is one of 3e-8 in its root.
"""


def from_best(estimates: Floats, exact: Callable[[Ints], Floats]) -> Iterator[tuple[int, float]]:
    """Yield (candidate, score) by rising score; among equals the last candidate first.

    Args:
        estimates: per candidate, within half of ``TOLERANCE``; infinite excludes one. When
            scores are not numbers at all, the first candidate comes first, as in hail.
        exact: scores of the candidates with these indices.
    """
    if np.isnan(estimates).any():
        for candidate in np.flatnonzero(estimates != np.inf).tolist():
            yield candidate, float("nan")
        return
    waiting = estimates.copy()
    known = np.full(len(estimates), np.nan)
    while len(waiting):
        least = waiting.min()
        if least == np.inf:
            return
        near = np.flatnonzero(waiting <= least + TOLERANCE)
        fresh = near[np.isnan(known[near])]
        if len(fresh):
            known[fresh] = exact(fresh)
        scores = known[near]
        best = int(near[np.flatnonzero(scores == scores.min())[-1]])
        yield best, float(known[best])
        waiting[best] = np.inf
