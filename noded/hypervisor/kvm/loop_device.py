"""A block device over a file, gone by itself when the last has closed it.

It is locked as long as it is there. udev leaves alone what is locked, and would look else for file
systems and parts of arrays in what a guest has written. Source: loop(4), linux/loop.h, udev(7),
systemd's "Locking Block Device Access".
"""

import errno
import fcntl
import os
import struct
import time
from pathlib import Path

from common.errors import NodeFailure

_CONTROL = "/dev/loop-control"
_CTL_GET_FREE, _CONFIGURE = 0x4C82, 0x4C0A
_AUTOCLEAR = 4
# struct loop_config: the file, its block size; of struct loop_info64 only the flags; reserved.
_CONFIG = struct.Struct("=II 52xI 176x 64x")
_TRIES = 100
_BETWEEN_TRIES_S = 0.01  # udev may still look at what the device was before


def open_loop(file: int) -> int:
    """Return a descriptor of a new block device over an open file; it is the caller's.

    It waits, if need be, and blocks its thread so long.

    Raises:
        NodeFailure: this node has none left.
    """
    config = _CONFIG.pack(file, 0, _AUTOCLEAR)
    control = os.open(_CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_TRIES):
            number = fcntl.ioctl(control, _CTL_GET_FREE)
            device = os.open(Path("/dev") / f"loop{number}", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(device, fcntl.LOCK_EX | fcntl.LOCK_NB)  # before udev hears of it
                fcntl.ioctl(device, _CONFIGURE, config)
            except OSError as error:
                os.close(device)
                if error.errno not in (errno.EBUSY, errno.EWOULDBLOCK):  # somebody was quicker
                    raise
                time.sleep(_BETWEEN_TRIES_S)  # noqa: TID251 -- it is called in a thread
            else:
                return device
    finally:
        os.close(control)
    raise NodeFailure("This node has no free loop device.")
