"""What the kernel tells of a machine, from text; pure."""

from collections.abc import Iterable
from typing import NamedTuple

from common.errors import NodeFailure
from common.names import MiB

KIB_PER_MIB = 1024


class Memory(NamedTuple):
    """``available`` is what could be used without swapping: free, and caches."""

    total: MiB
    available: MiB


class Processors(NamedTuple):
    cpus: int
    sockets: int


def parse_meminfo(text: str) -> Memory:
    """Read ``/proc/meminfo``.

    Raises:
        NodeFailure: a field is missing.

    Source: proc(5), Linux 6.1.
    """
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    try:
        return Memory(
            total=MiB(int(fields["MemTotal"].split()[0]) // KIB_PER_MIB),
            available=MiB(int(fields["MemAvailable"].split()[0]) // KIB_PER_MIB),
        )
    except (KeyError, ValueError, IndexError) as error:
        raise NodeFailure(f"Cannot understand /proc/meminfo: {text[:200]!r}.") from error


def parse_cpuinfo(text: str) -> Processors:
    """Read ``/proc/cpuinfo``; where it names no sockets, as on ARM, there is one.

    Source: proc(5), Linux 6.1.
    """
    lines = [tuple(part.strip() for part in line.split(":", 1)) for line in text.splitlines()]
    cpus = sum(line[0] == "processor" for line in lines)
    sockets = {line[1] for line in lines if line[0] == "physical id"}
    return Processors(cpus=max(1, cpus), sockets=max(1, len(sockets)))


def parse_loadavg(text: str) -> float:
    """Read the one-minute average of ``/proc/loadavg``.

    Raises:
        NodeFailure: it is not there.
    """
    try:
        return float(text.split()[0])
    except (IndexError, ValueError) as error:
        raise NodeFailure(f"Cannot understand /proc/loadavg: {text[:200]!r}.") from error


def parse_statm(text: str, page_bytes: int) -> MiB:
    """Read the resident memory of a process from its ``/proc/PID/statm``; 0 for an odd text."""
    fields = text.split()
    pages = int(fields[1]) if len(fields) > 1 and fields[1].isdecimal() else 0
    return MiB(pages * page_bytes >> 20)


def split_memory(memory: Memory, *, given: Iterable[MiB], resident: MiB) -> tuple[MiB, MiB]:
    """Return what is free for further guests, and what the node itself uses.

    A guest touches its memory little by little; what it was given and has not touched yet
    looks free to the kernel, but is not.

    Args:
        memory: of the machine.
        given: what each guest was promised.
        resident: what all guests together have touched.
    """
    own = max(0, memory.total - memory.available - resident)
    return MiB(max(0, memory.total - own - sum(given))), MiB(own)
