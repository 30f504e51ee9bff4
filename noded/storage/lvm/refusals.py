"""What is said when a volume cannot be had; by the real volumes and by the fake."""

from common.errors import Conflict, NodeFailure
from common.names import MiB
from common.units import format_mib
from noded.storage.lvm.volumes import Volume, VolumeReport


def no_group(group: str) -> NodeFailure:
    return NodeFailure(
        f"The volume group {group} does not exist on this node; make it with vgcreate, or find "
        "out with “pvs” which of its physical volumes are missing.",
        group=group,
    )


def no_thin_pool(group: str, thin_pool: str) -> NodeFailure:
    return NodeFailure(
        f"The volume group {group} has no thin pool {thin_pool} on this node; make it with "
        "“lvcreate --type thin-pool”.",
        group=group,
    )


def no_space(pool: str, size: MiB, free: MiB) -> NodeFailure:
    return NodeFailure(
        f"There is no space for a disk of {format_mib(size)} in {pool}: {format_mib(free)} are "
        "free.",
        pool=pool,
        free_mib=free,
    )


def no_space_to_grow(volume: Volume, more: MiB, free: MiB) -> NodeFailure:
    return NodeFailure(
        f"There is no space to grow the disk {volume.name} by {format_mib(more)}: "
        f"{format_mib(free)} are free.",
        volume=volume.name,
        free_mib=free,
    )


def no_empty_devices(group: str, wanted: int, free: int) -> NodeFailure:
    return NodeFailure(
        f"A disk of {group} is to have {wanted} physical volume(s) for itself, and {free} are "
        "empty.",
        group=group,
        free=free,
    )


def not_ours(volume: Volume, there: VolumeReport) -> Conflict:
    what = f"the disk {there.disk}" if there.disk else "a volume that is not ours"
    return Conflict(f"{volume.name} cannot become a disk: {what} is there.", volume=volume.name)


def not_there(volume: Volume, what: str, why: str = "it is not there") -> NodeFailure:
    return NodeFailure(f"The disk {volume.name} cannot be {what}: {why}.", volume=volume.name)


LOST = "more was written than it had room for, and what it kept is lost"


def in_use(volume: Volume) -> NodeFailure:
    return NodeFailure(
        f"The disk {volume.name} is in use, by a running guest or by a device on top of it; "
        "stop it first.",
        volume=volume.name,
    )
