"""What the disks of an instance are kept in: the snapshots that there are, and new ones."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from common.errors import Conflict, NotFound
from common.model.disk import Disk, Snapshot
from common.model.instance import Instance
from common.model.node import Node
from common.names import DiskId, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.snapshots import Snapshots, SnapshotSpec
from coordinator.disks.kind import DiskKind
from coordinator.disks.kinds import kind_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.specs import disk_spec
from coordinator.state.config import Config


class Kept(NamedTuple):
    """A disk of which there is a snapshot, with its number."""

    number: int
    disk: Disk
    spec: SnapshotSpec


def find_kept(config: Config, instance: Instance, name: str) -> tuple[Kept, ...]:
    """Return the disks of which there is a snapshot of this name.

    Raises:
        NotFound: says which snapshots there are.
    """
    disks, kind = config.disks_of(instance), kind_of(instance.disk_template)
    found = tuple(
        Kept(index, disk, kind.is_kept_in(disk_spec(config, instance, disk), snapshot))
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
    cluster: Cluster, node: Node, specs: Sequence[SnapshotSpec]
) -> tuple[str, ...]:
    """Return why a node cannot keep disks as they are, each reason once; none if it can."""
    disks = tuple(spec.of for spec in specs)
    told = await cluster.call(Snapshots, node).problems(disks=disks)
    return tuple(dict.fromkeys(filter(None, told)))


def with_snapshots(
    disks: Sequence[Disk], specs: Sequence[SnapshotSpec], name: str, now: float
) -> tuple[Disk, ...]:
    """Return disks with one snapshot more each."""

    def record(spec: SnapshotSpec) -> Snapshot:
        kept = spec.kept
        return Snapshot(
            uuid=kept.id,
            name=name,
            taken_at=now,
            size=kept.size,
            room=spec.room,
            backing=kept.backing,
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
