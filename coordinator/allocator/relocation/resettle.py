"""Where an instance that has to leave a node goes: every target tried.

The target that leaves the scored nodes balanced best wins, the last among equals.
"""

from __future__ import annotations

from coordinator.allocator.model.trials import as_primary, as_secondary
from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.allocator.model.assignment import Assignment
    from coordinator.allocator.model.state import State
    from coordinator.allocator.model.trials import Trials


def new_homes(
    state: State, at: Assignment, targets: Sequence[int], scored: Sequence[int], *, force: bool
) -> Trials:
    """Where an instance on shared storage could run instead."""
    model, work = state.model, state.copy()
    work.take_primary(at.demand, at.primary, at.location)
    force = force or not model.usable[at.primary]
    trials = as_primary(work, work.scope(scored), targets, at.demand, force=force)
    allowed = model.may_migrate(at.primary, targets)
    trials.refuse([Reason.NONE if may_migrate else Reason.MIGRATION for may_migrate in allowed])
    return trials


def new_secondaries(
    state: State, at: Assignment, targets: Sequence[int], scored: Sequence[int], *, force: bool
) -> Trials:
    """Where the second copy of an instance could be instead."""
    model, demand, primary = state.model, at.demand, at.primary
    force = force or not model.usable[at.secondary]
    work = state.copy()
    # The primary is gone through as well, as hail does: it may not pass, and whether it fails N+1
    # is found out anew.
    work.take_secondary(demand, at.secondary, primary)
    work.take_primary(demand, primary, at.location)
    refused = work.put_primary(demand, primary, model.location_score(demand, primary))
    scope = work.scope(scored)
    counts = model.usable[primary] and not demand.forthcoming and primary in scope.place
    trials = as_secondary(
        state,
        scope,
        targets,
        demand,
        promised=state.promised(targets, primary),
        location=[model.shared_locations(primary, each) for each in targets] if counts else None,
        force=force,
    )
    trials.codes = [code or int(refused) for code in trials.codes]
    return trials
