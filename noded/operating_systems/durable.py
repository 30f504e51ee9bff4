"""What a script has made of what came is on the disk before anybody hears that it is there."""

import os
from collections.abc import Iterable

FAILED = 1  # the status of a script whose work did not get to the disk


def make_durable(disks: Iterable[int], log: int) -> int:
    """Return the status of a script that has ended well: what it wrote is on the disks, or said.

    Args:
        disks: descriptors of those that it has written to.
        log: that of the file for its output.
    """
    try:
        for disk in disks:
            os.fsync(disk)
    except OSError as error:
        os.write(log, f"What it wrote does not get to the disk: {error.strerror}.\n".encode())
        return FAILED
    return 0
