"""The model of a small and simple cluster, without NumPy; see ``few_pairs``."""

from __future__ import annotations

from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator.allocator.columns import InstanceColumns, NodeColumns

_UP, _OFFLINE = "running", "ADMIN_offline"


class Wanted:
    """The instance to place.

    Attributes:
        memory: taken from its primary node now; ``next_memory`` once it runs.
        needed: memory that its secondary node keeps free.
    """

    __slots__ = ("cpus", "disk", "memory", "needed", "next_memory", "spindles")

    def __init__(self, memory: int, vcpus: int, disk: int, spindles: int, status: str) -> None:
        self.next_memory, self.disk, self.spindles = memory, disk, spindles
        self.memory = memory if status == _UP else 0
        self.needed = 0 if status == _OFFLINE else memory
        self.cpus = 0 if status == _OFFLINE else vcpus


class FewNodes:
    """The model of a few nodes; see ``resources`` for what the columns mean.

    Attributes:
        promised: by primary, then secondary: memory the one keeps free for the other's failure.
        arriving: likewise, memory that would really be taken there now.
    """

    def __init__(
        self,
        nodes: NodeColumns,
        instances: InstanceColumns,
        cpu_ratio: Sequence[float],
        spindle_ratio: Sequence[float],
    ) -> None:
        """Build the model; the ratios are those of the groups."""
        size = len(nodes.names)
        self.group, self.offline = nodes.group, [not usable for usable in nodes.usable]
        self.total_memory, self.total_disk = nodes.total_memory, nodes.total_disk
        self.total_cpus, self.disk = nodes.total_cpus, nodes.free_disk
        self.cpu_ratio = [cpu_ratio[group] for group in nodes.group]
        self.spindle_limit = [
            spindle_ratio[group] * float(count)
            for group, count in zip(nodes.group, nodes.spindles, strict=True)
        ]
        used, down = [0] * size, [0] * size
        self.cpus, self.spindles = list(nodes.own_cpus), [0] * size
        self.primaries, self.secondaries = [0] * size, [0] * size
        self.promised: list[dict[int, int]] = [{} for _ in range(size)]
        self.arriving: list[dict[int, int]] = [{} for _ in range(size)]
        for primary, secondary, memory, vcpus, use, status in zip(
            instances.primary, instances.secondary, instances.memory, instances.vcpus,
            instances.spindle_use, instances.status, strict=True,
        ):  # fmt: skip
            promised, arriving = self.promised[primary], self.arriving[primary]
            here = memory if status == _UP else 0
            used[primary] += here
            down[primary] += memory - here
            owed = 0 if status == _OFFLINE else memory
            promised[secondary] = promised.get(secondary, 0) + owed
            arriving[secondary] = arriving.get(secondary, 0) + here
            self.cpus[primary] += 0 if status == _OFFLINE else vcpus
            self.spindles[primary] += use
            self.spindles[secondary] += use
            self.primaries[primary] += 1
            self.secondaries[secondary] += 1
        self.memory = [
            min(int(total) - own - taken, free)
            for total, own, taken, free in zip(
                nodes.total_memory, nodes.own_memory, used, nodes.free_memory, strict=True
            )
        ]
        self.next_memory = [f - d for f, d in zip(nodes.free_memory, down, strict=True)]
        self.reserved = [0] * size
        for held in self.promised:
            for secondary, amount in held.items():
                self.reserved[secondary] = max(self.reserved[secondary], amount)
        self.fails_n1 = [f < r for f, r in zip(nodes.free_memory, self.reserved, strict=True)]

    def primary_code(self, node: int, new: Wanted, *, force: bool) -> Reason:
        """Why a node cannot run the instance; with ``force`` soft limits do not count."""
        memory = self.memory[node] - new.memory
        if memory <= 0:
            return Reason.MEMORY
        if self.disk[node] - new.disk <= 0:
            return Reason.DISK
        if force:
            return Reason.NONE
        if self.spindles[node] + new.spindles > self.spindle_limit[node]:
            return Reason.SPINDLES
        if memory <= self.reserved[node] and not self.fails_n1[node]:
            return Reason.MEMORY_N1
        ratio = self.cpu_ratio[node]
        if ratio >= 0 and ratio < (self.cpus[node] + new.cpus) / self.total_cpus[node]:
            return Reason.CPU
        return Reason.MEMORY if self.next_memory[node] - new.next_memory <= 0 else Reason.NONE

    def secondary_code(self, node: int, new: Wanted, promised: int) -> Reason:
        """Why a node cannot keep the copy; it ``promised`` so much to the primary already."""
        if self.disk[node] - new.disk <= 0:
            return Reason.DISK
        if self.spindles[node] + new.spindles > self.spindle_limit[node]:
            return Reason.SPINDLES
        memory = self.memory[node]
        if new.needed >= memory:
            return Reason.MEMORY
        reserved = max(self.reserved[node], promised + new.needed)
        if memory <= reserved and not self.fails_n1[node]:
            return Reason.MEMORY_N1
        return Reason.MEMORY if new.needed >= self.next_memory[node] else Reason.NONE

    def is_evacuable(self, scored: Iterable[int]) -> bool:
        """Whether each of the nodes could be emptied as things stand."""
        return not any(
            self.memory[secondary] <= amount
            or self.disk[secondary] <= 0
            or (not self.offline[primary] and self.disk[primary] <= 0)
            for primary in scored
            for secondary, amount in self.arriving[primary].items()
        )

    def most_arriving(self, scored: Iterable[int]) -> list[int]:
        """Per node: most memory that the failure of one of ``scored`` brings."""
        most = [0] * len(self.memory)
        for primary in scored:
            for secondary, amount in self.arriving[primary].items():
                most[secondary] = max(most[secondary], amount)
        return most
