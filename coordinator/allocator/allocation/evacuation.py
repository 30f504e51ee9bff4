"""Whether a node could be emptied: hail's simulation, move by move.

It decides only where counting cannot (see ``capacity``), since it takes one instance after
the other and each choice depends on the score after the one before.
"""

import numpy as np

from coordinator.allocator.allocation.few_targets import Best, best_of_few
from coordinator.allocator.allocation.single import Singles
from coordinator.allocator.arrays import Ints
from coordinator.allocator.model.state import Resident, State
from coordinator.allocator.snapshot import NOWHERE, Instance


def can_evacuate(state: State, node: int, residents: list[Resident], scored: Ints) -> bool:
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
    in_group = np.flatnonzero(model.group_of == model.group_of[node])
    targets = in_group[in_group != node]

    mirrored = [r for r in residents if r.demand.is_mirrored and r.secondary != NOWHERE]
    if not all(_fail_over(state, resident) for resident in mirrored):
        return False
    moved = [r for r in residents if r.demand.traits.leaves_as_it_is]
    if not all(_move(state, resident, targets, in_group) for resident in moved):
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


def _move(state: State, resident: Resident, targets: Ints, in_group: Ints) -> bool:
    node = resident.primary
    state.take_primary(resident.demand, node, resident.location)
    allowed = state.model.may_migrate(node, targets.tolist())
    return _put_on_best(state, resident.demand, targets[allowed], in_group, is_move=True)


def _put_on_best(
    state: State, demand: Instance, targets: Ints, scored: Ints, *, is_move: bool
) -> bool:
    found = best_of_few(state, demand, targets, scored, is_move=is_move)
    if found is None:
        found = _best_of_many(state, demand, targets, scored, is_move=is_move)
    if found.target is None:
        return False
    state.put_primary(demand, found.target, found.location)
    return True


def _best_of_many(
    state: State, demand: Instance, targets: Ints, scored: Ints, *, is_move: bool
) -> Best:
    location = state.model.unmet_locations(demand, targets)
    singles = Singles.of(
        state,
        state.scope(scored),
        targets,
        demand,
        location=location,
        force=True,
        check_policy=not is_move,
    )
    target = next((node for node, _ in singles.from_best(is_move=is_move)), None)
    return Best(target, 0 if target is None else int(location[targets == target][0]))
