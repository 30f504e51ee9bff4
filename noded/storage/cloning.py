"""Snapshots of disks that are files: files beside them, sharing with them what neither has changed.

Source: ioctl_ficlonerange(2). XFS and Btrfs can, and NFS 4.2 where its server can.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from common.errors import Conflict, NodeFailure
from common.noderpc.disks import DiskReport
from common.noderpc.snapshots import SnapshotSpec
from noded.storage.directories import path_of
from noded.storage.file_calls import is_locked, write_label
from noded.storage.place import NEVER_BY_LINK, Place

_CLONE = 0x40049409  # FICLONE of linux/fs.h
_CANNOT = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.EXDEV, errno.ENOSYS)


def find_problem(place: Place) -> str:
    """Say why a directory's file system shares no data among files; empty if it does."""
    names = [f".{place.name}.{part}" for part in ("from", "to")]
    try:
        with _new(place, names[0]) as source, _new(place, names[1]) as target:
            os.pwrite(source, b"x", 0)
            fcntl.ioctl(target, _CLONE, source)
    except OSError as error:
        if error.errno in _CANNOT:
            return (
                f"The file system of {place.root} has no files that share their data, which "
                "snapshots need: XFS and Btrfs have them."
            )
        raise
    finally:
        for name in names:
            place.unlink(name)
    return ""


def take(place: Place, kept: Place, snapshot: SnapshotSpec) -> None:
    """Keep a disk in a file, which is there as a whole or not at all.

    Raises:
        Conflict: something is in the place of the snapshot.
        NodeFailure: the disk is not there.
    """
    with _opened(place, snapshot, os.O_RDONLY) as source:
        kept.make()
        if there := kept.examine(snapshot.kept):
            raise Conflict(f"{path_of(snapshot.kept)} cannot become a snapshot: {there} is there.")
        try:
            with _new(kept, kept.unfinished) as target:
                fcntl.ioctl(target, _CLONE, source)
                write_label(target, snapshot.kept.id, snapshot.kept.instance)
                os.fsync(target)
            kept.finish()
        except OSError:
            kept.unlink(kept.unfinished)
            raise


def roll_back(place: Place, kept: Place, snapshot: SnapshotSpec) -> None:
    """Have a disk share all its data with its snapshot again.

    Raises:
        NodeFailure: one of the two is not there, or the disk is in use.
    """
    if not kept.enter() or not isinstance(kept.examine(snapshot.kept), DiskReport):
        raise NodeFailure(f"The snapshot {path_of(snapshot.kept)} is not there.")
    with _opened(place, snapshot, os.O_RDWR) as target:
        if is_locked(target):
            raise NodeFailure(
                f"The disk {path_of(snapshot.of)} is in use by a running guest; stop it first.",
                path=path_of(snapshot.of),
            )
        source = kept.open_file(os.O_RDONLY)
        if source is None:
            raise Conflict(f"{path_of(snapshot.kept)} has just been replaced.")
        try:
            os.ftruncate(target, os.fstat(source).st_size)
            fcntl.ioctl(target, _CLONE, source)
            os.fsync(target)
        finally:
            os.close(source)


@contextmanager
def _opened(place: Place, snapshot: SnapshotSpec, access: int) -> Iterator[int]:
    """Open the disk itself."""
    is_there = place.enter() and isinstance(place.examine(snapshot.of), DiskReport)
    descriptor = place.open_file(access) if is_there else None
    if descriptor is None:
        raise NodeFailure(f"The disk {path_of(snapshot.of)} is not there.")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _new(place: Place, name: str) -> Iterator[int]:
    place.unlink(name)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NEVER_BY_LINK
    descriptor = os.open(name, flags, 0o600, dir_fd=place.directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
