"""Disks that are logical volumes of one node."""

from msgspec.structs import replace

from common.model.backing import Backing, DrbdBacking, LvmBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.disk_parameters import PlainParameters
from common.model.group import Group
from common.model.parameters import Layer, settled
from common.model.pool import Pool
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceId, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.exclusive import spindles_told
from coordinator.disks.kind import DiskKind, NewDisk
from coordinator.disks.volume_groups import group_for, pool_in, volume_kept_in
from coordinator.disks.wish import DiskWish
from coordinator.state.config import Config


class PlainKind(DiskKind):
    """A volume for each disk, thick, or in a thin pool if the parameters name one."""

    unusable = "ENODELVM"
    heeds = frozenset({"vg", "adopt"})

    def pool(self, cluster: Cluster) -> Pool | None:
        return pool_in(cluster.volume_group_name, _thin_pool(cluster))

    def pools(self, config: Config) -> tuple[Pool, ...]:
        usual, groups = config.cluster.volume_group_name, config.sorted_groups()
        refined = (group.diskparams.get(self.template, {}) for group in groups)
        others = (pool_in(usual, _thin_pool(config.cluster, layer)) for layer in refined)
        pools = (self.pool(config.cluster), *others)
        return tuple(dict.fromkeys(pool for pool in pools if pool is not None))

    def new_backing(self, cluster: Cluster, new: NewDisk) -> LvmBacking:
        return LvmBacking(
            group=group_for(cluster, self.template, new.wish.vg),
            name=f"{new.disk}.disk",
            thin_pool=_thin_pool(cluster, new.parameters),
        )

    def wish_of(self, cluster: Cluster, backing: Backing) -> DiskWish:  # noqa: ARG002
        assert isinstance(backing, LvmBacking)
        return DiskWish(vg=backing.group)

    def _spec(self, config: Config, owner: InstanceId, group: Group | None, disk: Disk) -> DiskSpec:
        spec = super()._spec(config, owner, group, disk)
        return replace(spec, spindles=spindles_told(config, disk))

    def kept_in(self, disk: DiskSpec, uuid: DiskId, room: MiB) -> SnapshotSpec:
        return volume_kept_in(disk, uuid, room)

    def around(self, cluster: Cluster, present: Backing, new: NewDisk) -> Backing | None:  # noqa: ARG002
        return present.data if isinstance(present, DrbdBacking) else None


def _thin_pool(cluster: Cluster, refined: Layer | None = None) -> str:
    """Return the thin pool that new disks go in; empty if none is named."""
    layers = (cluster.diskparams.get(DiskTemplate.PLAIN, {}), refined or {})
    return settled(PlainParameters, *layers).thin_pool


PLAIN = PlainKind(DiskTemplate.PLAIN)
