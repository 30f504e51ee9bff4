"""What disks have read and written, from the kernel's counters; pure."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from common.errors import NodeFailure

SECTOR = 512  # bytes, whatever the disk has

# Devices that stand for others, or for files and memory, and that guests have one of each.
_STAND_INS = re.compile(r"(?:loop|ram|zram|dm-|drbd|nbd|fd|sr)[0-9]")


class Disk(NamedTuple):
    """Counters of a device since boot; sectors are of 512 bytes, times in ms."""

    major: int
    minor: int
    name: str
    reads: int
    reads_merged: int
    sectors_read: int
    read_ms: int
    writes: int
    writes_merged: int
    sectors_written: int
    write_ms: int
    under_way: int
    busy_ms: int
    weighted_ms: int


def parse_diskstats(text: str) -> tuple[Disk, ...]:
    """Read ``/proc/diskstats``; columns that later kernels have besides are left out.

    Raises:
        NodeFailure: it is not understood.

    Source: Documentation/admin-guide/iostats.rst of Linux 6.1.
    """
    return tuple(_disk(line) for line in text.splitlines() if line.strip())


def _disk(line: str) -> Disk:
    try:
        major, minor, name, *counters = line.split()
        return Disk(int(major), int(minor), name, *map(int, counters[:11]))
    except (ValueError, TypeError) as error:
        raise NodeFailure(f"Cannot understand /proc/diskstats: {line[:200]!r}.") from error


def own_disks(disks: Sequence[Disk]) -> Iterator[Disk]:
    """Yield whole disks of the machine: as many as it has, however many guests there are."""
    names = {disk.name for disk in disks}
    for disk in disks:
        # A partition has its disk's name and a number: sda1, nvme0n1p1.
        stem = disk.name.rstrip("0123456789")
        is_part = stem != disk.name and not names.isdisjoint({stem, stem.removesuffix("p")})
        if not is_part and not _STAND_INS.match(disk.name):
            yield disk
