"""Moves of one kind simulated, many side by side, each on the group as it stands.

What a move does to the instance's own nodes is in ``departures``; here its target is changed as
htools does it, and what a node keeps free for it. The first step that is refused spoils the move;
which step that was plays no part.
"""

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.balancing.departures import leave
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.balancing.moves import MoveKind, Outcome
from coordinator.allocator.model.shift import add_primary, add_secondary


def simulate(
    state: GroupState, kind: MoveKind, some: Ints, targets: Ints, *, force: bool
) -> Outcome:
    """Move each instance by a move of one kind; ``targets`` count where it has one.

    Positions of instances and of nodes have the shape (moves,). The state is not changed.
    """
    left = leave(state, kind, some, force=force)
    demands, home = state.demands.at(some), state.primary[some]
    (holder, kept), *others = left.own
    there, any_disk = state.resources.at(targets), None
    if kind is MoveKind.FAILOVER:  # the target is the primary that it leaves
        [(targets, there)], others, any_disk = others, [], state.is_offline(home)
    if left.new_primary is not None:
        ends = left.new_primary, targets
        promised = state.promised[targets, left.new_primary]
        codes, after = add_secondary(
            there, demands, promised=promised, force=~left.strict, any_disk=any_disk
        )
        location = state.location_at(some, *ends)
        kept = kept.changed(location=kept.location + location * demands.count)
    else:
        ends = targets, state.secondary[some] if left.dependent is None else holder
        location = state.location_at(some, *ends)
        codes, after = add_primary(
            there,
            demands,
            clashes=state.clashes(some, targets),
            location=location,
            force=~left.strict,
        )
        source = state.secondary[some] if kind is MoveKind.REPLACE_PRIMARY else home
        codes = codes | ~state.may_migrate[source, targets]
    if left.dependent is not None:
        less, strict = left.dependent
        promised = state.promised[holder, targets]
        refused, kept = add_secondary(less, demands, promised=promised, force=~strict)
        codes = codes | refused
    touched = ((targets, after), (holder, kept), *others)
    return Outcome(
        codes | ~left.fits,
        np.stack([node for node, _ in touched]),
        tuple(resources for _, resources in touched),
        *ends,
        location,
        state.crowding_of(some, ends[0]),
    )
