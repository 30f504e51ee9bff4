"""What this process itself uses, under the names that all programs have for it."""

import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from common.exposition import Family, Figures, Kind, single

_CPU = Family("process_cpu_seconds_total", Kind.COUNTER, "Time of processors used.")
_MEMORY = Family("process_resident_memory_bytes", Kind.GAUGE, "Memory in use.")


def process_figures() -> Iterator[Figures]:
    """Look at this process; what cannot be read is left out."""
    pages = None
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    yield single(_CPU, time.process_time())
    yield single(_MEMORY, None if pages is None else pages * resource.getpagesize())
