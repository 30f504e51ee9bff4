"""Where a mirrored instance goes that has to leave both its nodes: every pair at once.

It goes in steps, a new secondary, a failover to it, and another secondary, each of which may
be refused; the pair that leaves the scored nodes balanced best wins, the last among equals.
"""

from dataclasses import dataclass, replace

import numpy as np

from coordinator.allocator.accounts import Accounts
from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.moving import Refusal, Seat, fail_over
from coordinator.allocator.occupy import (
    add_primary,
    add_secondary,
    remove_primary,
)
from coordinator.allocator.picture import Demand
from coordinator.allocator.refusal import Reason
from coordinator.allocator.resettle import ranked
from coordinator.allocator.score import Changes, Term, figures
from coordinator.allocator.state import State

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
    state: State, demand: Demand, seat: Seat, targets: Ints, scored: Ints, *, force: bool
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

    rows, columns = np.nonzero(possible)
    after_first, after_second = figures(first.books)[:, rows], figures(as_secondary)[:, columns]
    place = {key: at for at, key in enumerate(zip(special_row, special_column, strict=True))}
    if place:
        index = np.full((size, size), -1, dtype=np.int64)
        index[special_row, special_column] = np.arange(len(special_row))
        found = index[rows, columns]
        after_second[:, found >= 0] = figures(special_books)[:, found[found >= 0]]
    if ledger.has_locations and not demand.forthcoming:
        after_first[Term.LOCATION_SCORE] += ledger.shared_locations(targets)[rows, columns]
    scope = work.scope(scored)
    crowding = work.crowding(demand, scope, targets)
    positions = np.searchsorted(scored, targets)
    changes = Changes(
        np.stack((positions[rows], positions[columns])),
        np.stack((after_first, after_second), axis=1),
        crowding[rows],
    )
    best, _ = next(ranked(scope.standing, changes))
    return PairFound((int(targets[rows[best]]), int(targets[columns[best]])), fails_over)


class _FirstSteps:
    """The first copy and the failover, for every target as the new primary.

    Attributes:
        codes: ``Reason`` per target, and the step in which it came up.
        books: of the targets with the instance running on them.
        emptied: the books when the instance has left both its nodes.
    """

    def __init__(
        self, state: State, demand: Demand, seat: Seat, targets: Ints, *, force: bool
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
            promised=self._promised_by(primary, targets),
            force=force,
            ignore_disk=is_offline,
        )
        self._refuse(codes)

    def _promised_by(self, node: int, primaries: Ints) -> Ints:
        return np.array(
            [
                int(self.emptied.promised(np.array([node]), primary)[0])
                for primary in primaries.tolist()
            ],
            dtype=np.int64,
        )

    def _refuse(self, codes: Ints) -> None:
        """Note refusals of the failover where nothing was wrong before."""
        fresh = (self.codes == 0) & (codes != 0)
        for index in np.flatnonzero(fresh).tolist():
            self.steps[index] = SECOND_FAILOVER
        self.codes = np.where(fresh, codes, self.codes)


def _settle(
    books: Accounts, demand: Demand, *, clashes: Ints, location: Ints, force: bool
) -> tuple[Ints, Accounts]:
    """Put the instance on, off and on again as hail does: loads may round on the way."""
    codes, after = add_primary(books, demand, clashes=clashes, location=location, force=force)
    before = remove_primary(after, demand, clashes=clashes, location=location)
    _, again = add_primary(before, demand, clashes=clashes, location=location, force=True)
    return codes, again
