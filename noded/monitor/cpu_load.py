"""How busy the processors were in the last minutes, from the kernel's counters; pure."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import NodeFailure

WINDOW_S = 600.0  # of the average, as Ganeti's agent has it

# The columns of a line, from proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
# Guests' time comes after them, and is part of user and nice already.
_BUSY = (0, 1, 2, 5, 6, 7)
_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Load:
    """Processors kept busy on average: 1.5 is one and a half.

    Attributes:
        total: by all processors together.
        each: by one processor, from 0 to 1; in the kernel's order.
    """

    total: float = 0.0
    each: tuple[float, ...] = ()


def parse_stat(text: str) -> tuple[int, ...]:
    """Read ``/proc/stat``.

    Returns:
        Ticks since boot in which something ran: of all processors together, then of each.

    Raises:
        NodeFailure: it is not understood.

    Source: proc(5), Linux 6.1.
    """
    lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    try:
        ticks = [[int(word) for word in words[1 : _COLUMNS + 1]] for words in lines]
        busy = tuple(sum(columns[at] for at in _BUSY) for columns in ticks)
    except (ValueError, IndexError) as error:
        raise NodeFailure(f"Cannot understand /proc/stat: {text[:200]!r}.") from error
    if not busy or lines[0][0] != "cpu":
        raise NodeFailure(f"/proc/stat tells of no processors: {text[:200]!r}.")
    return busy


class Samples:
    """What was read within the window; its ends make the average."""

    def __init__(self, ticks_per_s: int) -> None:
        """Count in the kernel's ticks (``sysconf(_SC_CLK_TCK)``)."""
        self._ticks_per_s = ticks_per_s
        self._taken: deque[tuple[float, tuple[int, ...]]] = deque()

    def add(self, at_s: float, busy: tuple[int, ...]) -> None:
        """Keep what was read at a time that never goes back, in seconds."""
        if self._taken and len(self._taken[-1][1]) != len(busy):
            self._taken.clear()  # processors came or went: nothing can be compared
        self._taken.append((at_s, busy))
        while self._taken[0][0] < at_s - WINDOW_S:
            self._taken.popleft()

    def average(self) -> Load:
        """Return the load within the window; nothing before there are two samples."""
        if len(self._taken) < 2:
            return Load()
        (begin, before), (end, after) = self._taken[0], self._taken[-1]
        ticks = (end - begin) * self._ticks_per_s
        total, *each = _ratios(before, after, ticks)
        return Load(total, tuple(each))


def _ratios(before: Sequence[int], after: Sequence[int], ticks: float) -> list[float]:
    # A processor's counters may go back a little (proc(5)); nothing is less than idle.
    return [max(0, new - old) / ticks for old, new in zip(before, after, strict=True)]
