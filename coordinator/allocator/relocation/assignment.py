"""Moving one instance in a state, step by step, as hail simulates it.

A step that cannot be done raises ``Refusal`` and leaves the state spoiled; work on a copy.
"""

from common.record import Record, replace
from coordinator.allocator.model.state import State
from coordinator.allocator.refusal import Reason
from coordinator.allocator.snapshot import NOWHERE, Instance


class Assignment(Record):
    """Where an instance is, by node index, and its part in the location score."""

    primary: int
    secondary: int
    location: int

    @property
    def nodes(self) -> tuple[int, ...]:
        return (self.primary,) if self.secondary == NOWHERE else (self.primary, self.secondary)


class Refusal(Exception):
    """A step cannot be done."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.hail_name)
        self.reason = reason


def fail_over(
    state: State, demand: Instance, assignment: Assignment, *, force: bool = False
) -> Assignment:
    """Let a mirrored instance change sides."""
    primary, secondary = assignment.primary, assignment.secondary
    _check_migration(state, primary, secondary)
    is_offline = not state.model.usable[primary]
    force = force or is_offline
    state.take_primary(demand, primary, assignment.location)
    state.take_secondary(demand, secondary, primary)
    _demand(state.put_primary(demand, secondary, assignment.location, force=force))
    _demand(state.put_secondary(demand, primary, secondary, force=force, ignore_disk=is_offline))
    return Assignment(secondary, primary, assignment.location)


def move_to(
    state: State, demand: Instance, assignment: Assignment, target: int, *, force: bool = False
) -> Assignment:
    """Start an instance on shared storage elsewhere."""
    _check_migration(state, assignment.primary, target)
    location = state.model.location_score(demand, target, assignment.secondary)
    force = force or not state.model.usable[assignment.primary]
    state.take_primary(demand, assignment.primary, assignment.location)
    _demand(state.put_primary(demand, target, location, force=force))
    return replace(assignment, primary=target, location=location)


def replace_secondary(
    state: State, demand: Instance, assignment: Assignment, target: int, *, force: bool = False
) -> Assignment:
    """Copy the mirror of an instance to another node."""
    primary = assignment.primary
    location = state.model.location_score(demand, primary, target)
    force = force or not state.model.usable[assignment.secondary]
    _demand(state.put_secondary(demand, target, primary, force=force))
    state.take_secondary(demand, assignment.secondary, primary)
    state.take_primary(demand, primary, assignment.location)
    _demand(state.put_primary(demand, primary, location))
    return Assignment(primary, target, location)


def _check_migration(state: State, source: int, target: int) -> None:
    if not state.model.may_migrate(source, [target])[0]:
        raise Refusal(Reason.MIGRATION)


def _demand(reason: Reason) -> None:
    if reason:
        raise Refusal(reason)
