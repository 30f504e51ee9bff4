"""Disks that are images of a Ceph cluster, which all nodes reach."""

from msgspec.structs import replace

from common.model.backing import RbdBacking
from common.model.cluster import Cluster
from common.model.disk_parameters import RbdParameters
from common.model.parameters import settled
from common.model.template import DiskTemplate
from common.names import DiskId, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.kind import DiskKind, NewDisk, kept_beside


class RbdKind(DiskKind):
    """One image for each disk, in the pool that the parameters name; it stays in that pool."""

    def new_backing(self, cluster: Cluster, new: NewDisk) -> RbdBacking:
        layers = (cluster.diskparams.get(self.template, {}), new.parameters)
        told = settled(RbdParameters, *layers)
        return RbdBacking(pool=told.pool, image=f"{new.disk}.rbd", user=told.user_id)

    def kept_in(self, disk: DiskSpec, uuid: DiskId, room: MiB) -> SnapshotSpec:  # noqa: ARG002
        assert isinstance(disk.backing, RbdBacking)
        backing = replace(disk.backing, image=f"{disk.backing.image}@{uuid}")
        return kept_beside(disk, uuid, backing)


RBD = RbdKind(DiskTemplate.RBD)
