"""Exclusive storage: on which nodes no physical volume of an instance's is another one's, too."""

from collections.abc import Iterable

from common.model.disk import Disk
from common.model.pool import Pool
from common.model.spindles import standard_size
from common.names import MiB, NodeId
from common.noderpc.facts import NodeFacts, Spindles, StorageReport
from coordinator.disks.volume_groups import pool_in
from coordinator.state.config import Config


def is_exclusive(config: Config, node: NodeId) -> bool:
    """Tell whether a node's storage is exclusive, which its group says, or the cluster."""
    found = config.nodes.get(node)
    group = config.groups.get(found.group) if found else None
    layers = (group.ndparams if group else {}, config.cluster.ndparams)
    said = (layer["exclusive_storage"] for layer in layers if "exclusive_storage" in layer)
    return next(said, False) is True


def has_exclusive(config: Config) -> bool:
    """Tell whether there is any such node."""
    return any(is_exclusive(config, uuid) for uuid in config.nodes)


def spindles_told(config: Config, disk: Disk) -> int | None:
    """Return how many physical volumes a node is to give a disk, as ``DiskSpec.spindles`` says."""
    if any(is_exclusive(config, node) for node in disk.nodes):
        return disk.spindles or 0
    return None


def spindles_taken(disks: Iterable[Disk], pool: Pool) -> int:
    """Return how many physical volumes of a pool disks are to have where storage is exclusive."""
    return sum(disk.spindles for disk in disks if disk.spindles and pool in disk.backing.pools)


def free_space(report: StorageReport, *, exclusive: bool) -> MiB:
    """Return what new disks can take of a pool; where storage is exclusive, whole ones alone."""
    if not exclusive or report.spindles is None:
        return report.free
    return MiB(standard_size(report.spindles.smallest) * report.spindles.free)


def spindles_of(config: Config, facts: NodeFacts) -> Spindles | None:
    """Return the physical volumes of a node's volume group; None if it does not tell of them."""
    pool = pool_in(config.cluster.volume_group_name)
    return next((each.spindles for each in facts.storage if each.pool == pool), None)
