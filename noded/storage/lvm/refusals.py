"""What is said when a volume cannot be had; by the real volumes and by the fake."""

from common.errors import Conflict, NodeFailure
from common.names import MiB
from common.units import format_mib
from noded.storage.lvm.volumes import Volume


def no_group(group: str) -> NodeFailure:
    return NodeFailure(
        f"The volume group {group} does not exist on this node; make it with vgcreate, or find "
        "out with “pvs” which of its physical volumes are missing.",
        group=group,
    )


def no_space(pool: str, size: MiB, free: MiB) -> NodeFailure:
    return NodeFailure(
        f"There is no space for a disk of {format_mib(size)} in {pool}: {format_mib(free)} are "
        "free.",
        pool=pool,
        free_mib=free,
    )


def not_ours(volume: Volume, why: str) -> Conflict:
    return Conflict(f"{volume.name} cannot become a disk: {why}.", volume=volume.name)


def not_there(volume: Volume, what: str, why: str = "it is not there") -> NodeFailure:
    return NodeFailure(f"The disk {volume.name} cannot be {what}: {why}.", volume=volume.name)


def in_use(volume: Volume) -> NodeFailure:
    return NodeFailure(
        f"The disk {volume.name} is in use, by a running guest or by a device on top of it; "
        "stop it first.",
        volume=volume.name,
    )
