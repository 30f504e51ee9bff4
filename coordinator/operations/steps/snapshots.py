"""Taking snapshots of disks, and deleting them."""

from collections.abc import Sequence

from common.errors import Conflict
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.noderpc.disks import Disks, DiskSpec
from common.noderpc.snapshots import Snapshots, SnapshotSpec
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act


def take_snapshots(
    cluster: Cluster,
    what: str,
    node: NodeRef,
    snapshots: tuple[SnapshotSpec, ...],
    *,
    freeze: bool = False,
) -> Step:
    """Keep what is on disks of one instance at one moment; undone, the snapshots are deleted.

    Args:
        cluster: as the job sees it.
        what: is kept, in words.
        node: where.
        snapshots: of each disk.
        freeze: whether the guest's agent is asked to have all on its disks.
    """
    instance, disks = snapshots[0].of.instance, cluster.call(Disks, node)

    async def delete() -> None:
        for each in snapshots:
            await disks.ensure_absent(disk=each.kept)

    return act(
        f"take {what} on {node}",
        lambda: cluster.call(Snapshots, node).ensure_taken(
            instance=instance, snapshots=snapshots, freeze=freeze
        ),
        undo=delete,
    )


def delete_snapshot(cluster: Cluster, index: int, name: str, kept: DiskSpec, node: NodeRef) -> Step:
    """Delete what was kept of a disk, for good."""
    return act(
        f"delete the snapshot {name} of disk {index} on {node}",
        lambda: cluster.call(Disks, node).ensure_absent(disk=kept),
    )


def check_no_snapshots(
    instance: Instance, disks: Sequence[Disk], undergoing: str, *, on: Node | None = None
) -> None:
    """Refuse what snapshots of disks would not survive, or would not be true after.

    Args:
        instance: whose they are.
        disks: which.
        undergoing: what happens to them, after “cannot be”.
        on: the node whose copies alone it happens to; None: to the disks as such.

    Raises:
        Conflict: names them.
    """
    kept = [each for disk in disks for each in disk.snapshots]
    names = dict.fromkeys(each.name for each in kept if on is None or each.node == on.uuid)
    if names:
        where = f" on {on.name}" if on else ""
        raise Conflict(
            f"A disk of {instance.name} cannot be {undergoing} while there are snapshots of it"
            f"{where}: {', '.join(names)}. “gnt-instance remove-snapshot {instance.name} NAME” "
            "deletes one.",
            instance=instance.name,
            snapshots=list(names),
        )
