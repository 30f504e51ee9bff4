"""Keep all of noded in RAM, so that it still answers when the system disk is gone.

The lock covers this process only: it is inherited neither by guests nor by programs we start.
"""

import ctypes
import errno
import logging
import os
import resource
import threading
from pathlib import Path

from common.units import format_mib

MCL_CURRENT, MCL_FUTURE = 1, 2  # sys/mman.h
# Not MCL_ONFAULT: a page of code that was never used yet must not be looked for on a dead disk.

M_ARENA_MAX, M_MMAP_THRESHOLD = -8, -3  # malloc.h
LARGE_BYTES = 128 << 10
NEEDED_BYTES = 128 << 20  # with a margin: beyond the limit, the next allocation kills us
THREAD_STACK_BYTES = 256 << 10  # the usual 8 MiB for each thread would be locked as a whole

log = logging.getLogger(__name__)


def prepare_memory() -> None:
    """Keep small what is going to be locked, by 6 MiB.

    To be called before the first thread starts, and before aiohttp is imported.
    """
    threading.stack_size(THREAD_STACK_BYTES)
    # aiohttp reads all public authorities when it is imported; noded trusts its cluster's only.
    os.environ["SSL_CERT_FILE"] = os.environ["SSL_CERT_DIR"] = os.devnull
    # The compiled form is written in C++, whose library would be locked as well.
    os.environ["FROZENLIST_NO_EXTENSIONS"] = "1"
    libc = ctypes.CDLL(None)
    # Else malloc reserves 64 MiB for each thread, all of which would count as locked.
    libc.mallopt(M_ARENA_MAX, 1)
    # Else malloc learns to keep the large buffers of TLS connections that have been closed.
    libc.mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


def lock_memory() -> bool:
    """Lock all present and future memory; warn where the system forbids it, and go on."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if not _may_exceed_limits() and soft != resource.RLIM_INFINITY and soft < NEEDED_BYTES:
        # The call itself might succeed now, and a later allocation would then fail.
        _warn(f"the limit of locked memory is {format_mib(soft / (1 << 20))}")
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MCL_CURRENT | MCL_FUTURE) != 0:
        _warn(os.strerror(ctypes.get_errno() or errno.EPERM))
        return False
    return True


def _warn(reason: str) -> None:
    log.warning(
        "The memory of noded is not locked (%s). When the system disk fails, this node may stop "
        "answering, also to powercycle. Start it as root with LimitMEMLOCK=infinity, or with "
        "“ulimit -l unlimited”.",
        reason,
    )


def _may_exceed_limits() -> bool:
    """Tell whether this process has CAP_IPC_LOCK, for which no limit holds."""
    capability = 14
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False
