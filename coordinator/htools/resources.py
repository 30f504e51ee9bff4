"""What a cluster has and uses, summed over its nodes, as hspace tells it."""

import numpy as np

from coordinator.allocator.arithmetic import ratio
from coordinator.allocator.packing.filling import Filling
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.tables import show


class Resources:
    """Sums over all nodes, also those offline; memory and disk in MiB.

    Attributes:
        free_memory, free_disk: not allocated; ``available_`` without what has to stay free.
        overhead: memory that nodes keep for themselves, or that is missing.
        vcpus: virtual processors that the policies allow.
        normal_cpus: virtual ones in use, each divided by how many a real one may stand for.
        most_memory, most_disk: available on the node that has most.
        shares: how much of each resource is used, of 1.
    """

    def __init__(self, filling: Filling, cluster: Snapshot) -> None:
        """Sum up the nodes of a cluster, as it was read, once it is filled."""
        a, nodes = filling.resources, cluster.nodes
        total_disk = np.array([node.total_disk for node in nodes])
        self.total_memory = sum(node.total_memory for node in nodes)
        self.total_disk = float(total_disk.sum())
        self.total_cpus = sum(node.total_cpus for node in nodes)
        limits = np.where(a.cpu_ratio < 0, 0, a.cpu_ratio) * a.total_cpus
        self.vcpus = int(np.floor(limits).sum())
        self.instances = int(a.primaries.sum())

        available_memory = np.maximum(0, a.memory - a.reserved)
        self.free_memory = int(a.memory.sum())
        self.available_memory = int(available_memory.sum())
        self.most_memory = int(available_memory.max(initial=0))
        self.used_memory = sum(one.memory for one in cluster.instances if one.uses_memory)
        gone = sum(int(node.total_memory) - node.free_memory for node in nodes)
        self.overhead = gone - self.used_memory  # it stays as it was at the start
        self.used_memory += sum(one.demand.used_memory for one in filling.placed)

        available_disk = np.where(a.disk > a.least_disk, a.disk - a.least_disk, 0)
        self.free_disk = int(a.disk.sum())
        self.available_disk = int(available_disk.sum())
        self.most_disk = int(available_disk.max(initial=0))
        self.used_disk = int((total_disk.astype(np.int64) - a.disk).sum())

        spindles = sum(node.spindles for node in nodes)
        reported = np.array([node.free_spindles for node in nodes], dtype=np.int64)
        # What a node without exclusive storage reports is forgotten when something is put there.
        left = np.where(filling.touched, 0, reported)
        self.total_spindles = float(spindles)
        self.free_spindles = int(np.where(a.exclusive, a.free_spindles, left).sum())
        self.used_spindles = spindles - self.free_spindles

        cpus: list[int] = a.cpus.tolist()
        self.used_cpus = sum(cpus)
        self.normal_cpus = 0.0
        for node, count in zip(nodes, cpus, strict=True):
            self.normal_cpus += ratio(count, cluster.groups[node.group].policy.vcpu_ratio)

        self.shares = {
            "memory": ratio(self.used_memory, self.total_memory),
            "disk": ratio(self.used_disk, self.total_disk),
            "vcpu": ratio(self.used_cpus, self.vcpus),
            "spindles": ratio(self.used_spindles, self.total_spindles),
        }

    @property
    def used(self) -> tuple[float, ...]:
        """Virtual processors, real ones, memory, disk, spindles."""
        return (
            self.used_cpus, self.normal_cpus, self.used_memory, self.used_disk, self.used_spindles
        )  # fmt: skip

    @property
    def total(self) -> tuple[float, ...]:
        """The same of all there is, whole numbers but the real processors."""
        sizes = map(int, (self.total_memory, self.total_disk, self.total_spindles))
        return (self.vcpus, self.total_cpus, *sizes)

    def shown(self, score: float) -> list[tuple[str, str]]:
        """Keys and values in the order of the machine-readable output."""
        return [
            ("SCORE", show(score)),
            ("INST_CNT", str(self.instances)),
            ("MEM_FREE", str(self.free_memory)),
            ("MEM_AVAIL", str(self.available_memory)),
            ("MEM_RESVD", str(self.free_memory - self.available_memory)),
            ("MEM_INST", str(self.used_memory)),
            ("MEM_OVERHEAD", str(self.overhead)),
            ("MEM_EFF", show(self.shares["memory"])),
            ("DSK_FREE", str(self.free_disk)),
            ("DSK_AVAIL", str(self.available_disk)),
            ("DSK_RESVD", str(self.free_disk - self.available_disk)),
            ("DSK_INST", str(self.used_disk)),
            ("DSK_EFF", show(self.shares["disk"])),
            ("SPN_FREE", str(self.free_spindles)),
            ("SPN_INST", str(self.used_spindles)),
            ("SPN_EFF", show(self.shares["spindles"])),
            ("CPU_INST", str(self.used_cpus)),
            ("CPU_EFF", show(self.shares["vcpu"])),
            ("MNODE_MEM_AVAIL", str(self.most_memory)),
            ("MNODE_DSK_AVAIL", str(self.most_disk)),
        ]
