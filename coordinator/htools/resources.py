"""What a cluster has and uses, summed over its nodes."""

from dataclasses import dataclass

import numpy as np

from coordinator.allocator.fill import Filling
from coordinator.htools.tables import show


@dataclass(frozen=True, slots=True)
class Resources:
    """Sums over all nodes, also those offline; memory and disk in MiB.

    Attributes:
        free_memory, free_disk: not allocated; ``available_`` without what has to stay free.
        overhead: memory that nodes keep for themselves, or that is missing.
        vcpus: virtual processors that the policies allow.
        most_memory, most_disk: available on the node that has most.
    """

    total_memory: float
    total_disk: float
    total_cpus: float
    total_spindles: float
    vcpus: int
    cpu_ratio: float
    instances: int
    free_memory: int
    available_memory: int
    used_memory: int
    overhead: int
    free_disk: int
    available_disk: int
    used_disk: int
    free_spindles: int
    used_spindles: int
    used_cpus: int
    most_memory: int
    most_disk: int

    @property
    def memory_share(self) -> float:
        return _share(self.used_memory, self.total_memory)

    @property
    def disk_share(self) -> float:
        return _share(self.used_disk, self.total_disk)

    @property
    def cpu_share(self) -> float:
        return _share(self.used_cpus, self.vcpus)

    @property
    def spindle_share(self) -> float:
        return _share(self.used_spindles, self.total_spindles)


def _share(part: float, whole: float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(part) / np.float64(whole))


def resources_of(filling: Filling) -> Resources:
    """Sum up the nodes as they stand."""
    books, inventory = filling.books, filling.opening.inventory
    nodes = inventory.nodes
    available_memory = np.maximum(0, books.memory - books.reserved)
    available_disk = np.where(books.disk > books.least_disk, books.disk - books.least_disk, 0)
    overhead = int(filling.opening.missing.sum()) + sum(node.own_memory for node in nodes)
    used = sum(
        one.memory for one in (*inventory.instances, *filling.placed) if one.uses_memory
    )
    total_disk = np.array([node.total_disk for node in nodes])
    spindles = sum(node.spindles for node in nodes)
    touched = {home for one in filling.placed for home in one.homes}
    # What a node without exclusive storage reports is forgotten when something is put there.
    free_spindles = sum(
        int(books.free_spindles[at]) if node.exclusive else 0 if at in touched else node.free_spindles
        for at, node in enumerate(nodes)
    )
    ratio = np.where(books.cpu_ratio < 0, 0, books.cpu_ratio)
    return Resources(
        total_memory=float(books.total_memory.sum()),
        total_disk=float(total_disk.sum()),
        total_cpus=float(books.total_cpus.sum()),
        total_spindles=float(spindles),
        vcpus=int(np.floor(ratio * books.total_cpus).sum()),
        cpu_ratio=inventory.policy.vcpu_ratio,
        instances=int(books.primaries.sum()),
        free_memory=int(books.memory.sum()),
        available_memory=int(available_memory.sum()),
        used_memory=used,
        overhead=overhead,
        free_disk=int(books.disk.sum()),
        available_disk=int(available_disk.sum()),
        used_disk=int((total_disk.astype(np.int64) - books.disk).sum()),
        free_spindles=free_spindles,
        used_spindles=spindles - free_spindles,
        used_cpus=int(books.cpus.sum()),
        most_memory=int(available_memory.max(initial=0)),
        most_disk=int(available_disk.max(initial=0)),
    )


def shown(told: Resources, score: float) -> list[tuple[str, str]]:
    """Keys and values in the order of the machine-readable output."""
    return [
        ("SCORE", show(score)),
        ("INST_CNT", str(told.instances)),
        ("MEM_FREE", str(told.free_memory)),
        ("MEM_AVAIL", str(told.available_memory)),
        ("MEM_RESVD", str(told.free_memory - told.available_memory)),
        ("MEM_INST", str(told.used_memory)),
        ("MEM_OVERHEAD", str(told.overhead)),
        ("MEM_EFF", show(told.memory_share)),
        ("DSK_FREE", str(told.free_disk)),
        ("DSK_AVAIL", str(told.available_disk)),
        ("DSK_RESVD", str(told.free_disk - told.available_disk)),
        ("DSK_INST", str(told.used_disk)),
        ("DSK_EFF", show(told.disk_share)),
        ("SPN_FREE", str(told.free_spindles)),
        ("SPN_INST", str(told.used_spindles)),
        ("SPN_EFF", show(told.spindle_share)),
        ("CPU_INST", str(told.used_cpus)),
        ("CPU_EFF", show(told.cpu_share)),
        ("MNODE_MEM_AVAIL", str(told.most_memory)),
        ("MNODE_DSK_AVAIL", str(told.most_disk)),
    ]
