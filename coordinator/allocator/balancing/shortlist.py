"""All moves of all instances estimated at once, and the few that may be the best picked out.

The variance of a figure after a move is a sum: of what leaves the instance's own nodes, which is
the same for all targets, and of what comes to the target. For most figures the latter is an
amount of the instance times a factor of the node, so that the variances of all moves of a kind
are a product of two thin matrices. What a secondary keeps free for its primary is not, and is
worked out move by move, in one array operation.
"""

from collections.abc import Iterator

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.balancing.departures import may_leave
from coordinator.allocator.balancing.move_matrix import Candidates, MoveMatrix
from coordinator.allocator.balancing.moves import MoveKind
from coordinator.allocator.balancing.outcomes import simulate
from coordinator.allocator.balancing.step import Step

_BLOCK = 1 << 15  # moves of a kind estimated at a time, so that the numbers stay in the cache


def near_best(step: Step, bound: float, tolerance: float) -> list[Candidates]:
    """Moves estimated within ``tolerance`` of the best, or of ``bound`` if that is less."""
    found: list[Candidates] = []
    best = bound
    with np.errstate(invalid="ignore"):  # an offline node may have none of anything
        for candidates in _all(step):
            lowest = float(candidates.estimates.min(initial=np.inf))
            best = min(best, lowest)
            if lowest <= best + tolerance:
                found.append(_only(candidates, best + tolerance))
    return [_only(each, best + tolerance) for each in found]


def _all(step: Step) -> Iterator[Candidates]:
    for kind in MoveKind:
        some = step.some[may_leave(step.state, kind, step.some, step.targets, step.limits)]
        find = _failovers if kind is MoveKind.FAILOVER else _towards
        yield from find(step, kind, some)


def _failovers(step: Step, kind: MoveKind, some: Ints) -> Iterator[Candidates]:
    if not len(some):
        return
    nowhere, force = np.zeros(len(some), dtype=np.int64), step.limits.ignore_soft_errors
    outcome = simulate(step.state, kind, some, nowhere, force=force)
    value = np.where(outcome.codes == 0, step.score.estimates(outcome.changed), np.inf)
    yield Candidates(kind, some, nowhere, value)


def _towards(step: Step, kind: MoveKind, some: Ints) -> Iterator[Candidates]:
    rows = max(1, _BLOCK // max(1, len(step.targets)))
    if len(some) and len(step.targets):
        moves = MoveMatrix(step, kind, some)
        for start in range(0, len(some), rows):
            yield moves.block(slice(start, start + rows))


def _only(candidates: Candidates, limit: float) -> Candidates:
    near = np.flatnonzero(candidates.estimates <= limit)
    return Candidates(
        candidates.kind,
        candidates.instances[near],
        candidates.targets[near],
        candidates.estimates[near],
    )
