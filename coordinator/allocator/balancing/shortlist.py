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


class Shortlist:
    """The moves of one step that may be the best."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def near_best(self, bound: float, tolerance: float) -> list[Candidates]:
        """Moves estimated within ``tolerance`` of the best, or of ``bound`` if that is less."""
        found: list[Candidates] = []
        best = bound
        with np.errstate(invalid="ignore"):  # an offline node may have none of anything
            for candidates in self._all():
                lowest = float(candidates.estimates.min(initial=np.inf))
                best = min(best, lowest)
                if lowest <= best + tolerance:
                    found.append(_only(candidates, best + tolerance))
        return [_only(each, best + tolerance) for each in found]

    def _all(self) -> Iterator[Candidates]:
        state, limits = self._step.state, self._step.limits
        mirrored = state.demands.mirrored[self._step.some]
        others = self._step.some[~mirrored]
        pairs = self._step.some[mirrored]
        offline = state.is_offline(state.primary[pairs])
        valid = np.isin(state.secondary[pairs], self._step.targets) & limits.instance_moves
        yield from self._failovers(pairs[valid])
        if limits.instance_moves:
            yield from self._towards(MoveKind.FAILOVER_TO_ANY, others)
        if not limits.disk_moves:
            return
        yield from self._towards(MoveKind.REPLACE_SECONDARY, pairs)
        if not limits.instance_moves:
            return
        free = offline | (not limits.restricted)
        yield from self._towards(MoveKind.REPLACE_AND_FAILOVER, pairs[free])
        yield from self._towards(MoveKind.FAILOVER_AND_REPLACE, pairs[free & valid])
        if not limits.restricted:
            yield from self._towards(MoveKind.REPLACE_PRIMARY, pairs[valid])

    def _failovers(self, some: Ints) -> Iterator[Candidates]:
        if not len(some):
            return
        nowhere = np.zeros(len(some), dtype=np.int64)
        state, force = self._step.state, self._step.limits.ignore_soft_errors
        outcome = simulate(state, MoveKind.FAILOVER, some, nowhere, force=force)
        estimates = self._step.score.estimates(outcome.changed)
        value = np.where(outcome.codes == 0, estimates, np.inf)
        yield Candidates(MoveKind.FAILOVER, some, nowhere, value)

    def _towards(self, kind: MoveKind, some: Ints) -> Iterator[Candidates]:
        rows = max(1, _BLOCK // max(1, len(self._step.targets)))
        if len(some) and len(self._step.targets):
            moves = MoveMatrix(self._step, kind, some)
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
