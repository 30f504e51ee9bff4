"""Reading and writing a disk by its descriptor, with what Python's ``os`` does not say."""

import ctypes
import errno
import fcntl
import os
import struct

from common.errors import NodeFailure
from noded.copies.chunks import is_zero

_ZERO_RANGE, _KEEP_SIZE = 0x10, 0x01  # linux/falloc.h
_CANNOT = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.ENOTTY)
_FLOCK = "hhqqi0q"  # struct flock of 64-bit Linux: type, whence, start, length, pid

_PIECE = 4 << 20  # of zeros that are written one by one

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def size_of(descriptor: int) -> int:
    """Return the size in bytes, of a file or a block device."""
    return os.lseek(descriptor, 0, os.SEEK_END)


def read_exactly(descriptor: int, length: int, offset: int) -> bytes:
    """Read ``length`` bytes.

    Raises:
        OSError: an I/O error, or there are less.
    """
    parts = []
    while length and (part := os.pread(descriptor, length, offset)):
        parts.append(part)
        length, offset = length - len(part), offset + len(part)
    if length:
        raise OSError(errno.EIO, "it ends before its end")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def write_zeros(descriptor: int, length: int, offset: int) -> None:
    """Have zeros there; nothing is written where they are, so a thin disk stays thin."""
    if next_data(descriptor, offset, offset + length) == offset + length:
        return
    if is_zero(read_exactly(descriptor, length, offset)):
        return
    zero_range(descriptor, length, offset)


def zero_range(descriptor: int, length: int, offset: int) -> None:
    """Have zeros there, whatever is there; the device or file system does it, if it can."""
    if _libc.fallocate(descriptor, _ZERO_RANGE | _KEEP_SIZE, offset, length) == 0:
        return
    code = ctypes.get_errno()
    if code not in _CANNOT:
        raise OSError(code, os.strerror(code))
    for start in range(offset, offset + length, _PIECE):
        write_all(descriptor, bytes(min(_PIECE, offset + length - start)), start)


def next_data(descriptor: int, offset: int, end: int) -> int:
    """Return where the next data may be at or after ``offset``; ``end`` if there is none.

    Nothing but holes of files is skipped; other zeros have to be read to be seen.
    """
    try:
        return min(end, os.lseek(descriptor, offset, os.SEEK_DATA))
    except OSError as error:
        return end if error.errno == errno.ENXIO else offset


def claim(descriptor: int, path: str, *, to_write: bool) -> None:
    """Keep guests off a disk for as long as somebody has this open: QEMU looks at these locks.

    Raises:
        NodeFailure: a guest uses it, a copy, or a script.
    """
    kind = fcntl.F_WRLCK if to_write else fcntl.F_RDLCK
    wanted = struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        raise NodeFailure(
            f"The disk {path} is in use by a guest, a copy, or a script of an operating system.",
            path=path,
        ) from error
