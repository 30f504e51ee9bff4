"""The logical volumes of a node, as LVM has written them down for us.

Whoever asks LVM needs rights over all disks, and the agent has none. So a unit of systemd's asks
it now and then (``gantry-volumes``), and leaves what it said in a file that anybody may read.
"""

import time
from pathlib import Path
from typing import Any

import msgspec

from common.errors import NodeFailure

FILE = Path("/run/gantry/volumes.json")
OLDEST_S = 300.0  # what is older tells nothing of how the node is now
FIELDS = (
    "lv_uuid", "lv_name", "lv_attr", "lv_major", "lv_minor", "lv_kernel_major",
    "lv_kernel_minor", "lv_size", "seg_count", "lv_tags", "lv_modules", "vg_uuid", "vg_name",
    "segtype", "seg_start", "seg_start_pe", "seg_size", "seg_tags", "seg_pe_ranges", "devices",
)  # fmt: skip
_NUMBERS = frozenset({
    "lv_major", "lv_minor", "lv_kernel_major", "lv_kernel_minor", "lv_size", "seg_count",
    "seg_start", "seg_start_pe", "seg_size",
})  # fmt: skip

Volume = dict[str, str | int]


def parse_volumes(text: bytes) -> tuple[Volume, ...]:
    """Read what ``lvs`` reports of ``FIELDS``: one entry for each segment, sizes in bytes.

    Raises:
        NodeFailure: it is not understood, or not whole.

    Source: lvmreport(7), LVM2 2.03.16; sample in tests/unit/noded/monitor.
    """
    try:
        reports = msgspec.json.decode(text)["report"]
        return tuple(_volume(row) for report in reports for row in report["lv"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise NodeFailure(f"Cannot understand what LVM has reported: {text[:200]!r}.") from error


def _volume(row: dict[str, Any]) -> Volume:
    return {
        name.removeprefix("lv_"): _number(row[name]) if name in _NUMBERS else str(row[name])
        for name in FIELDS
    }


def _number(text: str) -> int:
    return int(text) if text else 0  # a thin volume's segment begins nowhere


class VolumeFile:
    """The file, read again when it has changed; while it is being written, as it was before."""

    def __init__(self, path: Path = FILE) -> None:
        self._path = path
        self._read_at: tuple[int, int] | None = None  # its stamp and size
        self._volumes: tuple[Volume, ...] = ()
        self._told_at = 0.0  # when the file was written that these are of, seconds since 1970

    def read(self) -> tuple[Volume, ...] | None:
        """Return the volumes; None if nobody has written them down lately."""
        try:
            found = self._path.stat()
            if (stamp := (found.st_mtime_ns, found.st_size)) != self._read_at:
                self._volumes = parse_volumes(self._path.read_bytes())
                self._read_at, self._told_at = stamp, found.st_mtime
        except OSError:
            return None
        except NodeFailure:
            pass  # it is being written, or LVM has failed: what it told before is good for a while
        return self._volumes if time.time() - self._told_at <= OLDEST_S else None
