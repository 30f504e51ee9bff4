"""The machine a node runs on: memory, processors, load."""

import os
from pathlib import Path
from typing import NamedTuple, Protocol

from common.names import MiB
from noded.durable_file import explaining
from noded.machine.parse import (
    Memory,
    Processors,
    parse_cpuinfo,
    parse_loadavg,
    parse_meminfo,
    parse_statm,
)


class MachineReport(NamedTuple):
    """A machine as it is now; ``guests_resident`` is the memory its guests have touched."""

    boot_id: str
    memory: Memory
    guests_resident: MiB
    processors: Processors
    memory_nodes: int  # NUMA
    load: float


class Machine(Protocol):
    """Reports on a machine."""

    def look(self) -> MachineReport:
        """Return its present state; quick, and without reading from any disk.

        Raises:
            NodeFailure: the kernel's answer cannot be understood.
        """


class LinuxMachine(Machine):
    """Asks the kernel through ``/proc``."""

    def __init__(self, instances: Path, *, proc: Path = Path("/proc")) -> None:
        """Look up what never changes.

        Args:
            instances: one directory a guest, with the number of its process in ``pid``.
            proc: where the kernel tells.

        Raises:
            NodeFailure: ``/proc`` is not there.
        """
        self._instances = instances
        self._proc = proc
        with explaining(f"read {proc}"):
            self._boot_id = (proc / "sys/kernel/random/boot_id").read_text().strip()
            self._processors = parse_cpuinfo((proc / "cpuinfo").read_text())
        nodes = sum(1 for _ in Path("/sys/devices/system/node").glob("node[0-9]*"))
        self._memory_nodes = max(1, nodes)

    def look(self) -> MachineReport:
        with explaining(f"read {self._proc}"):
            memory = parse_meminfo((self._proc / "meminfo").read_text())
            load = parse_loadavg((self._proc / "loadavg").read_text())
        return MachineReport(
            boot_id=self._boot_id, memory=memory, guests_resident=self._guests_resident(),
            processors=self._processors, memory_nodes=self._memory_nodes, load=load,
        )  # fmt: skip

    def _guests_resident(self) -> MiB:
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        total = 0
        for file in self._instances.glob("*/pid"):
            try:
                number = int(file.read_text())
                total += parse_statm((self._proc / str(number) / "statm").read_text(), page_bytes)
            except (OSError, ValueError):
                continue  # it has just ended, or just begun
        return MiB(total)
