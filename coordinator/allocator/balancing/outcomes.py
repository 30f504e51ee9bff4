"""Moves of one kind simulated, many side by side, each on the group as it stands.

A node is changed step by step as htools does it, and the first step that is refused spoils the
move; which step that was plays no part.
"""

from typing import assert_never

import numpy as np

from coordinator.allocator.arithmetic import first_failure
from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.balancing.moves import MoveKind, Outcome
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.shift import add_primary, add_secondary
from coordinator.allocator.refusal import Reason

_Ends = tuple[Ints, Ints]  # primary and secondary afterwards
_Touched = tuple[tuple[Ints, NodeResources], ...]


def simulate(
    state: GroupState, kind: MoveKind, some: Ints, targets: Ints, *, force: bool
) -> Outcome:
    """Move each instance by a move of one kind; ``targets`` count where it has one.

    Args:
        state: the group, which is not changed.
        kind: of all the moves.
        some: positions of instances, shape (moves,).
        targets: positions of nodes, shape (moves,).
        force: ignore soft limits everywhere.
    """
    return _Simulation(state, some, targets, force=force).outcome(kind)


class _Simulation:
    """Instances on the move, one candidate each."""

    def __init__(self, state: GroupState, some: Ints, targets: Ints, *, force: bool) -> None:
        """Take the instances off their nodes.

        Args:
            state: the group.
            some: positions of instances.
            targets: positions of nodes; of no meaning for a failover.
            force: ignore soft limits everywhere.
        """
        self._state, self._some, self._targets = state, some, targets
        self._demands = state.demands.at(some)
        self._home, self._mirror = state.primary[some], state.secondary[some]
        self._forced = np.full(len(some), force)
        # Of a node that is offline an instance has to go, whatever soft limits say.
        self._off_home = state.is_offline(self._home) | force
        self._off_mirror = state.is_offline(self._mirror) | force
        self._less, self._mirror_less = state.at_home(some)
        self._refused: list[tuple[Bools, Reason]] = []

    def outcome(self, kind: MoveKind) -> Outcome:
        """Make the moves."""
        match kind:
            case MoveKind.FAILOVER:
                ends, touched, location = self._fail_over()
            case MoveKind.FAILOVER_TO_ANY:
                ends, touched, location = self._fail_over_to_any()
            case MoveKind.REPLACE_SECONDARY:
                ends, touched, location = self._replace_secondary()
            case MoveKind.REPLACE_AND_FAILOVER:
                ends, touched, location = self._replace_and_fail_over()
            case MoveKind.REPLACE_PRIMARY:
                ends, touched, location = self._replace_primary()
            case MoveKind.FAILOVER_AND_REPLACE:
                ends, touched, location = self._fail_over_and_replace()
            case _:
                assert_never(kind)
        return Outcome(
            first_failure(self._refused),
            np.stack([node for node, _ in touched]),
            tuple(resources for _, resources in touched),
            *ends,
            location,
            self._state.crowding_of(self._some, ends[0]),
        )

    def _fail_over(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror = self._home, self._mirror
        location = self._location(mirror, home)
        self._migrate(home, mirror)
        first = self._run(self._mirror_less, mirror, location, self._off_home)
        any_disk = self._state.is_offline(home)
        second = self._keep(self._less, home, mirror, self._off_home, any_disk)
        return (mirror, home), ((mirror, first), (home, second)), location

    def _fail_over_to_any(self) -> tuple[_Ends, _Touched, Ints]:
        home, targets = self._home, self._targets
        location = self._state.unmet[self._some, targets]
        self._migrate(home, targets)
        first = self._run(self._state.resources.at(targets), targets, location, self._off_home)
        return (targets, self._mirror), ((targets, first), (home, self._less)), location

    def _replace_secondary(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror, targets = self._home, self._mirror, self._targets
        location = self._location(home, targets)
        at_target = self._state.resources.at(targets)
        second = self._keep(at_target, targets, home, self._off_mirror)
        first = self._put_back(location)
        touched = ((home, first), (targets, second), (mirror, self._mirror_less))
        return (home, targets), touched, location

    def _replace_and_fail_over(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror, targets = self._home, self._mirror, self._targets
        location = self._location(targets, home)
        self._migrate(home, targets)
        first = self._run(self._state.resources.at(targets), targets, location, self._forced)
        second = self._keep(self._less, home, targets, self._off_mirror)
        touched = ((targets, first), (home, second), (mirror, self._mirror_less))
        return (targets, home), touched, location

    def _replace_primary(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror, targets = self._home, self._mirror, self._targets
        location = self._location(targets, mirror)
        self._migrate(home, mirror)
        self._migrate(mirror, targets)
        self._run(self._mirror_less, mirror, location, self._off_home)
        first = self._run(self._state.resources.at(targets), targets, location, self._off_home)
        second = self._keep(self._mirror_less, mirror, targets, self._off_home)
        touched = ((targets, first), (mirror, second), (home, self._less))
        return (targets, mirror), touched, location

    def _fail_over_and_replace(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror, targets = self._home, self._mirror, self._targets
        location = self._location(mirror, targets)
        self._migrate(home, mirror)
        first = self._run(self._mirror_less, mirror, location, self._off_home)
        at_target = self._state.resources.at(targets)
        second = self._keep(at_target, targets, mirror, self._off_home)
        touched = ((mirror, first), (targets, second), (home, self._less))
        return (mirror, targets), touched, location

    def _location(self, first: Ints, second: Ints) -> Ints:
        """Location tags that two nodes share, and desired ones that the first does not have."""
        shared: Ints = self._state.shared_places[first, second]
        return shared + self._state.unmet[self._some, first]

    def _migrate(self, sources: Ints, ends: Ints) -> None:
        self._refused.append((~self._state.may_migrate[sources, ends], Reason.MIGRATION))

    def _run(self, on: NodeResources, at: Ints, location: Ints, force: Bools) -> NodeResources:
        clashes = self._state.clashes(self._some, at)
        codes, after = add_primary(
            on, self._demands, clashes=clashes, location=location, force=force
        )
        self._refused.append((codes > 0, Reason.MEMORY))
        return after

    def _keep(
        self, on: NodeResources, at: Ints, of: Ints, force: Bools, any_disk: Bools | None = None
    ) -> NodeResources:
        promised = self._state.promised[at, of]
        codes, after = add_secondary(
            on, self._demands, promised=promised, force=force, any_disk=any_disk
        )
        self._refused.append((codes > 0, Reason.MEMORY))
        return after

    def _put_back(self, location: Ints) -> NodeResources:
        """The instance on its primary again, which looks anew at whether that fails N+1."""
        codes, after = add_primary(
            self._less,
            self._demands,
            clashes=self._state.freed(self._some),
            location=location,
            force=np.ones(len(self._some), dtype=np.bool_),
        )
        self._refused.append((codes > 0, Reason.MEMORY))
        return after
