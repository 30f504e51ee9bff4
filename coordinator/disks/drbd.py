"""Disks that are mirrored: a volume on each of two nodes, kept equal by DRBD."""

from collections.abc import Sequence

from msgspec.structs import replace

from common.model.backing import Backing, DrbdBacking, LvmBacking
from common.model.cluster import Cluster
from common.model.disk import Disk, Snapshot
from common.model.disk_parameters import DrbdParameters
from common.model.group import Group
from common.model.node import NodeRef
from common.model.parameters import settled
from common.model.pool import Pool
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceId, MiB, NodeId
from common.noderpc.disks import DiskSpec, MirrorEnd
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.devices import Devices
from coordinator.disks.holding import Handover, alone, none, optional, shared, sole, standby
from coordinator.disks.kind import DiskKind, NewDisk
from coordinator.disks.volume_groups import group_for, pool_in, volume_kept_in
from coordinator.disks.wish import DiskWish
from coordinator.state.config import Config


class DrbdKind(DiskKind):
    """A guest runs on one of two nodes; the other one follows along, in standby."""

    unusable = "ENODELVM"
    heeds = frozenset({"vg", "metavg"})

    def pool(self, cluster: Cluster) -> Pool | None:
        return pool_in(cluster.volume_group_name)

    def pools(self, config: Config) -> tuple[Pool, ...]:
        layers = (config.cluster.diskparams, *(g.diskparams for g in config.sorted_groups()))
        named = (settled(DrbdParameters, layer.get(self.template, {})).metavg for layer in layers)
        every = (self.pool(config.cluster), *map(pool_in, named))
        return tuple(dict.fromkeys(pool for pool in every if pool is not None))

    def new_backing(self, cluster: Cluster, new: NewDisk) -> DrbdBacking:
        group = group_for(cluster, self.template, new.wish.vg)
        layers = (cluster.diskparams.get(self.template, {}), new.parameters)
        meta_group = new.wish.metavg or settled(DrbdParameters, *layers).metavg or group
        return DrbdBacking(
            data=LvmBacking(group=group, name=f"{new.disk}.data"),
            meta=LvmBacking(group=meta_group, name=f"{new.disk}.meta"),
            port=new.devices.port(new.nodes),
            minors={node: new.devices.minor(node) for node in new.nodes},
            secret=new.devices.new_secret(),
        )

    def wish_of(self, cluster: Cluster, backing: Backing) -> DiskWish:  # noqa: ARG002
        assert isinstance(backing, DrbdBacking)
        return DiskWish(vg=backing.data.group, metavg=backing.meta.group)

    def around(self, cluster: Cluster, present: Backing, new: NewDisk) -> Backing | None:
        if not isinstance(present, LvmBacking):
            return None
        return replace(self.new_backing(cluster, new), data=present)

    def reserved_on(self, disk: Disk, nodes: tuple[NodeId, ...], devices: Devices) -> Disk:
        """Give it other numbers, unless its two nodes only change their parts."""
        is_same_pair = set(nodes) == set(disk.nodes)
        return replace(disk, nodes=nodes) if is_same_pair else again_on(disk, nodes, devices)

    def _spec(self, config: Config, owner: InstanceId, group: Group | None, disk: Disk) -> DiskSpec:
        return replace(super()._spec(config, owner, group, disk), ends=_ends(config, disk))

    def kept_in(self, disk: DiskSpec, uuid: DiskId, room: MiB) -> SnapshotSpec:
        """Keep what is on the volume of the node that is asked, which is that of the guest."""
        return volume_kept_in(_volume(disk), uuid, room)

    def is_kept_in(self, disk: DiskSpec, snapshot: Snapshot) -> SnapshotSpec:
        return super().is_kept_in(_volume(disk), snapshot)

    def before_start(self, nodes: Sequence[NodeRef]) -> Handover:
        home, *rest = nodes
        if not rest:  # that the other copy falls behind is noted before
            return Handover(do=alone(home), undo=none(home))
        return Handover(do=(*standby(*rest), *sole(home)), undo=none(home, *rest))

    def before_start_apart(self, nodes: Sequence[NodeRef]) -> Handover:
        return Handover(do=alone(nodes[0]), undo=none(*nodes))

    def after_stop(self, nodes: Sequence[NodeRef], *, was_running: bool = False) -> Handover:
        home, *rest = nodes
        back = self.before_start(nodes).do if was_running else ()
        # A standby that is left on a node which does not answer does no harm.
        return Handover(do=(*none(home), *optional(*none(*rest))), undo=back)

    def before_failover(self, nodes: Sequence[NodeRef], *, was_running: bool = False) -> Handover:
        back = self.before_start(nodes).do if was_running else ()
        return Handover(do=standby(nodes[0]), undo=back)

    def after_failover(self, nodes: Sequence[NodeRef]) -> Handover:
        # A copy that is detached does not know any more that it was equal to the other one.
        return Handover(do=self.before_start(nodes).do, undo=standby(*nodes))

    def before_move(self, source: NodeRef, target: NodeRef) -> Handover:
        return Handover(do=shared(source, target), undo=(*standby(target), *sole(source)))

    def after_move(self, home: NodeRef, others: Sequence[NodeRef]) -> Handover:
        return Handover(do=(*standby(*others), *sole(home)))


def again_on(
    disk: Disk, nodes: tuple[NodeId, ...], devices: Devices, *, behind: tuple[NodeId, ...] = ()
) -> Disk:
    """Return a disk as it is when these two nodes have it; who stays keeps its minor and number.

    Port and secret are others, so that no node takes part that should not any more.
    """
    old = disk.backing
    assert isinstance(old, DrbdBacking)
    minors = {n: old.minors[n] if n in old.minors else devices.minor(n) for n in nodes}
    port, secret = devices.port(nodes), devices.new_secret()
    backing = replace(old, port=port, minors=minors, secret=secret)
    # Who has number 0 keeps it, and who has 1 leaves 0 to the one that comes.
    first = _first(disk)
    if first not in nodes:
        first = next((node for node in nodes if node not in disk.nodes), None)
    return replace(disk, backing=backing, nodes=nodes, behind=behind, first=first)


def _first(disk: Disk) -> NodeId | None:
    """Return the node that is number 0 to DRBD 9."""
    return disk.first if disk.first in disk.nodes else min(disk.nodes, default=None)


def _volume(disk: DiskSpec) -> DiskSpec:
    """Return what a node has its copy of a disk on."""
    assert isinstance(disk.backing, DrbdBacking)
    return replace(disk, backing=disk.backing.data, parameters={}, ends=())


def _ends(config: Config, disk: Disk) -> tuple[MirrorEnd, ...]:
    """Return both ends in the order of their numbers, whichever has the guest."""
    assert isinstance(disk.backing, DrbdBacking)
    ends, first = [], _first(disk)
    for uuid in sorted(disk.nodes, key=lambda node: node != first):
        node = config.nodes[uuid]
        address = node.secondary_ip or node.primary_ip
        ends.append(MirrorEnd(node=uuid, address=address, minor=disk.backing.minors[uuid]))
    return tuple(ends)


DRBD = DrbdKind(DiskTemplate.DRBD)
