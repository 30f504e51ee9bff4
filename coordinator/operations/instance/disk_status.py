"""What nodes tell of an instance's disks, in the words of Ganeti's ``gnt-instance info``."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from common.errors import GntError
from common.model.backing import DrbdBacking, LvmBacking
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node
from common.names import DiskId, MiB, NodeId
from common.noderpc.disks import Disks
from common.noderpc.mirrors import Copying, CopyState, MirrorReport, Mirrors
from coordinator.disks.mirrors import is_whole
from coordinator.disks.plain import PLAIN
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.specs import disk_spec
from coordinator.state.config import Config

OKAY, UNKNOWN, FAULTY = 1, 3, 4  # Ganeti's, of a disk's own copy
_DRBD_MAJOR = 147  # the kernel's
_COPYING = (Copying.TO_PEER, Copying.FROM_PEER)

Status = tuple[str, int | None, int | None, float | None, int | None, bool, int]
"""Path, major and minor, percent and seconds left of a copying, whether degraded, own state."""


class OnNode(NamedTuple):
    """How large the disks are that a node has, and how it says that mirrored ones are.

    ``allocated`` is what those take that take less than their size at first, ``spindles`` on how
    many physical volumes those are of which that can be told.
    """

    sizes: Mapping[DiskId, MiB]
    mirrors: Mapping[DiskId, MirrorReport | None]
    allocated: Mapping[DiskId, MiB] = {}
    spindles: Mapping[DiskId, int] = {}

    def status(self, disk: Disk, node: NodeId) -> Status | None:
        """Return how a disk is; None if it is not there."""
        path = disk.backing.device_path(node)
        minor = disk.backing.minors.get(node)
        if minor is None:
            is_there = disk.uuid in self.sizes
            return (path, None, None, None, None, False, OKAY) if is_there else None
        report = self.mirrors.get(disk.uuid)
        if report is None:
            return None
        copies = report.copying in _COPYING
        left_s = round(report.behind_kib / report.rate_kib) if report.rate_kib else None
        return (
            path,
            _DRBD_MAJOR,
            minor,
            report.percent if copies else None,
            left_s if copies else None,
            not is_whole(report),
            _OWN.get(report.own, UNKNOWN),
        )

    def status_of_volume(self, disk: Disk, volume: LvmBacking) -> Status | None:
        """Return how one of the volumes below a mirrored disk is; None if it is not in use."""
        report = self.mirrors.get(disk.uuid)
        if report is None or report.own is CopyState.NONE:
            return None
        return (f"/dev/{volume.where}", None, None, None, None, False, OKAY)


_OWN = {CopyState.UP_TO_DATE: OKAY, CopyState.NONE: FAULTY}


async def look_at_disks(
    cluster: Cluster, instances: Iterable[Instance]
) -> dict[NodeId, OnNode | GntError]:
    """Ask all nodes of some instances at once; those marked offline are not asked."""
    config = cluster.config
    on: dict[NodeId, list[tuple[Instance, Disk]]] = {}
    for instance in instances:
        for node in config.nodes_of(instance):
            if not config.nodes[node].offline:
                on.setdefault(node, []).extend((instance, d) for d in config.disks_of(instance))
    return await cluster.each(
        {node: _ask(cluster, config.nodes[node], disks) for node, disks in on.items()}
    )


async def _ask(cluster: Cluster, node: Node, disks: list[tuple[Instance, Disk]]) -> OnNode:
    config = cluster.config
    specs = tuple(disk_spec(config, instance, disk) for instance, disk in disks)
    found = await cluster.call(Disks, node).find(disks=specs) if specs else ()
    pairs = tuple(spec for spec in specs if spec.ends)
    reports = await cluster.call(Mirrors, node).status(disks=pairs) if pairs else ()
    return OnNode(
        sizes={report.id: report.size for report in found if report is not None},
        mirrors={spec.id: report for spec, report in zip(pairs, reports, strict=True)},
        allocated={
            report.id: report.allocated
            for report in found
            if report is not None and report.allocated is not None
        },
        spindles={
            report.id: report.spindles for report in found if report is not None and report.spindles
        },
    )


def describe_disk(
    config: Config, instance: Instance, index: int, disk: Disk, told: Mapping[NodeId, OnNode]
) -> dict[str, Any]:
    """Return all that Ganeti tells of a disk."""
    home, *others = config.nodes_of(instance)
    of_second = next((told[node] for node in others if node in told), None)
    described: dict[str, Any] = {
        "iv_name": f"disk/{index}",
        "dev_type": instance.disk_template,
        "logical_id": disk.backing.logical_id(disk.nodes),
        "drbd_info": None,
        "pstatus": told[home].status(disk, home) if home in told else None,
        "sstatus": next((told[n].status(disk, n) for n in others if n in told), None),
        "children": [
            _describe_volume(disk, volume, size, told.get(home), of_second)
            for volume, size in disk.backing.children(disk.size)
        ],
        "mode": disk.mode,
        "size": disk.size,
        "allocated": told[home].allocated.get(disk.uuid) if home in told else None,
        "spindles": disk.spindles,
        "name": disk.name or None,
        "uuid": disk.uuid,
    }
    if isinstance(disk.backing, DrbdBacking):
        (second,) = others
        described["drbd_info"] = {
            "primary_node": config.nodes[home].name,
            "primary_minor": disk.backing.minors[home],
            "secondary_node": config.nodes[second].name,
            "secondary_minor": disk.backing.minors[second],
            "port": disk.backing.port,
        }
    return described


def _describe_volume(
    disk: Disk, volume: LvmBacking, size: MiB, home: OnNode | None, second: OnNode | None
) -> dict[str, Any]:
    return {
        "iv_name": None,
        "dev_type": PLAIN.template,
        "logical_id": volume.logical_id(()),
        "drbd_info": None,
        "pstatus": home.status_of_volume(disk, volume) if home else None,
        "sstatus": second.status_of_volume(disk, volume) if second else None,
        "children": [],
        "mode": disk.mode,
        "size": size,
        "spindles": None,
        "name": None,
        "uuid": volume.name,
    }
