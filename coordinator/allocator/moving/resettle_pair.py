"""Where a mirrored instance goes that has to leave both its nodes: every pair at once.

It goes in steps, a new secondary, a failover to it, and another secondary, each of which may
be refused; the pair that leaves the scored nodes balanced best wins, the last among equals.
"""

from dataclasses import dataclass, replace

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.books.books import Books
from coordinator.allocator.books.occupy import (
    add_primary,
    add_secondary,
    remove_primary,
)
from coordinator.allocator.books.state import State
from coordinator.allocator.books.terms import figures
from coordinator.allocator.moving.seat import Refusal, Seat, fail_over
from coordinator.allocator.moving.two_changes import TwoChanges
from coordinator.allocator.refusal import Reason
from coordinator.allocator.snapshot import Instance

FAILOVER = "Failing over to the secondary"
FIRST_COPY = "Changing secondary to new primary"
SECOND_FAILOVER = "Failing over to new primary"
SECOND_COPY = "Changing secondary to final secondary"


@dataclass(frozen=True, slots=True)
class PairFound:
    """The outcome.

    Attributes:
        pair: new primary and secondary; None when no pair will do.
        starts_with_failover: whether the old secondary has to take over first.
        step, reason: if there is none, where the last pair stopped and why; empty if there
            was no pair to try.
    """

    pair: tuple[int, int] | None
    starts_with_failover: bool
    step: str = ""
    reason: Reason = Reason.NONE


def new_pair(
    state: State, demand: Instance, seat: Seat, targets: Ints, scored: Ints, *, force: bool
) -> PairFound:
    """Choose both nodes among ``targets`` (rising, without the present ones)."""
    ledger = state.ledger
    fails_over = not bool(ledger.usable[seat.primary])
    size = len(targets)
    if size < 2:
        return PairFound(None, fails_over)
    work = state.copy()
    if fails_over:
        try:
            seat = fail_over(work, demand, seat, force=force)
        except Refusal as refusal:
            return PairFound(None, fails_over, FAILOVER, refusal.reason)
    first = _FirstSteps(work, demand, seat, targets, force=force)

    # By now both old nodes are free of it; what remains is the last copy, from each new
    # primary to each other target.
    work = first.emptied
    force_last = force or not bool(ledger.usable[seat.primary])
    books = work.accounts.at(targets)
    last_codes, as_secondary = add_secondary(
        books, demand, promised=np.zeros(size, dtype=np.int64), force=force_last
    )
    owner, holder, promised = work.promises_between(targets)
    special_row, special_column = np.searchsorted(targets, owner), np.searchsorted(targets, holder)
    special_codes, special_books = add_secondary(
        work.accounts.at(holder), demand, promised=promised, force=force_last
    )
    codes = np.repeat(last_codes[None], size, axis=0)
    codes[special_row, special_column] = special_codes
    possible: Bools = (codes == 0) & (first.codes == 0)[:, None]
    np.fill_diagonal(possible, val=False)
    if not possible.any():
        row, column = size - 1, size - 2
        if first.codes[row]:
            return PairFound(None, fails_over, first.steps[row], Reason(int(first.codes[row])))
        return PairFound(None, fails_over, SECOND_COPY, Reason(int(codes[row, column])))

    scope = work.scope(scored)
    counts_locations = ledger.has_locations and not demand.forthcoming
    pairs = TwoChanges(
        scope.standing,
        np.searchsorted(scored, targets),
        figures(first.books),
        figures(as_secondary),
        work.crowding(demand, scope, targets),
        ledger.shared_locations(targets) if counts_locations else None,
        (special_row, special_column, figures(special_books)),
    )
    row, column = pairs.best(possible)
    return PairFound((int(targets[row]), int(targets[column])), fails_over)


class _FirstSteps:
    """The first copy and the failover, for every target as the new primary.

    Attributes:
        codes: ``Reason`` per target, and the step in which it came up.
        books: of the targets with the instance running on them.
        emptied: the books when the instance has left both its nodes.
    """

    def __init__(
        self, state: State, demand: Instance, seat: Seat, targets: Ints, *, force: bool
    ) -> None:
        ledger, primary = state.ledger, seat.primary
        self.emptied = state.copy()
        books = state.accounts.at(targets)
        self.codes, _ = add_secondary(
            books,
            demand,
            promised=state.promised(targets, primary),
            force=force or not bool(ledger.usable[seat.secondary]),
        )
        self.steps = [FIRST_COPY] * len(targets)
        self.emptied.take_secondary(demand, seat.secondary, primary)
        self.emptied.take_primary(demand, primary, seat.location)
        # Its primary is looked at again in passing.
        refused = self.emptied.put_primary(demand, primary, seat.location)
        if refused:
            self.codes = np.where(self.codes == 0, refused, self.codes)
        else:
            self.emptied.take_primary(demand, primary, seat.location)

        is_offline = not bool(ledger.usable[primary])
        force = force or is_offline
        allowed = ledger.may_migrate(primary, targets.tolist())
        self._refuse(np.where(allowed, 0, Reason.MIGRATION))
        codes, self.books = _settle(
            replace(books, fails_n1=books.memory <= books.reserved),
            demand,
            clashes=self.emptied.clashes(demand, targets),
            location=ledger.unmet_locations(demand, targets),
            force=force,
        )
        self._refuse(codes)
        here = np.full(len(targets), primary)
        codes, _ = add_secondary(
            self.emptied.accounts.at(here),
            demand,
            promised=self.emptied.promised_by(primary, targets),
            force=force,
            ignore_disk=is_offline,
        )
        self._refuse(codes)

    def _refuse(self, codes: Ints) -> None:
        """Note refusals of the failover where nothing was wrong before."""
        fresh = (self.codes == 0) & (codes != 0)
        for index in np.flatnonzero(fresh).tolist():
            self.steps[index] = SECOND_FAILOVER
        self.codes = np.where(fresh, codes, self.codes)


def _settle(
    books: Books, demand: Instance, *, clashes: Ints, location: Ints, force: bool
) -> tuple[Ints, Books]:
    """Put the instance on, off and on again as hail does: loads may round on the way."""
    codes, after = add_primary(books, demand, clashes=clashes, location=location, force=force)
    before = remove_primary(after, demand, clashes=clashes, location=location)
    _, again = add_primary(before, demand, clashes=clashes, location=location, force=True)
    return codes, again
