"""What the agent tells Prometheus of its node; pure.

As many figures as the machine has disks, however many guests run on it.
"""

from collections import Counter
from collections.abc import Iterator

from common.exposition import Family, Figures, Kind, single
from common.version import VERSION
from noded.monitor.disk_statistics import SECTOR, Disk, own_disks
from noded.monitor.mirrors import Mirrors
from noded.monitor.sight import Sight

_DEVICE = ("device",)
# fmt: off
_INFO = Family("gantry_monitor_info", Kind.GAUGE, "Always 1; the version of the agent.",
               ("version",))
_CPUS = Family("gantry_node_processors", Kind.GAUGE, "Processors.")
_BUSY = Family("gantry_node_processors_busy", Kind.GAUGE,
               "Processors kept busy, on average of the last ten minutes.")
_WAITING = Family("gantry_node_load", Kind.GAUGE,
                  "Tasks that run or wait for a processor or a disk, on average.", ("minutes",))
_MEMORY = Family("gantry_node_memory_bytes", Kind.GAUGE,
                 "Memory, by the kernel's words: MemTotal, MemAvailable, …", ("kind",))
_READS = Family("gantry_node_disk_reads_total", Kind.COUNTER, "Reads of a disk.", _DEVICE)
_READ = Family("gantry_node_disk_read_bytes_total", Kind.COUNTER, "Bytes read.", _DEVICE)
_WRITES = Family("gantry_node_disk_writes_total", Kind.COUNTER, "Writes to a disk.", _DEVICE)
_WRITTEN = Family("gantry_node_disk_written_bytes_total", Kind.COUNTER, "Bytes written.", _DEVICE)
_BUSY_DISK = Family("gantry_node_disk_busy_seconds_total", Kind.COUNTER,
                    "Time in which anything was under way on a disk.", _DEVICE)
_MIRRORS = Family("gantry_node_drbd_devices", Kind.GAUGE,
                  "DRBD devices, by the state of their connection and of the copy on this node.",
                  ("connection", "disk"))
_BEHIND = Family("gantry_node_drbd_out_of_sync_bytes", Kind.GAUGE,
                 "What DRBD devices have on one side alone, of all of them together.")
_RESYNC = Family("gantry_node_drbd_resync_bytes", Kind.GAUGE,
                 "What the resyncs under way copy from their beginning to their end, all together.")
_RESYNC_LEFT = Family("gantry_node_drbd_resync_left_bytes", Kind.GAUGE,
                      "What the resyncs under way have still to copy, all together.")
# fmt: on
_MEMORY_KINDS = (
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapTotal",
    "SwapFree",
    "Dirty",
)  # fmt: skip


def node_figures(sight: Sight) -> Iterator[Figures]:
    """Yield all figures of a node; what could not be read has none."""
    load = sight.load
    yield _INFO, {(VERSION,): 1}
    yield single(_CPUS, len(load.each) or None)
    yield single(_BUSY, load.total if load.each else None)
    waiting = zip(("1", "5", "15"), sight.waiting, strict=True) if sight.waiting else ()
    yield _WAITING, {(minutes,): tasks for minutes, tasks in waiting}
    memory = sight.memory or {}
    yield _MEMORY, {(kind,): memory[kind] for kind in _MEMORY_KINDS if kind in memory}
    yield from _of_disks(list(own_disks(sight.disks or ())))
    yield from _of_mirrors(sight.mirrors)


def _of_disks(disks: list[Disk]) -> Iterator[Figures]:
    yield _READS, {(disk.name,): disk.reads for disk in disks}
    yield _READ, {(disk.name,): disk.sectors_read * SECTOR for disk in disks}
    yield _WRITES, {(disk.name,): disk.writes for disk in disks}
    yield _WRITTEN, {(disk.name,): disk.sectors_written * SECTOR for disk in disks}
    yield _BUSY_DISK, {(disk.name,): disk.busy_ms / 1000 for disk in disks}


def _of_mirrors(mirrors: Mirrors | None) -> Iterator[Figures]:
    devices = [each for each in mirrors.devices if each.is_configured] if mirrors else []
    states: Counter[tuple[str, ...]] = Counter((one.connection, one.disks[0]) for one in devices)
    yield _MIRRORS, states
    behind_kib = sum(each.counters.get("oos", 0) for each in devices)
    yield single(_BEHIND, behind_kib * 1024 if mirrors else None)
    resyncs = [each.sync for each in devices if each.sync]
    yield single(_RESYNC, sum(each.whole_bytes for each in resyncs) if mirrors else None)
    yield single(_RESYNC_LEFT, sum(each.rest_bytes for each in resyncs) if mirrors else None)
