"""What a move does to the nodes where its instances are, whichever target they go to."""

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.balancing.moves import MoveKind
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


def leave(state: GroupState, kind: MoveKind, some: Ints, *, force: bool) -> Departures:
    """Take instances, given by position, off their nodes; ``force`` ignores soft limits."""
    leaving = _Departure(state, some, force=force)
    match kind:
        case MoveKind.FAILOVER_TO_ANY:
            return leaving.to_any()
        case MoveKind.REPLACE_SECONDARY:
            return leaving.by_replacing_secondary()
        case MoveKind.REPLACE_AND_FAILOVER:
            return leaving.by_replacing_and_failing_over()
        case MoveKind.REPLACE_PRIMARY:
            return leaving.by_replacing_primary()
        case MoveKind.FAILOVER_AND_REPLACE | MoveKind.FAILOVER:
            return leaving.by_failing_over_and_replacing()
        case _:
            assert_never(kind)


class _Departure:
    def __init__(self, state: GroupState, some: Ints, *, force: bool) -> None:
        self._state, self._some, self._force = state, some, force
        self._demands = state.demands.at(some)
        self._home, self._mirror = state.primary[some], state.secondary[some]
        # Of a node that is offline an instance has to go, whatever soft limits say.
        self._strict = ~(state.is_offline(self._home) | force)
        self._strict_replaced = ~(state.is_offline(self._mirror) | force)
        self._nothing = np.zeros(len(some), dtype=np.int64)
        self._less, self._mirror_less = state.at_home(some)

    def to_any(self) -> Departures:
        return Departures(
            own=((self._home, self._less),),
            fits=np.ones(len(self._some), dtype=np.bool_),
            strict=self._strict,
        )

    def by_replacing_secondary(self) -> Departures:
        codes, back = add_primary(
            self._less,
            self._demands,
            clashes=self._state.freed(self._some),
            location=self._nothing,
            force=np.ones(len(self._some), dtype=np.bool_),
        )
        return Departures(
            own=((self._home, back), (self._mirror, self._mirror_less)),
            fits=codes == 0,
            strict=self._strict_replaced,
            new_primary=self._home,
        )

    def by_replacing_and_failing_over(self) -> Departures:
        fits, kept = self._keep(self._less, self._strict_replaced)
        return Departures(
            own=((self._home, kept), (self._mirror, self._mirror_less)),
            fits=fits,
            strict=np.full(len(self._some), not self._force),
            dependent=(self._less, self._strict_replaced),
        )

    def by_replacing_primary(self) -> Departures:
        runs, _ = self._run_on_mirror()
        fits, kept = self._keep(self._mirror_less, self._strict)
        return Departures(
            own=((self._mirror, kept), (self._home, self._less)),
            fits=runs & fits & self._may_fail_over,
            strict=self._strict,
            dependent=(self._mirror_less, self._strict),
        )

    def by_failing_over_and_replacing(self) -> Departures:
        fits, runs = self._run_on_mirror()
        return Departures(
            own=((self._mirror, runs), (self._home, self._less)),
            fits=fits & self._may_fail_over,
            strict=self._strict,
            new_primary=self._mirror,
        )

    @property
    def _may_fail_over(self) -> Bools:
        allowed: Bools = self._state.may_migrate[self._home, self._mirror]
        return allowed

    def _run_on_mirror(self) -> tuple[Bools, NodeResources]:
        codes, after = add_primary(
            self._mirror_less,
            self._demands,
            clashes=self._state.clashes(self._some, self._mirror),
            location=self._nothing,
            force=~self._strict,
        )
        return codes == 0, after

    def _keep(self, resources: NodeResources, strict: Bools) -> tuple[Bools, NodeResources]:
        codes, after = add_secondary(
            resources, self._demands, promised=self._nothing, force=~strict
        )
        return codes == 0, after
