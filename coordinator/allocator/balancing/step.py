"""One step of a balancing: the group as it stands, and what all its moves have in common."""

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.balancing.effects import distinct_spreads
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.balancing.moves import Limits
from coordinator.allocator.model.score import Score


class Step:
    """What is the same for all moves of a step.

    Attributes:
        state, score, limits: the group, how it stands, and what may be done.
        some: positions of the instances that may move.
        targets, target_resources: where to, positions of nodes, rising; and what there is.
        n1_matters: whether a move may change how many nodes lack memory for a failover.
    """

    def __init__(
        self, state: GroupState, score: Score, some: Ints, targets: Ints, limits: Limits
    ) -> None:
        self.state, self.score, self.some = state, score, some
        self.targets, self.limits = targets, limits
        self.spreads = distinct_spreads(state, score, some, targets)
        self.target_resources = state.resources.at(targets)
        self._held = (state.holders[:, targets] > 0).astype(np.int64)
        resources = state.resources
        reliable = (
            ~(resources.fails_n1 | (resources.memory <= resources.reserved)) | resources.offline
        )
        homes = np.concatenate((state.primary[some], state.secondary[some]))
        self.n1_matters = bool(
            limits.ignore_soft_errors or not reliable.all() or state.is_offline(homes).any()
        )

    def clashes(self, some: Ints, as_primary: bool) -> Ints | None:
        """Matrix of exclusion tags that are taken on targets; None if that plays no part."""
        if not as_primary or not len(self._held):
            return None
        taken: Ints = self.state.tagged[some] @ self._held
        return taken
