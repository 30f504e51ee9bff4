"""The kinds of moves, which are made, and what comes of some carried out side by side."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

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

    @property
    def steps(self) -> tuple[StepKind, ...]:
        """What is done one after the other."""
        return _STEPS[self]


class StepKind(Enum):
    """A part of a move; all but the first have the target as their aim."""

    SWITCH = "f"  # primary and secondary
    SWITCH_TO = "fa"  # what is on shared storage runs elsewhere
    REPLACE = "r"  # the secondary


_STEPS = {
    MoveKind.FAILOVER: (StepKind.SWITCH,),
    MoveKind.FAILOVER_TO_ANY: (StepKind.SWITCH_TO,),
    MoveKind.REPLACE_SECONDARY: (StepKind.REPLACE,),
    MoveKind.REPLACE_AND_FAILOVER: (StepKind.REPLACE, StepKind.SWITCH),
    MoveKind.REPLACE_PRIMARY: (StepKind.SWITCH, StepKind.REPLACE, StepKind.SWITCH),
    MoveKind.FAILOVER_AND_REPLACE: (StepKind.SWITCH, StepKind.REPLACE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When to stop, and what may be moved.

    Attributes:
        min_gain: least improvement of a move once the score is below ``min_gain_limit``.
        evacuate: move only what has a node that is offline.
        disk_moves, instance_moves: whether disks may be copied, primaries changed.
        restricted: live migration only to the secondary.
        selected, excluded: names of instances; None selects all.
    """

    min_gain: float = 0.01
    min_gain_limit: float = 0.1
    evacuate: bool = False
    disk_moves: bool = True
    instance_moves: bool = True
    restricted: bool = False
    ignore_soft_errors: bool = False
    selected: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Candidates of one kind, carried out; arrays of shape (candidates,) where not said.

    Nodes are positions within the group.

    Attributes:
        codes: 0 of what can be done; which other number it is means nothing.
        nodes: shape (nodes touched, candidates), the new primary's among them.
        resources: of those nodes, afterwards; one per row of ``nodes``.
        primary, secondary: nodes of the instance, afterwards.
        location: location tags that these share, and desired locations not met, counted.
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
