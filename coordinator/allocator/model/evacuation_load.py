"""Whether what is on a node would find room elsewhere, by counting alone.

Instances without a mirror go wherever the score sends them, one after the other. Yet one can
be stuck only when all targets are too full for it, and the node's instances together may not
have the size for that: then all fit, whatever the order and the choices. Or the largest fits
nowhere even now: then the node cannot be emptied. Between the two, counting does not tell.
"""

from __future__ import annotations

from copy import copy

from common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from coordinator.allocator.model.resources import Demands

_NONE = -1


class EvacuationLoad:
    """What would have to leave each node; lists with an element per node, in MiB.

    Attributes:
        memory: of all its running primaries.
        largest: memory of the largest one that is not mirrored; ``_NONE`` if there is none.
        disk, largest_disk: the same of those on its own disks.
        forbidden: whether one of those breaks its group's policy, so cannot be made anew.
        tied: whether migration tags restrict where its instances may go.
        anew: whether one of those can leave only by being made again elsewhere.
        picky: whether its group has exclusive storage, which restricts where that can be.
    """

    def __init__(
        self, forbidden: Sequence[bool], tied: Sequence[bool], picky: Sequence[bool]
    ) -> None:
        size = len(tied)
        self.memory, self.largest = [0] * size, [_NONE] * size
        self.disk, self.largest_disk = [0] * size, [_NONE] * size
        self.anew = [False] * size
        self.forbidden, self.tied, self.picky = forbidden, tied, picky

    def followed_by(self, more: Iterable[tuple[int, ...]]) -> EvacuationLoad:
        """The same with more instances; forthcoming ones do not count.

        Each of ``more`` is its node, and then what is ``counted`` of its demands.
        """
        loaded = copy(self)
        loaded.memory, loaded.largest = [*self.memory], [*self.largest]
        loaded.disk, loaded.largest_disk = [*self.disk], [*self.largest_disk]
        loaded.anew = [*self.anew]
        for node, count, memory, disk, mirrored, local, anew in more:
            if count:
                loaded.memory[node] += memory
                if not mirrored:
                    loaded.largest[node] = max(loaded.largest[node], memory)
                    loaded.anew[node] |= bool(anew)
                    if local:
                        loaded.disk[node] += disk
                        loaded.largest_disk[node] = max(loaded.largest_disk[node], disk)
        return loaded

    def with_instance(self, row: Demands, nodes: Iterable[int]) -> EvacuationLoad:
        """The same with one more instance, given as a row, on each of ``nodes``."""
        return self.followed_by((node, *self.counted(row)) for node in nodes)

    @staticmethod
    def counted(demands: Demands) -> tuple[Any, ...]:
        """What counts of a row of demands, or of lists of them."""
        of = demands
        return of.count, of.memory, of.disk, of.mirrored, of.local, of.anew

    def judge(
        self,
        groups: Mapping[int, Sequence[int]],
        scored: Iterable[int],
        memory: Sequence[int],
        disk: Sequence[int],
    ) -> Outlook:
        """Judge the ``scored`` nodes by what is free on each node; the others are safe.

        ``groups`` tells the nodes of each; memory and disk are what is free on each node.
        """
        laden = {node for node in scored if self.largest[node] > _NONE}
        lost, doubtful = [], []
        for nodes in groups.values() if laden else ():
            by_memory = sorted(nodes, key=memory.__getitem__, reverse=True)
            by_disk = sorted(nodes, key=disk.__getitem__, reverse=True)
            for node in nodes:
                if node not in laden:
                    continue
                largest, on_disk = self.largest[node], self.largest_disk[node]
                if (
                    self.forbidden[node]
                    or _best_elsewhere(node, by_memory, memory) <= largest
                    or (on_disk > _NONE and _best_elsewhere(node, by_disk, disk) <= on_disk)
                ):
                    lost.append(node)
                elif not self._surely_leaves(node, by_memory, memory, disk):
                    doubtful.append(node)
        return Outlook(sorted(lost), sorted(doubtful))

    def _surely_leaves(
        self, node: int, targets: Iterable[int], memory: Sequence[int], disk: Sequence[int]
    ) -> bool:
        """Whether what leaves a node is too small to block all targets for its largest piece.

        Blocking a target for memory takes at least its room less the largest piece, as a part of
        all the memory that moves; likewise for disk. The parts spent on all targets add up to at
        most 1 for memory and 1 for disk.
        """
        if self.tied[node] or (self.anew[node] and self.picky[node]):
            return False
        on_disk = self.largest_disk[node] > _NONE
        left = (1 + on_disk) * (1 + 1e-9)
        for target in targets:
            if target != node:
                part = _part(memory[target] - self.largest[node], self.memory[node])
                if on_disk:
                    room = disk[target] - self.largest_disk[node]
                    part = min(part, _part(room, self.disk[node]))
                left -= part
                if left < 0:
                    return True
        return False


class Outlook(Record):
    """What counting tells of nodes; those named in neither list can be emptied for sure.

    Attributes:
        lost: those that cannot be, rising.
        doubtful: those of which it does not tell, rising.
    """

    lost: list[int]
    doubtful: list[int]


def _part(room: int, total: int) -> float:
    """``room / total`` where there is room, else 0; of nothing, any room is infinitely much."""
    if room <= 0:
        return 0.0
    return room / total if total else float("inf")


def _best_elsewhere(node: int, ranked: Sequence[int], amounts: Sequence[int]) -> float:
    """The largest amount on a target other than the node; very small without one."""
    others = (amounts[target] for target in ranked[:2] if target != node)
    return next(others, float("-inf"))
