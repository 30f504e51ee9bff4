"""Steps that make disks."""

from common.model.node import NodeRef
from common.noderpc.disks import Disks, DiskSpec
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act


def create_disk(cluster: Cluster, index: int, disk: DiskSpec, node: NodeRef) -> Step:
    """Create a disk; undone, it is deleted."""
    disks = cluster.call(Disks, node)
    return act(
        f"create disk {index} ({disk.size} MiB) on {node}",
        lambda: disks.ensure_present(disk=disk),
        undo=lambda: disks.ensure_absent(disk=disk),
    )
