"""What a script that was killed has left on top of disks: loop devices, mappings of partitions.

These are the kernel's, and no end of a process ends them; a disk cannot be let go of below them.
"""

import logging
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.errors import NodeFailure
from noded.system.execute import execute

SYSFS = Path("/sys")
LIMIT_S = 10.0

log = logging.getLogger(__name__)


def layers_on(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the devices on top of disks, by path, those on top of others first."""
    return tuple(dict.fromkeys(device for path in paths for device in _on(path)))


async def release(paths: Sequence[str], before: Sequence[str]) -> None:
    """Take away what is on top of disks, but for what was there before."""
    for device in layers_on(paths):
        if device in before:
            continue
        loop = device.startswith("/dev/loop")
        argv = ("losetup", "--detach", device) if loop else ("dmsetup", "remove", device)
        try:
            await execute(*argv, timeout_s=LIMIT_S)
        except NodeFailure as error:
            log.warning("a script has left %s, which cannot be taken away: %s", device, error)
        else:
            log.info("took away %s, which a script had left", device)


def _on(path: str) -> Iterator[str]:
    try:
        found = Path(path).stat()
    except OSError:
        return
    if stat.S_ISBLK(found.st_mode):
        number = f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
        yield from _holders(SYSFS / "dev/block" / number)
        return
    for loop in sorted((SYSFS / "block").glob("loop*")):
        if _text(loop / "loop/backing_file") == path:
            yield from _holders(loop)
            yield f"/dev/{loop.name}"


def _holders(device: Path) -> Iterator[str]:
    """Yield the mappings on top of a device and of its partitions."""
    for place in (device, *device.glob("*/partition")):
        whole = place if place == device else place.parent
        for holder in sorted((whole / "holders").glob("dm-*")):
            yield from _holders(SYSFS / "block" / holder.name)
            yield f"/dev/mapper/{_text(SYSFS / 'block' / holder.name / 'dm/name')}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
