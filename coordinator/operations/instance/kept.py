"""What the disks of an instance are kept in: the snapshots that there are, and new ones."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from common.errors import Conflict, NotFound
from common.model.disk import Disk, Snapshot
from common.model.instance import Instance
from common.model.node import Node
from common.names import DiskId, MiB, NodeId
from common.noderpc.disks import DiskSpec
from common.noderpc.mirrors import CopyState, Mirrors
from common.noderpc.snapshots import Snapshots, SnapshotSpec
from coordinator.disks.kind import DiskKind
from coordinator.disks.kinds import kind_of
from coordinator.disks.mirrors import in_words, mirrored
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.specs import disk_spec, present_guest
from coordinator.state.config import Config


class Kept(NamedTuple):
    """A disk of which there is a snapshot, with its number, and the node that has the snapshot."""

    number: int
    disk: Disk
    spec: SnapshotSpec
    node: NodeId


def find_kept(config: Config, instance: Instance, name: str) -> tuple[Kept, ...]:
    """Return the disks of which there is a snapshot of this name; one node has all of it.

    Raises:
        NotFound: says which snapshots there are.
    """
    disks, kind = config.disks_of(instance), kind_of(instance.disk_template)
    found = tuple(
        Kept(
            index,
            disk,
            kind.is_kept_in(disk_spec(config, instance, disk), snapshot),
            snapshot.node or instance.primary_node,
        )
        for index, disk in enumerate(disks)
        for snapshot in disk.snapshots
        if snapshot.name == name
    )
    if not found:
        names = dict.fromkeys(each.name for disk in disks for each in disk.snapshots)
        raise NotFound(
            f"{instance.name} has no snapshot {name}; it has {', '.join(names) or 'none'}.",
            instance=instance.name,
        )
    return found


def plan_snapshots(
    cluster: Cluster, kind: DiskKind, disks: Sequence[DiskSpec], room: MiB | None
) -> tuple[SnapshotSpec, ...] | None:
    """Return what keeps disks as they are now; None if there is nothing that could.

    All of a disk may change before it is lost, if no other ``room`` is wished.
    """
    specs = [kind.kept_in(disk, DiskId(cluster.new_uuid()), room or disk.size) for disk in disks]
    found = tuple(spec for spec in specs if spec is not None)
    return found if len(found) == len(disks) else None


async def find_problems(
    cluster: Cluster, instance: Instance, specs: Sequence[SnapshotSpec]
) -> tuple[str, ...]:
    """Return why the disks of an instance cannot be kept where it is, each reason once."""
    home = cluster.config.nodes[instance.primary_node]
    disks = tuple(spec.of for spec in specs)
    told = await cluster.call(Snapshots, home).problems(disks=disks)
    worse = await _lacking(cluster, instance, home)
    return tuple(dict.fromkeys(filter(None, (*told, *worse))))


async def _lacking(cluster: Cluster, instance: Instance, home: Node) -> tuple[str, ...]:
    """Say which disks a guest has the other node's copies of: its own node's are not kept."""
    disks = cluster.config.disks_of(instance)
    mirrors = mirrored(present_guest(cluster.config, instance))
    if not mirrors:
        return ()
    reports = await cluster.call(Mirrors, home).status(disks=mirrors)
    return tuple(
        f"The copy of disk {index} there {in_words(report) if report else 'is behind'}, and that "
        f"of the other node is not kept; “gnt-instance activate-disks --wait-for-sync "
        f"{instance.name}” makes both equal."
        for index, (disk, report) in enumerate(zip(disks, reports, strict=True))
        if home.uuid in disk.behind or (report and report.own is not CopyState.UP_TO_DATE)
    )


def with_snapshots(
    instance: Instance, disks: Sequence[Disk], specs: Sequence[SnapshotSpec], name: str, now: float
) -> tuple[Disk, ...]:
    """Return an instance's disks with one snapshot more each, taken on its primary node."""
    node = instance.primary_node if instance.disk_template.traits.is_mirrored else None

    def record(spec: SnapshotSpec) -> Snapshot:
        kept = spec.kept
        return Snapshot(
            uuid=kept.id,
            name=name,
            taken_at=now,
            size=kept.size,
            room=spec.room,
            backing=kept.backing,
            node=node,
        )

    return tuple(
        replace(disk, snapshots=(*disk.snapshots, record(spec)))
        for disk, spec in zip(disks, specs, strict=True)
    )


def check_of_all(instance: Instance, name: str, kept: tuple[Kept, ...]) -> None:
    """Refuse a snapshot that does not tell of all disks.

    Raises:
        Conflict: names those that have come since.
    """
    others = sorted({*range(len(instance.disks))} - {each.number for each in kept})
    if others:
        raise Conflict(
            f"Disk {' and '.join(map(str, others))} of {instance.name} has come since the snapshot "
            f"{name} was taken: remove or detach what has come first.",
            instance=instance.name,
        )
