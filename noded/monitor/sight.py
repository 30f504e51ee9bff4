"""What the agent sees of its node at one time: what anybody may read, mostly below ``/proc``."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from common.errors import NodeFailure
from noded.monitor.cpu_load import Load
from noded.monitor.disk_statistics import Disk, parse_diskstats
from noded.monitor.mirrors import Mirrors, parse_drbd
from noded.monitor.volumes import Volume, VolumeFile

T = TypeVar("T")

_SIZE = re.compile(r"^(\S+): +([0-9]+) kB$", re.MULTILINE)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sight:
    """None stands for what could not be read.

    Attributes:
        load: of the processors, in the last minutes.
        waiting: for a processor or a disk, on average of 1, 5 and 15 minutes.
        memory: in bytes, by the kernel's names.
        disks: all block devices.
        mirrors: what DRBD tells.
        volumes: the segments of logical volumes.
    """

    load: Load = Load()
    waiting: tuple[float, ...] | None = None
    memory: Mapping[str, int] | None = None
    disks: tuple[Disk, ...] | None = None
    mirrors: Mirrors | None = None
    volumes: tuple[Volume, ...] | None = None


class Eyes:
    """Reads files that may be there; names once what it does not understand."""

    def __init__(self, proc: Path, volumes: VolumeFile) -> None:
        self._proc, self._volumes = proc, volumes
        self._named: set[str] = set()

    def look(self, load: Load) -> Sight:
        """Look at everything but the processors, whose ``load`` is told."""
        return Sight(
            load,
            waiting=self._read("loadavg", parse_loadavg),
            memory=self._read("meminfo", parse_meminfo),
            disks=self._read("diskstats", parse_diskstats),
            mirrors=self._read("drbd", parse_drbd),
            volumes=self._volumes.read(),
        )

    def _read(self, name: str, parse: Callable[[str], T]) -> T | None:
        try:
            return parse((self._proc / name).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return None
        except NodeFailure as error:
            if name not in self._named:
                self._named.add(name)
                log.warning("%s It is not told of.", error.message)
            return None


def parse_loadavg(text: str) -> tuple[float, ...]:
    """Read ``/proc/loadavg``: how many were ready to run in the last 1, 5 and 15 minutes.

    Raises:
        NodeFailure: it is not understood.
    """
    try:
        one, five, fifteen, *_ = text.split()
        return float(one), float(five), float(fifteen)
    except ValueError as error:
        raise NodeFailure(f"Cannot understand /proc/loadavg: {text[:200]!r}.") from error


def parse_meminfo(text: str) -> dict[str, int]:
    """Read ``/proc/meminfo``; sizes in bytes, what is no size is left out.

    Raises:
        NodeFailure: it is not understood.
    """
    sizes = {name: int(size) * 1024 for name, size in _SIZE.findall(text)}
    if "MemTotal" not in sizes:
        raise NodeFailure(f"Cannot understand /proc/meminfo: {text[:200]!r}.")
    return sizes
