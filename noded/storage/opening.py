"""Opening a guest's disk, so that nobody else decides which file it is."""

import os
from contextlib import suppress

from common.errors import NodeFailure
from common.model.disk import Mode
from common.noderpc.disks import DiskSpec
from noded.storage.directories import Directories, as_file, locate, path_of
from noded.storage.file_calls import read_label
from noded.storage.place import Place


def open_disk(disk: DiskSpec, allowed: Directories) -> int:
    """Open a disk as the guest is to have it; the descriptor is the caller's.

    Who may write to the directory, such as another node that shares it, can put anything in the
    disk's place; only a file with no label but this disk's is taken.

    Raises:
        InvalidRequest: its path is no place for a disk, or a symbolic link is on the way.
        NodeFailure: it is not there, or something else is.
    """
    access = os.O_RDONLY if disk.mode is Mode.READ_ONLY else os.O_RDWR
    root, names = locate(as_file(disk.backing), allowed)
    try:
        with Place(root, names) as place:
            if not place.enter():
                raise FileNotFoundError(2, "No such file or directory")
            descriptor = place.open_file(access)
    except OSError as error:
        raise NodeFailure(
            f"The disk {path_of(disk)} cannot be opened: {error.strerror}.",
            disk=disk.id,
            path=path_of(disk),
        ) from error
    if descriptor is None:
        raise _unusable(disk, "it is no regular file")
    with suppress(OSError):
        if (label := read_label(descriptor)) and label[0] != disk.id:
            os.close(descriptor)
            raise _unusable(disk, f"the disk {label[0]} is in its place")
    return descriptor


def _unusable(disk: DiskSpec, why: str) -> NodeFailure:
    return NodeFailure(
        f"The disk {path_of(disk)} cannot be used: {why}.",
        disk=disk.id,
        path=path_of(disk),
    )
