"""Whether a node could be emptied: hail's simulation, move by move.

It decides only where counting cannot (see ``capacity``), since it takes one instance after
the other and each choice depends on the score after the one before.
"""

from __future__ import annotations

from coordinator.allocator.model.trials import as_primary
from coordinator.allocator.snapshot import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.allocator.model.state import Resident, State
    from coordinator.allocator.snapshot import Instance


def can_evacuate(
    state: State, node: int, residents: list[Resident], scored: Sequence[int] | None
) -> bool:
    """Empty ``node`` within its group, soft limits aside; spoils ``state``.

    Mirrored instances fail over first; those on shared storage then move to the node that is
    best for the group; what lives on this node's disks is made anew elsewhere, the largest
    first. Offline nodes count as targets, as they do for hail.

    Args:
        state: the cluster as it stands.
        node: the node to empty.
        residents: its primaries, in the order in which hail takes them.
        scored: the nodes whose score chooses where instances are made anew; None to choose
            nothing: where there is a choice, it is taken to turn out well.
    """
    model = state.model
    in_group = model.groups[model.group_of[node]]
    targets = [each for each in in_group if each != node]

    mirrored = [r for r in residents if r.demand.is_mirrored and r.secondary != NOWHERE]
    if not all(_fail_over(state, resident) for resident in mirrored):
        return False
    moved = [r for r in residents if r.demand.traits.leaves_as_it_is]
    near = None if scored is None else in_group
    if not all(_move(state, resident, targets, near) for resident in moved):
        return False
    anew = [r for r in residents if r.demand.is_made_anew]
    return all(
        _put_on_best(state, resident.demand, targets, scored, is_move=False)
        for resident in sorted(anew, key=lambda r: -r.demand.memory)
    )


def _fail_over(state: State, resident: Resident) -> bool:
    demand, node, target = resident.demand, resident.primary, resident.secondary
    if not state.model.may_migrate(node, [target])[0]:
        return False
    state.take_secondary(demand, target, node)
    if state.put_primary(demand, target, resident.location):
        return False
    state.take_primary(demand, node, resident.location)
    offline = not state.model.usable[node]
    return not state.put_secondary(demand, node, target, ignore_disk=offline)


def _move(
    state: State, resident: Resident, targets: Sequence[int], in_group: Sequence[int] | None
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
    scored: Sequence[int] | None,
    *,
    is_move: bool,
) -> bool:
    """Put an instance on the last of the targets that are best, soft limits aside."""
    model, scope = state.model, state.scope(targets if scored is None else scored)
    if not is_move:  # policies forbid what is new only
        codes = zip(targets, model.forbidden(demand, targets), strict=True)
        targets = [target for target, code in codes if not code]
    location = model.unmet_locations(demand, targets)
    trials = as_primary(state, scope, targets, demand, location=location, force=True)
    left = [target for target, code in zip(targets, trials.codes, strict=True) if not code]
    if not left:
        return False
    best = left[0]
    if len(left) > 1 and scored is None:
        return True
    if len(left) > 1:
        crowding = state.crowding(demand, scope, targets)
        best, _ = next(trials.ranked(scope, crowding, last_if_nan=is_move))
    state.put_primary(demand, best, location[targets.index(best)])
    return True
