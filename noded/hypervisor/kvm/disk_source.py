"""Disks as QEMU gets them: descriptors that noded opened, and what they are like."""

import fcntl
import os
import stat

from common.model.kvm import KvmParameters
from common.model.kvm_words import DiskCache
from noded.hypervisor.kvm.disk_devices import Source

_DIRECT = {DiskCache.NONE: True, DiskCache.WRITEBACK: False, DiskCache.WRITETHROUGH: False}


def source_of(descriptor: int, parameters: KvmParameters, *, fdset: int | None = None) -> Source:
    """Look at a descriptor of a disk.

    Args:
        descriptor: as noded has it.
        parameters: of the guest.
        fdset: where QEMU keeps it; by the number of the descriptor, unless told.
    """
    wanted = _DIRECT.get(parameters.disk_cache)
    return Source(
        fdset=descriptor if fdset is None else fdset,
        is_block_device=stat.S_ISBLK(os.fstat(descriptor).st_mode),
        direct=_can_bypass_cache(descriptor) if wanted is None else wanted,
    )


def size_of(descriptor: int) -> int:
    """Return how many bytes a file or a block device has."""
    return os.lseek(descriptor, 0, os.SEEK_END)


def _can_bypass_cache(descriptor: int) -> bool:
    """Tell whether the file system knows O_DIRECT; some in memory and in user space do not."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
    except OSError:
        return False
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
    return True
