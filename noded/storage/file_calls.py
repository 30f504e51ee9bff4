"""The few things about files that Python's ``os`` does not say: allocating, labels, locks."""

import ctypes
import errno
import fcntl
import os
import struct

from common.errors import NodeFailure
from common.noderpc.disks import DiskSpec
from common.units import format_mib
from noded.storage.directories import path_of

_LABEL = "user.gantry.disk"
_NO_LABELS = (errno.ENOTSUP, errno.ENODATA, errno.EPERM, errno.ENOSYS)
_FLOCK = "hhqqi0q"  # struct flock of 64-bit Linux: type, whence, start, length, pid

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def allocate(descriptor: int, size: int, *, present: int = 0) -> None:
    """Reserve zeros from ``present`` to ``size`` bytes; holes where the file system cannot reserve.

    Not ``os.posix_fallocate``: where the file system cannot do it (NFS before 4.2), glibc
    writes into every block, which takes hours for a large disk.

    Raises:
        OSError: no space, beyond a quota, too large for the file system.
    """
    while _libc.fallocate(descriptor, 0, present, size - present) != 0:
        code = ctypes.get_errno()
        if code == errno.EOPNOTSUPP:
            return os.ftruncate(descriptor, size)
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))
    return None


def write_label(descriptor: int, disk: str, instance: str) -> None:
    """Write on a file whose disk it is; without effect where the file system has no labels."""
    try:
        os.setxattr(descriptor, _LABEL, f"{disk} {instance}".encode())
    except OSError as error:
        if error.errno not in _NO_LABELS:
            raise


def read_label(descriptor: int) -> tuple[str, str] | None:
    """Return the UUIDs of disk and instance from a file's label, or None if it has none."""
    try:
        text = os.getxattr(descriptor, _LABEL).decode(errors="replace")
    except OSError as error:
        if error.errno not in _NO_LABELS:
            raise
        return None
    disk, _, instance = text.partition(" ")
    return disk, instance


def is_locked(descriptor: int) -> bool:
    """Tell whether a process holds a lock on the file, as QEMU does on its images.

    Source: fcntl(2), F_OFD_GETLK; raw_apply_lock_bytes() in QEMU's block/file-posix.c.
    """
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)


def explain(error: OSError, doing: str, disk: DiskSpec) -> NodeFailure:
    """Put an error of the system in a sentence about the disk."""
    path, reason = path_of(disk), error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        text = f"There is no space for a disk of {format_mib(disk.size)} at {path}: {reason}."
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        text = f"This node may not {doing} the disk {path}: {reason}. Look at owner and mount."
    else:
        text = f"Cannot {doing} the disk {path}: {reason}."
    return NodeFailure(text, path=path, errno=errno.errorcode.get(error.errno or 0, ""))
