"""Going through candidates from best to worst, with exact scores only where they decide."""

from collections.abc import Callable, Iterator

import numpy as np

from coordinator.allocator.arrays import Floats, Ints
from coordinator.allocator.model.terms import TOLERANCE


def from_best(
    estimates: Floats, exact: Callable[[Ints], Floats], *, last_if_nan: bool = False
) -> Iterator[tuple[int, float]]:
    """Yield (candidate, score) by rising score; among equals the last candidate first.

    Scores may be infinite, or no numbers at all, where some node has no memory or the like;
    then the first candidate comes first.

    Args:
        estimates: per candidate, within half of ``TOLERANCE`` unless they are not finite.
        exact: scores of the candidates with these indices.
        last_if_nan: let the last come first even then; hail sorts the candidates of an
            allocation, but folds over those of a move, and NaN shows the difference.
    """
    left = np.where(np.isfinite(estimates), estimates, 0.0)
    known = np.full(len(left), np.nan)
    for _ in range(len(left)):
        near = np.flatnonzero(left <= left.min() + TOLERANCE)
        fresh = near[np.isnan(known[near])]
        if len(fresh):
            known[fresh] = exact(fresh)
        scores = known[near]
        if np.isnan(scores).any():
            best = int(near[np.flatnonzero(np.isnan(scores))[-1 if last_if_nan else 0]])
        else:
            best = int(near[np.flatnonzero(scores == scores.min())[-1]])
        yield best, float(known[best])
        left[best] = np.inf
