"""A disk that is going to be made."""

from collections.abc import Sequence

from common.model.disk import Disk
from common.names import DiskId, GroupId, InstanceId, NodeId
from coordinator.disks.devices import Devices
from coordinator.disks.kind import DiskKind, NewDisk
from coordinator.disks.parameters import disk_parameters, group_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import DiskRequest


def new_disks(
    cluster: Cluster,
    kind: DiskKind,
    instance: InstanceId,
    nodes: Sequence[NodeId],
    requests: Sequence[DiskRequest],
    devices: Devices,
    group: GroupId | None = None,
) -> tuple[Disk, ...]:
    """Return disks as they are asked for, with places of their own on an instance's nodes.

    While these are not chosen, ``group`` is where they will be, as far as that is known.
    """
    config, now, holders = cluster.config, cluster.now(), kind.holders(nodes)
    among = group_of(config, nodes[0]) or (config.groups[group] if group else None)
    parameters = disk_parameters(config, among, kind.template)
    made = []
    for request in requests:
        uuid = DiskId(cluster.new_uuid())
        new = NewDisk(instance, uuid, holders, devices, request, parameters)
        disk = Disk(
            uuid=new.disk,
            ctime=now,
            mtime=now,
            name=request.name,
            size=request.size_mib,
            mode=request.mode,
            spindles=request.spindle_count,
            backing=kind.new_backing(config.cluster, new),
            nodes=holders,
        )
        made.append(disk)
    return tuple(made)
