"""Flaws in where disks are kept, and in the disks themselves."""

from typing import Any

from msgspec.structs import replace

from common.model.backing import ExtBacking, LvmBacking
from common.model.disk import Disk
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import DiskId, InstanceId, MiB, NodeId
from common.noderpc.disks import VolumeListing
from common.noderpc.facts import StorageReport
from common.noderpc.mirrors import MirrorDevice
from coordinator.checks.finding import Severity
from coordinator.state.rows import Put
from tests.support.disks import directory
from tests.unit.checks.flaw import Flaw, facts
from tests.unit.checks.healthy import CLUSTER, DISK, INSTANCE, PATH, SHELF, WEB1, report_of

MIRRORING = (Put(replace(CLUSTER, enabled_disk_templates=("sharedfile", "drbd"))),)

# The same instance, with a disk that is a volume, too.
ON_VOLUME = (
    Put(replace(INSTANCE, disks=(DISK, DiskId("volume")))),
    Put(Disk(
        uuid=DiskId("volume"), size=MiB(64), nodes=(NodeId("alpha"),),
        backing=LvmBacking(group="vg", name="volume.disk"),
    )),
)  # fmt: skip
# The same instance, with a disk that a provider keeps, too.
ON_SHELF = (
    Put(replace(INSTANCE, disks=(DISK, DiskId("shelved")))),
    Put(Disk(
        uuid=DiskId("shelved"), size=MiB(64), backing=ExtBacking(provider="shelf", name="v"),
    )),
)  # fmt: skip
VOLUME = VolumeListing(
    group="vg", name="volume.disk", size=MiB(64), disk=DiskId("volume"), instance=WEB1
)
LEFT = VolumeListing(
    group="vg", name="old.disk", size=MiB(64), disk=DiskId("old"), instance=InstanceId("web9")
)
POOL = Pool(kind=PoolKind.VOLUME_GROUP, name="vg")


def _with_volumes(
    *volumes: VolumeListing, problem: str = "", usable: bool = True
) -> dict[str, Any]:
    """Return what a node says that has these, its volume group being in some state."""
    space = StorageReport(pool=POOL, total=MiB(1024), free=MiB(512), usable=usable, problem=problem)
    return {"facts": replace(report_of("alpha").facts, storage=(space,)), "volumes": volumes}


FLAWS_OF_STORAGE = {
    "a directory is not usable": Flaw(
        "ENODESHAREDFILESTORAGEPATHUNUSABLE", "/srv/shared is not usable: not mounted",
        beta=facts(storage=(
            StorageReport(pool=directory("/srv/shared"), total=MiB(0), free=MiB(0), usable=False,
                          problem="not mounted"),
        )),
    ),
    "disks are kept among the system's files": Flaw(
        "ENODEFILESTORAGEPATHS", "file_storage_dir is /usr/lib/vm, and /usr/lib is the system's",
        (Put(replace(CLUSTER, file_storage_dir="/usr/lib/vm")),),
    ),
    "a node cannot mirror disks": Flaw(
        "ENODEDRBD", "cannot mirror disks: no module", MIRRORING,
        beta=facts(unmirrored="no module"),
    ),
    "the module of a node runs a program": Flaw(
        "ENODEDRBDHELPER", "cannot mirror disks: it runs drbdadm", MIRRORING,
        beta=facts(unmirrored="it runs drbdadm", drbd_helper="/sbin/drbdadm"),
    ),
    "the module of a node is of another version": Flaw(
        "ENODEDRBDVERSION", "has DRBD 8.4.10, most nodes of its group have 8.4.11", MIRRORING,
        beta=facts(drbd_version="8.4.10"), severity=Severity.WARNING,
    ),
    "the module of a node is of another kind": Flaw(
        "ENODEDRBDVERSION", "most nodes of its group have 8.4.11; what is mirrored between both "
        "goes on, and no new disk will be", MIRRORING,
        beta=facts(drbd_version="9.2.16"), severity=Severity.WARNING,
    ),
    "a device is left over": Flaw(
        "ENODEDRBD", "/dev/drbd3 (gantry-gone) belongs to no disk that is here",
        beta={"devices": (MirrorDevice(resource="gantry-gone", minor=3, disk=DiskId("gone")),)},
    ),
    "a provider cannot be used": Flaw(
        "ENODEUSERSCRIPTS", "cannot use disks that the provider shelf keeps: it has no script",
        ON_SHELF,
        beta={"providers": (replace(SHELF, problem="it has no script “grow”"),)},
    ),
    "a provider is missing": Flaw(
        "ENODEUSERSCRIPTS", "provider shelf keeps: This node has no provider “shelf”",
        ON_SHELF, beta={"providers": ()},
    ),
    "a disk is missing": Flaw(
        "EINSTANCEMISSINGDISK", f"disk 0 ({PATH}) is missing on alpha", alpha={"disk_files": ()}
    ),
    "a volume is missing": Flaw(
        "EINSTANCEMISSINGDISK", "disk 1 (vg/volume.disk) is missing on alpha", ON_VOLUME,
        alpha=_with_volumes(),
    ),
    "a volume is another disk's": Flaw(
        "EINSTANCEFAULTYDISK", "disk 1 (vg/volume.disk) on alpha cannot be used: it is not marked",
        ON_VOLUME, alpha=_with_volumes(replace(VOLUME, disk=None)),
    ),
    "a volume lacks a device": Flaw(
        "EINSTANCEFAULTYDISK", "cannot be used: it lacks a physical volume",
        ON_VOLUME,
        alpha=_with_volumes(replace(VOLUME, problem="it lacks a physical volume")),
    ),
    "a volume is too small": Flaw(
        "EINSTANCEFAULTYDISK", "cannot be used: it has 60 MiB instead of 64", ON_VOLUME,
        alpha=_with_volumes(replace(VOLUME, size=MiB(60))),
    ),
    "a volume is left": Flaw(
        "ENODEORPHANLV", "the volume vg/old.disk is left over of the disk old of the instance web9",
        ON_VOLUME, alpha=_with_volumes(VOLUME, LEFT),
    ),
    "a volume is on another node, too": Flaw(
        "ENODEORPHANLV", "the volume vg/volume.disk is of the disk volume of the instance web1, "
        "which is not kept there; “gnt-node remove-leftovers beta” deletes it",
        ON_VOLUME, alpha=_with_volumes(VOLUME), beta={"volumes": (VOLUME,)},
    ),
    "a volume group is broken": Flaw(
        "ENODELVM", "the volume group vg is not usable: It is broken.", ON_VOLUME,
        alpha=_with_volumes(VOLUME, problem="It is broken.", usable=False),

    ),
    "a thin pool is nearly full": Flaw(
        "ENODELVM", "It is nearly full.", ON_VOLUME,
        alpha=_with_volumes(VOLUME, problem="It is nearly full."),
        severity=Severity.WARNING,
    ),
    "a file is nobody's": Flaw(
        "ENODEORPHANLV", "the file /srv/shared/x.raw belongs to no instance",
        alpha={"disk_files": (PATH, "/srv/shared/x.raw")},
        beta={"disk_files": (PATH, "/srv/shared/x.raw")},
    ),
}  # fmt: skip
