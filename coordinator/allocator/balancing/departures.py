"""What a move does to the nodes where its instances are, whichever target they go to."""

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.balancing.moves import Limits, MoveKind
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.shift import add_primary, add_secondary


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """Instances taken off their nodes for a move of one kind; an element or column each.

    Attributes:
        own: their nodes and those nodes' resources afterwards, targets not yet counted.
        fits: whether that works.
        strict: whether soft limits count on the target.
        new_primary: where they run if not on the target, which then keeps memory for the failure of
            that node; None if there.
        dependent: resources of the first of ``own`` without them, if it keeps memory for the
            target, and whether soft limits count there.
    """

    own: tuple[tuple[Ints, NodeResources], ...]
    fits: Bools
    strict: Bools
    new_primary: Ints | None = None
    dependent: tuple[NodeResources, Bools] | None = None


def may_leave(state: GroupState, kind: MoveKind, some: Ints, online: Ints, limits: Limits) -> Bools:
    """Which instances, given by position, may be moved by a move of one kind, if there is room.

    Those that fail over on the way have to do so to one of the nodes ``online``.
    """
    copies_disks = kind not in {MoveKind.FAILOVER, MoveKind.FAILOVER_TO_ANY}
    changes_primary = kind is not MoveKind.REPLACE_SECONDARY
    if (copies_disks and not limits.disk_moves) or (changes_primary and not limits.instance_moves):
        return np.zeros(len(some), dtype=np.bool_)
    may: Bools = state.demands.mirrored[some] == (kind is not MoveKind.FAILOVER_TO_ANY)
    if kind in {MoveKind.FAILOVER, MoveKind.REPLACE_PRIMARY, MoveKind.FAILOVER_AND_REPLACE}:
        may &= np.isin(state.secondary[some], online)
    if limits.restricted and copies_disks and changes_primary:
        may &= (kind is not MoveKind.REPLACE_PRIMARY) & state.is_offline(state.primary[some])
    return may


def leave(state: GroupState, kind: MoveKind, some: Ints, *, force: bool) -> Departures:
    """Take instances, given by position, off their nodes; ``force`` ignores soft limits."""
    demands, nothing = state.demands.at(some), np.zeros(len(some), dtype=np.int64)
    home, mirror = state.primary[some], state.secondary[some]
    less, mirror_less = state.at_home(some)
    # Of a node that is offline an instance has to go, whatever soft limits say.
    strict = ~(state.is_offline(home) | force)
    strict_replaced = ~(state.is_offline(mirror) | force)

    def run(on: NodeResources, clashes: Ints, strict: Bools) -> tuple[Bools, NodeResources]:
        codes, after = add_primary(on, demands, clashes=clashes, location=nothing, force=~strict)
        return codes == 0, after

    def keep(on: NodeResources, strict: Bools) -> tuple[Bools, NodeResources]:
        codes, after = add_secondary(on, demands, promised=nothing, force=~strict)
        return codes == 0, after

    match kind:
        case MoveKind.FAILOVER_TO_ANY:
            return Departures(own=((home, less),), fits=nothing == 0, strict=strict)
        case MoveKind.REPLACE_SECONDARY:
            fits, back = run(less, state.freed(some), nothing > 0)
            own = (home, back), (mirror, mirror_less)
            return Departures(own=own, fits=fits, strict=strict_replaced, new_primary=home)
        case MoveKind.REPLACE_AND_FAILOVER:
            fits, kept = keep(less, strict_replaced)
            return Departures(
                own=((home, kept), (mirror, mirror_less)),
                fits=fits,
                strict=np.full(len(some), not force),
                dependent=(less, strict_replaced),
            )
        case MoveKind.REPLACE_PRIMARY | MoveKind.FAILOVER_AND_REPLACE | MoveKind.FAILOVER:
            runs, running = run(mirror_less, state.clashes(some, mirror), strict)
            runs &= state.may_migrate[home, mirror]
            if kind is not MoveKind.REPLACE_PRIMARY:
                own = (mirror, running), (home, less)
                return Departures(own=own, fits=runs, strict=strict, new_primary=mirror)
            fits, kept = keep(mirror_less, strict)
            return Departures(
                own=((mirror, kept), (home, less)),
                fits=runs & fits,
                strict=strict,
                dependent=(mirror_less, strict),
            )
        case _:
            assert_never(kind)
