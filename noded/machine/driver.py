"""The machine a node runs on: memory, processors, load."""

from pathlib import Path
from typing import NamedTuple, Protocol

from noded.durable_file import explaining
from noded.machine.parse import (
    Memory,
    Processors,
    parse_cpuinfo,
    parse_loadavg,
    parse_meminfo,
)


class MachineReport(NamedTuple):
    """A machine as it is now."""

    boot_id: str
    memory: Memory
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

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """Look up what never changes.

        Args:
            proc: where the kernel tells.

        Raises:
            NodeFailure: ``/proc`` is not there.
        """
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
            boot_id=self._boot_id,
            memory=memory,
            processors=self._processors,
            memory_nodes=self._memory_nodes,
            load=load,
        )
