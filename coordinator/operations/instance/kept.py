"""The snapshots of an instance, by their names."""

from typing import NamedTuple

from common.errors import Conflict, NotFound
from common.model.disk import Disk
from common.model.instance import Instance
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.kinds import kind_of
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
