"""Which numbers and addresses of devices are free: in no use, and promised to no other job."""

from common.model.disk import Disk
from coordinator.disks.devices import Devices
from coordinator.operations.addresses import Addresses
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


def free_addresses(cluster: Cluster) -> Addresses:
    """Return what gives out addresses of nics; they are promised like numbers."""
    standing = cluster.placing.promises.standing(but=cluster.owner)
    return Addresses(cluster.config, (nic for promise in standing for nic in promise.nics))
