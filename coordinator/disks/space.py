"""How large a node's storage is, as those reckon who place its instances."""

from collections.abc import Sequence

from common.model.disk import Disk
from common.model.instance import Instance
from common.model.pool import Pool
from common.names import MiB
from coordinator.disks.kinds import kind_of


def taken_by(instance: Instance, disks: Sequence[Disk], pool: Pool) -> MiB:
    """Return what an instance's disks take of a pool, on each node that they take space of.

    What nodes report as free in a pool, and what their instances take of it, is what they have
    for instances. That is less than its size, if there is something else in it, or disks of other
    nodes' instances, when it is shared. htools take for lost what is neither, and warn of it.
    """
    kind = kind_of(instance.disk_template)
    return kind.traits.disk_space([disk.size for disk in disks if kind.is_in(disk, pool)])
