"""Disks of a script that is not trusted: block devices that stay what they are while it runs.

A disk that is a file is one behind a loop device, and whoever can write to such a device can unbind
it, without any right. As long as another process has it open, it stays bound all the same, and its
number is not given to the next disk, which the script would then have.
"""

import fcntl
import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

_LOOP_CLR_FD = 0x4C01  # linux/loop.h; unbinds it when the last has closed it


class Held:
    """Devices of disks, open until the process ends that has made this."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Hold those of the disks at ``paths``."""
        self._loops = list[int]()
        self.devices = tuple(map(self._hold, paths))

    def let_go(self) -> None:
        """Have the loop devices unbound when this process ends; no script runs any more.

        Raises:
            OSError: what was written is not on the disk, and now never will be.
        """
        for descriptor in self._loops:
            os.fsync(descriptor)  # what is unbound writes no more
            fcntl.ioctl(descriptor, _LOOP_CLR_FD)

    def _hold(self, path: str) -> str:
        is_device = stat.S_ISBLK(Path(path).stat().st_mode)
        device = path if is_device else _loop_of(path)
        descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
        if not is_device:
            self._loops.append(descriptor)
        return device


def _loop_of(path: str) -> str:
    made = ("losetup", "--find", "--show", path)
    done = subprocess.run(made, stdout=subprocess.PIPE, check=True, text=True)  # noqa: TID251 -- its process has no loop
    return done.stdout.strip()
