"""Which numbers of devices are free: on the nodes, and promised to no other job."""

from common.model.disk import Disk
from coordinator.disks.devices import Devices
from coordinator.operations.cluster_view import Cluster


def free_devices(cluster: Cluster) -> Devices:
    """Return what gives out numbers of mirrored disks.

    Whoever takes some promises them before it waits for anything, so that nobody else gets them.
    """
    disks: list[Disk] = list(cluster.config.disks.values())
    for promise in cluster.placing.promises.standing(but=cluster.owner):
        disks += promise.disks
        disks += promise.planned.disks if promise.planned else ()
    return Devices(disks, cluster.new_uuid)
