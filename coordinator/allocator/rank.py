"""Going through candidates from best to worst, with exact scores only where they decide."""

from __future__ import annotations

from math import inf, isfinite, isnan

from coordinator.allocator.model.terms import TOLERANCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def from_best(
    estimates: Sequence[float],
    exact: Callable[[list[int]], list[float]],
    *,
    last_if_nan: bool = False,
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
    left = [estimate if isfinite(estimate) else 0.0 for estimate in estimates]
    known: dict[int, float] = {}
    for _ in left:
        limit = min(left) + TOLERANCE
        near = [at for at, estimate in enumerate(left) if estimate <= limit]
        if fresh := [at for at in near if at not in known]:
            known.update(zip(fresh, exact(fresh), strict=True))
        unknown = [at for at in near if isnan(known[at])]
        if unknown:
            best = unknown[-1 if last_if_nan else 0]
        else:
            lowest = min(known[at] for at in near)
            best = next(at for at in reversed(near) if known[at] == lowest)
        yield best, known[best]
        left[best] = inf
