"""One step of a balancing: the group as it stands, and what all its moves have in common."""

from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.balancing.effects import distinct_spreads
from coordinator.allocator.balancing.fitting import Room
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.model.score import Score


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


class Step:
    """What is the same for all moves of a step.

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

    def clashes(self, some: Ints, as_primary: bool) -> Ints | None:
        """Matrix of exclusion tags that are taken on targets; None if that plays no part."""
        if not as_primary or not len(self._held):
            return None
        taken: Ints = self.state.tagged[some] @ self._held
        return taken
