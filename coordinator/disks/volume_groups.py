"""In which volume group of its nodes a disk goes, which pool that is, and what keeps a volume."""

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.backing import LvmBacking
from common.model.cluster import Cluster
from common.model.disk import Disk, Mode
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.template import TRAITS, DiskTemplate
from common.names import DiskId, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.snapshots import SnapshotSpec


def group_for(cluster: Cluster, template: DiskTemplate, wished: str = "") -> str:
    """Return the volume group of a new disk: the one that was wished for, or the cluster's.

    Raises:
        InvalidRequest: there is neither.
    """
    if wished or cluster.volume_group_name:
        return wished or cluster.volume_group_name
    raise InvalidRequest(
        f"This cluster has no volume group for {template} disks; it is set with “gnt-cluster "
        "modify --vg-name”."
    )


def check_has_group(cluster: Cluster) -> None:
    """Refuse templates of volumes where there is no group for these.

    Raises:
        InvalidRequest: says what to give.
    """
    for template in cluster.enabled_disk_templates:
        traits = TRAITS.get(template)
        if traits and traits.is_in_volume_group and not cluster.volume_group_name:
            raise InvalidRequest(
                f"Disks of the template {template} are in a volume group: name the one that all "
                "nodes have with --vg-name, or leave the template out of --enabled-disk-templates."
            )


def pool_in(group: str, thin_pool: str = "") -> Pool | None:
    """Return the pool that volumes of a group take space of; None if there is no group."""
    if not group:
        return None
    name = f"{group}/{thin_pool}" if thin_pool else group
    return Pool(kind=PoolKind.VOLUME_GROUP, name=name)


def found_in(disk: Disk, thin_pool: str) -> Disk:
    """Return a disk with the thin pool of the volume that it adopts; of another sort, as it is."""
    if not isinstance(disk.backing, LvmBacking):
        return disk
    return replace(disk, backing=replace(disk.backing, thin_pool=thin_pool))


def volume_kept_in(disk: DiskSpec, uuid: DiskId, room: MiB) -> SnapshotSpec:
    """Return what keeps a volume; in a thin pool it takes what it needs."""
    assert isinstance(disk.backing, LvmBacking)
    backing = replace(disk.backing, name=f"{uuid}.snapshot")
    kept = replace(disk, id=uuid, backing=backing, mode=Mode.READ_ONLY, parameters={})
    return SnapshotSpec(of=disk, kept=kept, room=MiB(0) if backing.thin_pool else room)
