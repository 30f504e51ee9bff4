"""Where an instance that has to leave a node goes: every target tried.

The target that leaves the scored nodes balanced best wins, the last among equals.
"""

from __future__ import annotations

from coordinator.allocator.model.trials import as_primary, as_secondary
from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coordinator.allocator.model.state import State
    from coordinator.allocator.relocation.assignment import Assignment
    from coordinator.allocator.snapshot import Instance


class Targets:
    """What each target would do.

    Attributes:
        nodes: indices of the targets, rising.
        codes: ``Reason`` per target.
        ranked: those that do not refuse, with their scores, the best first; looked at once.
    """

    __slots__ = ("codes", "nodes", "ranked")

    def __init__(
        self, nodes: Sequence[int], codes: Sequence[int], ranked: Iterator[tuple[int, float]]
    ) -> None:
        self.nodes, self.codes, self.ranked = nodes, codes, ranked


def new_homes(
    state: State,
    demand: Instance,
    assignment: Assignment,
    targets: Sequence[int],
    scored: Sequence[int],
    *,
    force: bool,
) -> Targets:
    """Where an instance on shared storage could run instead."""
    model = state.model
    allowed = zip(targets, model.may_migrate(assignment.primary, targets), strict=True)
    open_ones = [target for target, may_migrate in allowed if may_migrate]
    work = state.copy()
    work.take_primary(demand, assignment.primary, assignment.location)
    scope = work.scope(scored)
    trials = as_primary(
        work,
        scope,
        open_ones,
        demand,
        location=model.unmet_locations(demand, open_ones),
        force=force or not model.usable[assignment.primary],
    )
    known = dict(zip(open_ones, trials.codes, strict=True))
    codes = [known.get(target, int(Reason.MIGRATION)) for target in targets]
    ranked = trials.ranked(scope, work.crowding(demand, scope, open_ones), last_if_nan=True)
    return Targets(targets, codes, ranked)


def new_secondaries(
    state: State,
    demand: Instance,
    assignment: Assignment,
    targets: Sequence[int],
    scored: Sequence[int],
    *,
    force: bool,
) -> Targets:
    """Where the second copy of an instance could be instead."""
    model, primary = state.model, assignment.primary
    force = force or not model.usable[assignment.secondary]
    work = state.copy()
    # The primary is gone through as well, as hail does: it may not pass, and whether it fails N+1
    # is found out anew.
    work.take_secondary(demand, assignment.secondary, primary)
    work.take_primary(demand, primary, assignment.location)
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
    ranked = trials.ranked(scope, [0] * len(targets), last_if_nan=True)
    return Targets(targets, trials.codes, ranked)
