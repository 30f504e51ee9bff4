"""How large a node's storage is, as those reckon who place its instances."""

from collections.abc import Iterable

from common.model.disk import Disk
from common.model.pool import Pool
from common.names import MiB


def taken_by(disks: Iterable[Disk], pool: Pool) -> MiB:
    """Return what disks take of a pool, on each node that has them.

    What nodes report as free in a pool, and what their instances take of it, is what they have
    for instances. That is less than its size, if there is something else in it, or disks of other
    nodes' instances, when it is shared. htools take for lost what is neither, and warn of it.
    """
    return MiB(sum(disk.takes(pool) for disk in disks))
