"""All moves of all instances estimated at once, and the few that may be the best picked out.

The variance of a figure after a move is a sum: of what leaves the instance's own nodes, which is
the same for all targets, and of what comes to the target. For most figures the latter is an
amount of the instance times a factor of the node, so that the variances of all moves of a kind
are a product of two thin matrices. What a secondary keeps free for its primary is not, and is
worked out move by move, in one array operation.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.balancing.effects import distinct_spreads, roughly
from coordinator.allocator.balancing.fitting import Room
from coordinator.allocator.balancing.group_state import GroupState, MoveKind
from coordinator.allocator.balancing.move_matrix import Candidates as Candidates
from coordinator.allocator.balancing.move_matrix import MoveMatrix
from coordinator.allocator.model.score import Score
from coordinator.allocator.model.terms import WEIGHTS, Term

_BLOCK = 1 << 15  # moves of a kind estimated at a time, so that the numbers stay in the cache


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be done.

    Attributes:
        targets: positions of nodes, rising.
        disk_moves, instance_moves: whether disks may be copied, primaries changed.
        restricted: live migration only to the secondary.
        force: ignore soft limits.
    """

    targets: Ints
    disk_moves: bool = True
    instance_moves: bool = True
    restricted: bool = False
    force: bool = False


class Shortlist:
    """The moves of one step.

    Attributes:
        state, score, allowed: the group, how it stands, and what may be done.
        some: positions of the instances that may move.
        targets, target_resources, room: where to, and what there is.
        n1_matters: whether a move may change how many nodes lack memory for a failover.
    """

    def __init__(self, state: GroupState, score: Score, some: Ints, allowed: Allowed) -> None:
        self.state = state
        self.score = score
        self.some = some
        self.allowed = allowed
        self.targets = allowed.targets
        self.spreads = distinct_spreads(state, score, some, allowed.targets)
        self.target_resources = state.resources.at(allowed.targets)
        self.room = Room(self.target_resources)
        self._held = (state.holders[:, allowed.targets] > 0).astype(np.int64)
        resources = state.resources
        reliable = (
            ~(resources.fails_n1 | (resources.memory <= resources.reserved)) | resources.offline
        )
        homes = np.concatenate((state.primary[some], state.secondary[some]))
        self.n1_matters = bool(allowed.force or not reliable.all() or state.is_offline(homes).any())

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
        state, allowed = self.state, self.allowed
        mirrored = state.demands.mirrored[self.some]
        others = self.some[~mirrored]
        pairs = self.some[mirrored]
        offline = state.is_offline(state.primary[pairs])
        valid = np.isin(state.secondary[pairs], self.targets) & allowed.instance_moves
        yield from self._failovers(pairs[valid])
        if allowed.instance_moves:
            yield from self._towards(MoveKind.FAILOVER_TO_ANY, others)
        if not allowed.disk_moves:
            return
        yield from self._towards(MoveKind.REPLACE_SECONDARY, pairs)
        if not allowed.instance_moves:
            return
        free = offline | (not allowed.restricted)
        yield from self._towards(MoveKind.REPLACE_AND_FAILOVER, pairs[free])
        yield from self._towards(MoveKind.FAILOVER_AND_REPLACE, pairs[free & valid])
        if not allowed.restricted:
            yield from self._towards(MoveKind.REPLACE_PRIMARY, pairs[valid])

    def _failovers(self, some: Ints) -> Iterator[Candidates]:
        if not len(some):
            return
        nowhere = np.zeros(len(some), dtype=np.int64)
        outcome = self.state.carry_out(MoveKind.FAILOVER, some, nowhere, force=self.allowed.force)
        fits = outcome.codes == 0
        changed = outcome.changed
        value = np.full(len(some), np.inf)
        value[fits] = roughly(self.score, changed.nodes[:, fits], changed.figures[:, :, fits])
        value += WEIGHTS[Term.LOCATION_EXCLUSION_SCORE] * outcome.crowding
        yield Candidates(MoveKind.FAILOVER, some, nowhere, value)

    def clashes(self, some: Ints, as_primary: bool) -> Ints | None:
        """Matrix of exclusion tags that are taken on targets; None if that plays no part."""
        if not as_primary or not len(self._held):
            return None
        taken: Ints = self.state.tagged[some] @ self._held
        return taken

    def _towards(self, kind: MoveKind, some: Ints) -> Iterator[Candidates]:
        rows = max(1, _BLOCK // max(1, len(self.targets)))
        if len(some) and len(self.targets):
            moves = MoveMatrix(self, kind, some)
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
