"""Whose volumes and devices are that a node has."""

from common.model.disk import Disk
from common.model.node import Node
from common.names import DiskId
from coordinator.state.config import Config


def owners(config: Config) -> dict[DiskId, Disk]:
    """Return the disks of which there may be volumes, by the UUID that those are marked with."""
    disks = dict(config.disks)
    return disks | {DiskId(each.uuid): disk for disk in disks.values() for each in disk.snapshots}


def is_stray(found: DiskId, node: Node, disks: dict[DiskId, Disk]) -> bool:
    """Tell whether a node has something of a disk of which it is to have nothing."""
    disk = disks.get(found)
    return disk is None or node.uuid not in disk.nodes
