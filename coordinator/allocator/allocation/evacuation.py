"""Whether a node could be emptied: hail's simulation, move by move.

It decides only where counting cannot (see ``evacuation_load`` and ``slots``), since it takes one
instance after the other and each choice depends on the score after the one before.
"""

from __future__ import annotations

from coordinator.allocator.allocation.slots import all_fit
from coordinator.allocator.model.assignment import Refusal, fail_over
from coordinator.allocator.model.trials import as_primary
from coordinator.allocator.snapshot import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.allocator.model.assignment import Assignment
    from coordinator.allocator.model.state import State
    from coordinator.allocator.snapshot import Instance


def can_evacuate(
    state: State, node: int, residents: list[Assignment], scored: Sequence[int]
) -> bool:
    """Empty ``node`` within its group, soft limits aside; spoils ``state``.

    Mirrored instances fail over first; those on shared storage then move to the node that is
    best for the group; what lives on this node's disks is made anew elsewhere, the largest
    first. Offline nodes count as targets, as they do for hail.

    Args:
        state: the cluster as it stands.
        node: the node to empty.
        residents: its primaries, in the order in which hail takes them.
        scored: the nodes whose score chooses where instances are made anew.
    """
    model = state.model
    in_group = model.groups[model.group_of[node]]
    targets = [each for each in in_group if each != node]

    mirrored = [r for r in residents if r.demand.is_mirrored and r.secondary != NOWHERE]
    moved = [r for r in residents if r.demand.traits.leaves_as_it_is]
    anew = [r for r in residents if r.demand.is_made_anew]
    fits = all_fit(state, [r.demand for r in (*moved, *anew)], node, targets, after=mirrored)
    if fits is False:
        return False
    try:
        for resident in mirrored:
            fail_over(state, resident, force=True)
    except Refusal:
        return False
    if fits:
        return True
    if not all(_move(state, resident, targets, in_group) for resident in moved):
        return False
    return all(
        _put_on_best(state, resident.demand, targets, scored, is_move=False)
        for resident in sorted(anew, key=lambda r: -r.demand.memory)
    )


def _move(
    state: State, resident: Assignment, targets: Sequence[int], in_group: Sequence[int]
) -> bool:
    node = resident.primary
    state.take_primary(resident.demand, node, resident.location)
    allowed = zip(targets, state.model.may_migrate(node, targets), strict=True)
    open_ones = [target for target, may_migrate in allowed if may_migrate]
    return _put_on_best(state, resident.demand, open_ones, in_group, is_move=True)


def _put_on_best(
    state: State,
    demand: Instance,
    targets: Sequence[int],
    scored: Sequence[int],
    *,
    is_move: bool,
) -> bool:
    """Put an instance on the last of the targets that are best, soft limits aside."""
    model, scope = state.model, state.scope(scored)
    if not is_move:  # policies forbid what is new only
        codes = zip(targets, model.forbidden(demand, targets), strict=True)
        targets = [target for target, code in codes if not code]
    trials = as_primary(state, scope, targets, demand, force=True)
    left = [target for target, code in zip(targets, trials.codes, strict=True) if not code]
    if not left:
        return False
    best = left[0]
    if len(left) > 1:
        best, _ = next(trials.ranked(last_if_nan=is_move))
    state.put_primary(demand, best, model.location_score(demand, best))
    return True
