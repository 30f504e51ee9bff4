"""Where instances are, and moving one of them in a state, step by step, as hail simulates it.

A step that cannot be done raises ``Refusal`` and leaves the state spoiled; work on a copy.
"""

from __future__ import annotations

from common.record import Record, replace
from coordinator.allocator.refusal import Reason
from coordinator.allocator.snapshot import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.model.state import State
    from coordinator.allocator.snapshot import Instance


class Assignment(Record):
    """An instance where it is, by node index, and its part in the location score.

    A failover leaves that part as it was.
    """

    demand: Instance
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


def fail_over(state: State, assignment: Assignment, *, force: bool = False) -> Assignment:
    """Let a mirrored instance change sides."""
    demand, primary, secondary = assignment.demand, assignment.primary, assignment.secondary
    _check_migration(state, primary, secondary)
    is_offline = not state.model.usable[primary]
    force = force or is_offline
    state.take_primary(demand, primary, assignment.location)
    state.take_secondary(demand, secondary, primary)
    _demand(state.put_primary(demand, secondary, assignment.location, force=force))
    _demand(state.put_secondary(demand, primary, secondary, force=force, ignore_disk=is_offline))
    return replace(assignment, primary=secondary, secondary=primary)


def move_to(
    state: State, assignment: Assignment, target: int, *, force: bool = False
) -> Assignment:
    """Start an instance on shared storage elsewhere."""
    demand = assignment.demand
    _check_migration(state, assignment.primary, target)
    location = state.model.location_score(demand, target, assignment.secondary)
    force = force or not state.model.usable[assignment.primary]
    state.take_primary(demand, assignment.primary, assignment.location)
    _demand(state.put_primary(demand, target, location, force=force))
    return replace(assignment, primary=target, location=location)


def replace_secondary(
    state: State, assignment: Assignment, target: int, *, force: bool = False
) -> Assignment:
    """Copy the mirror of an instance to another node."""
    demand, primary = assignment.demand, assignment.primary
    location = state.model.location_score(demand, primary, target)
    force = force or not state.model.usable[assignment.secondary]
    _demand(state.put_secondary(demand, target, primary, force=force))
    state.take_secondary(demand, assignment.secondary, primary)
    state.take_primary(demand, primary, assignment.location)
    _demand(state.put_primary(demand, primary, location))
    return Assignment(demand, primary, target, location)


def _check_migration(state: State, source: int, target: int) -> None:
    if not state.model.may_migrate(source, [target])[0]:
        raise Refusal(Reason.MIGRATION)


def _demand(reason: Reason) -> None:
    if reason:
        raise Refusal(reason)


def residents_of(model: ClusterModel, node: int, latest: int | None = None) -> list[Assignment]:
    """The real primaries of a node, the newest first, as hail keeps them.

    ``latest`` is the index of an instance that was taken off and put back, which makes it the
    newest.
    """
    there = model.residents[node][::-1]
    for index in (*model.arrivals, latest):
        if index in there:
            there.remove(index)
            there.insert(0, index)
    residents = []
    for index in there:
        demand, secondary = model.snapshot.instances[index], model.secondary_of[index]
        location = model.location_score(demand, node, secondary)
        residents.append(Assignment(demand, node, secondary, location))
    return residents
