"""The templates of which disks can be made, one line each."""

from collections.abc import Container, Mapping

from common.errors import InvalidRequest
from common.model.cluster import Cluster
from common.model.pool import Pool
from common.model.template import DiskTemplate
from common.names import NodeId
from common.noderpc.disks import DiskSpec
from coordinator.disks.blockdev import BLOCKDEV
from coordinator.disks.directory import FILE, GLUSTER, SHARED_FILE
from coordinator.disks.diskless import DISKLESS
from coordinator.disks.drbd import DRBD
from coordinator.disks.ext import EXT
from coordinator.disks.kind import DiskKind
from coordinator.disks.plain import PLAIN
from coordinator.disks.rbd import RBD
from coordinator.state.config import Config

_EVERY: tuple[DiskKind, ...] = (
    BLOCKDEV,
    DISKLESS,
    DRBD,
    EXT,
    FILE,
    GLUSTER,
    PLAIN,
    RBD,
    SHARED_FILE,
)

KINDS: Mapping[str, DiskKind] = {kind.template: kind for kind in _EVERY}


def kind_of(template: DiskTemplate) -> DiskKind:
    """Return what is known of a template.

    Raises:
        InvalidRequest: no disks can be made of it.
    """
    if template not in KINDS:
        raise InvalidRequest(f"Disks of the template {template} cannot be made yet.")
    return KINDS[template]


def check_enabled(cluster: Cluster, template: DiskTemplate) -> None:
    """Refuse a template that the cluster does not use.

    Raises:
        InvalidRequest: names those that it does.
    """
    if template not in cluster.enabled_disk_templates:
        raise InvalidRequest(
            f"The disk template {template} is not enabled on this cluster; enabled are: "
            f"{', '.join(cluster.enabled_disk_templates)}."
        )


def enabled_kinds(cluster: Cluster) -> tuple[DiskKind, ...]:
    """Return the kinds of the cluster's enabled templates, the preferred one first."""
    return tuple(KINDS[name] for name in cluster.enabled_disk_templates if name in KINDS)


def mirrored_on(config: Config, homes: Container[NodeId]) -> dict[NodeId, tuple[DiskSpec, ...]]:
    """Return the mirrored disks of instances whose primary nodes are in ``homes``, by node.

    Nodes that are marked offline are left out.
    """
    found: dict[NodeId, tuple[DiskSpec, ...]] = {}
    for instance in config.made_instances:
        if not instance.disk_template.traits.is_mirrored or instance.primary_node not in homes:
            continue
        kind = kind_of(instance.disk_template)
        specs = tuple(kind.spec(config, instance, disk) for disk in config.disks_of(instance))
        for node in config.nodes_of(instance):
            if not config.nodes[node].offline:
                found[node] = (*found.get(node, ()), *specs)
    return found


def thin_on(config: Config, homes: Container[NodeId]) -> dict[NodeId, tuple[DiskSpec, ...]]:
    """Return the disks that may take less than their size, of instances with a home in ``homes``.

    They are told by the nodes to be asked, the instances' primary ones, without those that are
    marked offline.
    """
    found: dict[NodeId, tuple[DiskSpec, ...]] = {}
    for instance in config.made_instances:
        node, kind = instance.primary_node, kind_of(instance.disk_template)
        if node in homes and not config.nodes[node].offline:
            specs = (
                kind.spec(config, instance, disk)
                for disk in config.disks_of(instance)
                if kind.is_thin(disk.backing)
            )
            if more := tuple(specs):
                found[node] = (*found.get(node, ()), *more)
    return found


def shared_pools(cluster: Cluster) -> frozenset[Pool]:
    """Return the pools that are the same one on every node."""
    pools = (kind.pool(cluster) for kind in KINDS.values() if kind.traits.is_external)
    return frozenset(pool for pool in pools if pool is not None)


def pools_of(config: Config) -> tuple[Pool, ...]:
    """Return all pools that nodes keep disks in, that of the preferred template first."""
    every = (*enabled_kinds(config.cluster), *KINDS.values())
    usual = (pool for kind in every for pool in kind.pools(config))
    return tuple(dict.fromkeys((*usual, *config.used_pools)))
