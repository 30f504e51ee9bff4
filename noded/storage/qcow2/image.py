"""Which file a disk is in, and how another program is told of it."""

import os
from pathlib import PurePath

from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import Qcow2Backing
from common.model.disk import Mode
from common.names import DiskId
from common.noderpc.disks import DiskSpec
from noded.images.qcow2 import BadImage, Qcow2
from noded.storage.directories import path_of


def as_image(disk: DiskSpec) -> Qcow2Backing:
    """Return where a disk is that is an image; whoever keeps images is asked for no others."""
    if isinstance(disk.backing, Qcow2Backing):
        return disk.backing
    raise InvalidRequest("This disk is no image.", disk=disk.id)


def itself(disk: DiskSpec) -> DiskSpec:
    """Return the disk of which something is kept inside; another one is that itself."""
    backing = as_image(disk)
    if not backing.snapshot:
        return disk
    stem = DiskId(PurePath(backing.path).stem)
    return replace(disk, id=stem, mode=Mode.READ_ONLY, backing=replace(backing, snapshot=""))


def examined(descriptor: int, disk: DiskSpec) -> Qcow2:
    """Read an image's header, as is done before any program gets the image.

    Raises:
        NodeFailure: it does not stand for itself, or is bad otherwise.
    """
    try:
        return Qcow2(descriptor, as_image(disk).snapshot)
    except (BadImage, OSError) as error:
        raise NodeFailure(
            f"The disk {path_of(disk)} cannot be used: {error}.", disk=disk.id
        ) from error


def named(descriptor: int) -> str:
    """Return a name by which another process opens what is open here, whatever is at its path."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"
