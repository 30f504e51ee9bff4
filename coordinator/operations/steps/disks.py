"""Steps that make disks."""

from common.noderpc.disks import DiskSpec
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act


def create_disk(cluster: Cluster, index: int, disk: DiskSpec, node: str, node_name: str) -> Step:
    """Create a disk; undone, it is deleted."""
    disks = cluster.disks(node)
    return act(
        f"create disk {index} ({disk.size} MiB) on {node_name}",
        lambda: disks.ensure_present(disk=disk),
        undo=lambda: disks.ensure_absent(disk=disk),
    )
