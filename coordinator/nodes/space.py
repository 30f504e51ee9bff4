"""How large a node's storage is, as those reckon who place its instances."""

from collections.abc import Iterable

from common.model.disk import Disk
from common.names import MiB


def space_for_disks(free: MiB, directory: str, disks: Iterable[Disk]) -> MiB:
    """Return what a node's instances have and can have: free space, and what their disks take.

    That is less than the file system has, if there is something else on it, or disks of other
    nodes' instances, when it is shared. htools take for lost what is neither free nor in disks of
    the node's instances, and warn of it.

    Args:
        free: in ``directory``.
        directory: where the node keeps disks.
        disks: of the node's instances; those that are elsewhere do not count.
    """
    inside = f"{directory}/"
    return MiB(free + sum(disk.size for disk in disks if disk.backing.path.startswith(inside)))
