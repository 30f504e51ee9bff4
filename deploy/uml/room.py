"""Is there room for a lab? A node that runs out of it dies in ways that explain nothing."""

import shutil
import tempfile
from pathlib import Path

from deploy.uml.command import Trouble
from deploy.uml.place import CACHE, MEMORY

IMAGE_MIB = 2500  # while it is made
DISK_MIB = 300  # that a node writes at least
MEMORY_MIB = 400  # that a node uses at least


def check_room_for_image() -> None:
    """Look whether an image can be made.

    Raises:
        Trouble: there is not enough room.
    """
    _check(CACHE, IMAGE_MIB, "making an image of a node's disk takes", "Make room there.")


def check_room_for_nodes(base: Path, count: int) -> None:
    """Look whether ``count`` nodes more can be powered on, of a lab in the directory ``base``.

    Raises:
        Trouble: there is not enough room for what they write, or for their memory.
    """
    what = f"{count} node{'s' if count > 1 else ''}"
    _check(
        base,
        count * DISK_MIB,
        f"what {what} will write takes",
        "Make room there, or let TMPDIR name another directory.",
    )
    _check(
        MEMORY,
        count * MEMORY_MIB,
        f"the memory of {what} takes",
        "A container can be given more (docker run --shm-size).",
    )
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) >> 10
    if free < count * MEMORY_MIB:
        raise Trouble(
            f"This machine has {free} MiB of memory left; {what} more take "
            f"{count * MEMORY_MIB} or more. Start fewer."
        )


def has_room(count: int) -> bool:
    """Tell whether ``count`` nodes have room where a new lab would be."""
    try:
        check_room_for_nodes(Path(tempfile.gettempdir()), count)
    except Trouble:
        return False
    return True


def _check(directory: Path, needed_mib: int, what: str, help: str) -> None:
    free = shutil.disk_usage(directory).free >> 20
    if free < needed_mib:
        raise Trouble(f"{directory} has {free} MiB free; {what} {needed_mib} or more. {help}")
