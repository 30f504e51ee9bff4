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
    state, limits, mirrored = step.state, step.limits, step.state.demands.mirrored[step.some]
    others, pairs = step.some[~mirrored], step.some[mirrored]
    offline = state.is_offline(state.primary[pairs])
    valid = np.isin(state.secondary[pairs], step.targets) & limits.instance_moves
    yield from _failovers(step, pairs[valid])
    if limits.instance_moves:
        yield from _towards(step, MoveKind.FAILOVER_TO_ANY, others)
    if not limits.disk_moves:
        return
    yield from _towards(step, MoveKind.REPLACE_SECONDARY, pairs)
    if not limits.instance_moves:
        return
    free = offline | (not limits.restricted)
    yield from _towards(step, MoveKind.REPLACE_AND_FAILOVER, pairs[free])
    yield from _towards(step, MoveKind.FAILOVER_AND_REPLACE, pairs[free & valid])
    if not limits.restricted:
        yield from _towards(step, MoveKind.REPLACE_PRIMARY, pairs[valid])


def _failovers(step: Step, some: Ints) -> Iterator[Candidates]:
    if not len(some):
        return
    nowhere, force = np.zeros(len(some), dtype=np.int64), step.limits.ignore_soft_errors
    outcome = simulate(step.state, MoveKind.FAILOVER, some, nowhere, force=force)
    value = np.where(outcome.codes == 0, step.score.estimates(outcome.changed), np.inf)
    yield Candidates(MoveKind.FAILOVER, some, nowhere, value)


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
