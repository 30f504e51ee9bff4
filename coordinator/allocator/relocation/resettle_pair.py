"""Where a mirrored instance goes that has to leave both its nodes: every pair at once.

It goes in steps, a new secondary, a failover to it, and another secondary, each of which may
be refused; the pair that leaves the scored nodes balanced best wins, the last among equals.
"""

from __future__ import annotations

from common.record import Record
from coordinator.allocator.allocation.pair_scores import PairScores
from coordinator.allocator.allocation.two_nodes import TwoNodes
from coordinator.allocator.model.assignment import Refusal, fail_over
from coordinator.allocator.model.shift import add_primary, change_primary
from coordinator.allocator.model.trials import as_secondary, on_each
from coordinator.allocator.refusal import REASONS, Reason
from coordinator.allocator.relocation.resettle import new_secondaries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from coordinator.allocator.model.assignment import Assignment
    from coordinator.allocator.model.resources import Demands, NodeResources
    from coordinator.allocator.model.state import State
    from coordinator.allocator.model.trials import Trials
    from coordinator.allocator.snapshot import Instance

FAILOVER = "Failing over to the secondary"
FIRST_COPY = "Changing secondary to new primary"
SECOND_FAILOVER = "Failing over to new primary"
SECOND_COPY = "Changing secondary to final secondary"


class PairFound(Record):
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
    state: State, at: Assignment, targets: Sequence[int], scored: Sequence[int], *, force: bool
) -> PairFound:
    """Choose both nodes among ``targets`` (rising, without the present ones)."""
    model, demand = state.model, at.demand
    fails_over = not model.usable[at.primary]
    size = len(targets)
    if size < 2:
        return PairFound(None, fails_over)
    work = state.copy()
    if fails_over:
        try:
            at = fail_over(work, at, force=force)
        except Refusal as refusal:
            return PairFound(None, fails_over, FAILOVER, refusal.reason)
    first = _FirstSteps(work, at, targets, scored, force=force)

    # By now both old nodes are free of it; what remains is the last copy, from each new
    # primary to each other target.
    work, scope = first.emptied, first.scope
    force = force or not model.usable[at.primary]
    second = as_secondary(work, scope, targets, demand, force=force)
    pairs = TwoNodes(work, scope, demand, first.run, second, force=force)
    codes = pairs.special
    possible = (
        not codes.get((row, column))
        for row in pairs.rows
        for column in pairs.columns
        if row != column
    )
    if not any(possible):
        row, column = size - 1, size - 2
        code = first.run.codes[row]
        if code:
            return PairFound(None, fails_over, first.steps[row], REASONS[code])
        reason = REASONS[codes.get((row, column), second.codes[column])]
        return PairFound(None, fails_over, SECOND_COPY, reason)
    row, column = PairScores(scope.standing, pairs).best_afresh()
    return PairFound((targets[row], targets[column]), fails_over)


class _FirstSteps:
    """The first copy and the failover, for every target as the new primary.

    Attributes:
        run: the targets with the instance running on them; refused in any of the steps.
        steps: per target, the one in which that came up.
        emptied: the state when the instance has left both its nodes.
        scope: the scored nodes then.
    """

    def __init__(
        self,
        state: State,
        at: Assignment,
        targets: Sequence[int],
        scored: Sequence[int],
        *,
        force: bool,
    ) -> None:
        model, demand, primary = state.model, at.demand, at.primary
        self.emptied = state.copy()
        self.steps = [FIRST_COPY] * len(targets)
        self.emptied.take_secondary(demand, at.secondary, primary)
        self.emptied.take_primary(demand, primary, at.location)
        self.scope = self.emptied.scope(scored)
        codes = new_secondaries(state, at, targets, scored, force=force).codes
        is_offline = not model.usable[primary]
        force = force or is_offline
        allowed = model.may_migrate(primary, targets)
        self.run = self._settle(state, demand, targets, force=force)
        back = as_secondary(
            self.emptied,
            self.scope,
            [primary] * len(targets),
            demand,
            promised=[self.emptied.held(primary).get(target, 0) for target in targets],
            force=force,
            ignore_disk=is_offline,
        )
        stages = zip(codes, allowed, self.run.codes, back.codes, strict=True)
        for turn, (first, may_migrate, runs, comes_back) in enumerate(stages):
            migration = 0 if may_migrate else int(Reason.MIGRATION)
            self.run.codes[turn] = first or migration or runs or comes_back
            if self.run.codes[turn] and not first:
                self.steps[turn] = SECOND_FAILOVER

    def _settle(
        self, state: State, demand: Instance, targets: Sequence[int], *, force: bool
    ) -> Trials:
        """Put the instance on, off and on again as hail does: loads may round on the way."""

        def settle(
            one: NodeResources, asks: Demands, clashes: Any, location: Any
        ) -> tuple[Any, NodeResources]:
            one = one.changed(fails_n1=one.memory <= one.reserved)
            codes, after = add_primary(one, asks, clashes=clashes, location=location, force=force)
            before = change_primary(after, asks, clashes=clashes, location=location, come=False)
            _, again = add_primary(before, asks, clashes=clashes, location=location, force=True)
            return codes, again

        clashes = self.emptied.clashes(demand, targets)
        location = state.model.unmet_locations(demand, targets)
        trials = on_each(state, self.scope, targets, demand, settle, clashes, location)
        trials.crowding = self.emptied.crowding(demand, self.scope, targets)
        return trials
