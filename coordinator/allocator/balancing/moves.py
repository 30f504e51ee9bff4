"""The kinds of moves, and what comes of moves that are carried out side by side."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.model.figures import figures
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.score import Changed


class MoveKind(IntEnum):
    """What is done, in the order in which a target's moves are tried."""

    FAILOVER = 0
    FAILOVER_TO_ANY = 1
    REPLACE_SECONDARY = 2
    REPLACE_AND_FAILOVER = 3
    REPLACE_PRIMARY = 4
    FAILOVER_AND_REPLACE = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """Candidates of one kind, carried out.

    Attributes:
        codes: 0 of what can be done.
        nodes: shape (nodes touched, candidates), the new primary's among them.
        resources: of those nodes, afterwards; one per row of ``nodes``.
        primary, secondary, location: of the instance, afterwards.
        crowding: what is added to the count of crowded locations.
    """

    codes: Ints
    nodes: Ints
    resources: tuple[NodeResources, ...]
    primary: Ints
    secondary: Ints
    location: Ints
    crowding: Ints

    @property
    def changed(self) -> Changed:
        return Changed(
            self.nodes, np.stack([figures(one) for one in self.resources], axis=1), self.crowding
        )
