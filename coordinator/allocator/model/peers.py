"""Which nodes have mirrored instances in common, and what the one keeps free for the other."""

from __future__ import annotations

from functools import cached_property

from coordinator.allocator.model.resources import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from coordinator.allocator.model.resources import Demands


class Peers:
    """Pairs of nodes, primary and secondary, that have mirrored instances in common; in MiB.

    Attributes:
        promised: memory the secondary keeps free for the primary's failure.
        arriving: memory that would really be taken there now; instances that are down
            are promised memory but use none.
        unknown: those with an instance that does not say what spindles it takes.
    """

    def __init__(self, size: int) -> None:
        """No pairs of ``size`` nodes."""
        self._size = size
        self.promised: Mapping[tuple[int, int], int] = {}
        self.arriving: Mapping[tuple[int, int], int] = {}
        self.unknown: frozenset[tuple[int, int]] = frozenset()

    @staticmethod
    def counted(demands: Demands) -> tuple[Any, ...]:
        """What counts of a row of demands, or of lists of them."""
        return demands.count, demands.needed, demands.memory, demands.disk_spindles

    def followed_by(self, more: Iterable[tuple[int, ...]]) -> Peers:
        """The same with more instances; forthcoming ones are left out.

        Each of ``more`` is primary, secondary, and then what is ``counted`` of its demands.
        """
        promised, arriving, unknown = {**self.promised}, {**self.arriving}, {*self.unknown}
        for primary, secondary, count, needed, memory, spindles in more:
            if secondary >= 0 and count:
                pair = primary, secondary
                promised[pair] = promised.get(pair, 0) + needed
                arriving[pair] = arriving.get(pair, 0) + memory
                if spindles == UNKNOWN:
                    unknown.add(pair)
        after = Peers(self._size)
        after.promised, after.arriving, after.unknown = promised, arriving, frozenset(unknown)
        return after

    @cached_property
    def held(self) -> list[dict[int, int]]:
        """Per node, by primary: what it keeps free."""
        held: list[dict[int, int]] = [{} for _ in range(self._size)]
        for (primary, secondary), amount in self.promised.items():
            held[secondary][primary] = amount
        return held
