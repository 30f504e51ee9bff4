"""Where a mirrored instance goes that has to leave both its nodes: every pair at once.

It goes in steps, a new secondary, a failover to it, and another secondary, each of which may
be refused; the pair that leaves the scored nodes balanced best wins, the last among equals.
"""

from dataclasses import dataclass, replace

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.model.occupy import (
    add_primary,
    add_secondary,
    remove_primary,
)
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.score import figures
from coordinator.allocator.model.state import State
from coordinator.allocator.refusal import Reason
from coordinator.allocator.relocation.assignment import Assignment, Refusal, fail_over
from coordinator.allocator.relocation.two_changes import TwoChanges
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
    state: State,
    demand: Instance,
    assignment: Assignment,
    targets: Ints,
    scored: Ints,
    *,
    force: bool,
) -> PairFound:
    """Choose both nodes among ``targets`` (rising, without the present ones)."""
    model = state.model
    fails_over = not bool(model.usable[assignment.primary])
    size = len(targets)
    if size < 2:
        return PairFound(None, fails_over)
    work = state.copy()
    if fails_over:
        try:
            assignment = fail_over(work, demand, assignment, force=force)
        except Refusal as refusal:
            return PairFound(None, fails_over, FAILOVER, refusal.reason)
    first = _FirstSteps(work, demand, assignment, targets, force=force)

    # By now both old nodes are free of it; what remains is the last copy, from each new
    # primary to each other target.
    work = first.emptied
    force_last = force or not bool(model.usable[assignment.primary])
    resources = work.at(targets)
    last_codes, as_secondary = add_secondary(
        resources, demand, promised=np.zeros(size, dtype=np.int64), force=force_last
    )
    owner, holder, promised = work.promises_between(targets)
    special_row, special_column = np.searchsorted(targets, owner), np.searchsorted(targets, holder)
    special_codes, special_resources = add_secondary(
        work.at(holder), demand, promised=promised, force=force_last
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
    counts_locations = model.has_locations and not demand.forthcoming
    pairs = TwoChanges(
        scope.standing,
        np.searchsorted(scored, targets),
        figures(first.resources),
        figures(as_secondary),
        work.crowding(demand, scope, targets),
        model.shared_locations(targets) if counts_locations else None,
        (special_row, special_column, figures(special_resources)),
    )
    row, column = pairs.best(possible)
    return PairFound((int(targets[row]), int(targets[column])), fails_over)


class _FirstSteps:
    """The first copy and the failover, for every target as the new primary.

    Attributes:
        codes: ``Reason`` per target, and the step in which it came up.
        resources: of the targets with the instance running on them.
        emptied: the state when the instance has left both its nodes.
    """

    def __init__(
        self, state: State, demand: Instance, assignment: Assignment, targets: Ints, *, force: bool
    ) -> None:
        model, primary = state.model, assignment.primary
        self.emptied = state.copy()
        resources = state.at(targets)
        self.codes, _ = add_secondary(
            resources,
            demand,
            promised=state.promised(targets, primary),
            force=force or not bool(model.usable[assignment.secondary]),
        )
        self.steps = [FIRST_COPY] * len(targets)
        self.emptied.take_secondary(demand, assignment.secondary, primary)
        self.emptied.take_primary(demand, primary, assignment.location)
        # Its primary is looked at again in passing.
        refused = self.emptied.put_primary(demand, primary, assignment.location)
        if refused:
            self.codes = np.where(self.codes == 0, refused, self.codes)
        else:
            self.emptied.take_primary(demand, primary, assignment.location)

        is_offline = not bool(model.usable[primary])
        force = force or is_offline
        allowed = model.may_migrate(primary, targets.tolist())
        self._refuse(np.where(allowed, 0, Reason.MIGRATION))
        codes, self.resources = _settle(
            replace(resources, fails_n1=resources.memory <= resources.reserved),
            demand,
            clashes=self.emptied.clashes(demand, targets),
            location=model.unmet_locations(demand, targets),
            force=force,
        )
        self._refuse(codes)
        here = np.full(len(targets), primary)
        codes, _ = add_secondary(
            self.emptied.at(here),
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
    resources: NodeResources, demand: Instance, *, clashes: Ints, location: Ints, force: bool
) -> tuple[Ints, NodeResources]:
    """Put the instance on, off and on again as hail does: loads may round on the way."""
    codes, after = add_primary(resources, demand, clashes=clashes, location=location, force=force)
    before = remove_primary(after, demand, clashes=clashes, location=location)
    _, again = add_primary(before, demand, clashes=clashes, location=location, force=True)
    return codes, again
