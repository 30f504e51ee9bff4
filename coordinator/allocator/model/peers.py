"""Which nodes have mirrored instances in common, and what the one keeps free for the other."""

from __future__ import annotations

from functools import cached_property

from coordinator.allocator.model.resources import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from coordinator.allocator.model.resources import Demands


class Peers:
    """Pairs of nodes, primary and secondary, that have mirrored instances in common; in MiB.

    Attributes:
        promised: memory the secondary keeps free for the primary's failure.
        arriving: memory that would really be taken there now; instances that are down
            are promised memory but use none.
        unknown: those with an instance that does not say what spindles it takes.
    """

    def __init__(
        self,
        size: int,
        promised: dict[tuple[int, int], int],
        arriving: dict[tuple[int, int], int],
        unknown: set[tuple[int, int]],
    ) -> None:
        self._size = size
        self.promised: Mapping[tuple[int, int], int] = promised
        self.arriving: Mapping[tuple[int, int], int] = arriving
        self.unknown: frozenset[tuple[int, int]] = frozenset(unknown)

    @classmethod
    def of(
        cls, size: int, demands: Demands, primary: Sequence[int], secondary: Sequence[int]
    ) -> Peers:
        """Those of ``size`` nodes by the instances on them, whose demands are lists."""
        columns = (
            primary, secondary, demands.count, demands.needed, demands.memory,
            demands.disk_spindles,
        )  # fmt: skip
        return cls(size, {}, {}, set()).followed_by(zip(*columns, strict=True))

    def followed_by(self, more: Iterable[tuple[int, ...]]) -> Peers:
        """The same with more instances; forthcoming ones are left out.

        Of each ``more`` is told primary, secondary, and of its demands count, needed and used
        memory, and spindles.
        """
        promised, arriving, unknown = {**self.promised}, {**self.arriving}, {*self.unknown}
        for primary, secondary, count, needed, memory, spindles in more:
            if secondary >= 0 and count:
                pair = primary, secondary
                promised[pair] = promised.get(pair, 0) + needed
                arriving[pair] = arriving.get(pair, 0) + memory
                if spindles == UNKNOWN:
                    unknown.add(pair)
        return Peers(self._size, promised, arriving, unknown)

    @cached_property
    def held(self) -> list[dict[int, int]]:
        """Per node, by primary: what it keeps free."""
        held: list[dict[int, int]] = [{} for _ in range(self._size)]
        for (primary, secondary), amount in self.promised.items():
            held[secondary][primary] = amount
        return held
