"""Block devices that are disks of guests: opening one, and what can be told of it."""

import os
import stat
from collections.abc import Callable

from common.errors import NodeFailure
from common.model.disk import Mode
from common.names import MiB
from noded.storage.file_calls import is_locked

MIB = 1 << 20

IsDevice = Callable[[int], bool]
"""Tells by the mode of what is found whether it is a block device."""


def open_device(path: str, mode: Mode, *, is_device: IsDevice = stat.S_ISBLK) -> int:
    """Open a block device; the descriptor is the caller's.

    What is there is got hold of and looked at before it is opened: opening another kind of device
    may have effects.

    Raises:
        NodeFailure: nothing is there, or something else, or it cannot be opened.
    """
    access = os.O_RDONLY if mode is Mode.READ_ONLY else os.O_RDWR
    try:
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not is_device(os.fstat(found).st_mode):
                raise NodeFailure(f"{path} cannot be used: it is no block device.", path=path)
            return os.open(f"/proc/self/fd/{found}", access | os.O_NONBLOCK | os.O_CLOEXEC)
        finally:
            os.close(found)
    except OSError as error:
        raise NodeFailure(f"{path} cannot be opened: {error.strerror}.", path=path) from error


def size_of(path: str, *, is_device: IsDevice = stat.S_ISBLK) -> MiB:
    """Return how large a device is, in whole MiB.

    Raises:
        NodeFailure: as ``open_device``.
    """
    descriptor = open_device(path, Mode.READ_ONLY, is_device=is_device)
    try:
        return MiB(os.lseek(descriptor, 0, os.SEEK_END) // MIB)
    finally:
        os.close(descriptor)


def check_unused(path: str, *, is_device: IsDevice = stat.S_ISBLK) -> None:
    """Refuse to go on while a guest has a device; QEMU locks what it uses.

    Raises:
        NodeFailure: it is in use; also as ``open_device``.
    """
    descriptor = open_device(path, Mode.READ_ONLY, is_device=is_device)
    try:
        if is_locked(descriptor):
            raise NodeFailure(
                f"The disk {path} is in use by a running guest; stop it first.", path=path
            )
    finally:
        os.close(descriptor)
