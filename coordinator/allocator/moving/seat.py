"""Moving one instance in the books, step by step, as hail simulates it.

A step that is refused leaves the books spoiled; work on a copy.
"""

from dataclasses import dataclass, replace

from coordinator.allocator.books.state import State
from coordinator.allocator.refusal import Reason
from coordinator.allocator.snapshot import NOWHERE, Instance


@dataclass(frozen=True, slots=True)
class Seat:
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


def fail_over(state: State, demand: Instance, seat: Seat, *, force: bool = False) -> Seat:
    """Let a mirrored instance change sides.

    Raises:
        Refusal: the books are spoiled then.
    """
    primary, secondary = seat.primary, seat.secondary
    _check_migration(state, primary, secondary)
    is_offline = not state.ledger.usable[primary]
    force = force or is_offline
    state.take_primary(demand, primary, seat.location)
    state.take_secondary(demand, secondary, primary)
    _demand(state.put_primary(demand, secondary, seat.location, force=force))
    _demand(state.put_secondary(demand, primary, secondary, force=force, ignore_disk=is_offline))
    return Seat(secondary, primary, seat.location)


def move_to(
    state: State, demand: Instance, seat: Seat, target: int, *, force: bool = False
) -> Seat:
    """Start an instance on shared storage elsewhere.

    Raises:
        Refusal: the books are spoiled then.
    """
    _check_migration(state, seat.primary, target)
    location = state.ledger.location_score(demand, target, seat.secondary)
    force = force or not state.ledger.usable[seat.primary]
    state.take_primary(demand, seat.primary, seat.location)
    _demand(state.put_primary(demand, target, location, force=force))
    return replace(seat, primary=target, location=location)


def replace_secondary(
    state: State, demand: Instance, seat: Seat, target: int, *, force: bool = False
) -> Seat:
    """Copy the mirror of an instance to another node.

    Raises:
        Refusal: the books are spoiled then.
    """
    primary = seat.primary
    location = state.ledger.location_score(demand, primary, target)
    force = force or not state.ledger.usable[seat.secondary]
    _demand(state.put_secondary(demand, target, primary, force=force))
    state.take_secondary(demand, seat.secondary, primary)
    state.take_primary(demand, primary, seat.location)
    _demand(state.put_primary(demand, primary, location))
    return Seat(primary, target, location)


def _check_migration(state: State, source: int, target: int) -> None:
    if not state.ledger.may_migrate(source, [target])[0]:
        raise Refusal(Reason.MIGRATION)


def _demand(reason: Reason) -> None:
    if reason:
        raise Refusal(reason)
