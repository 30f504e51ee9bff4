"""Watch a guest count: it writes a number a line to its serial console, wherever it runs."""

import itertools
import re
import threading
import time
from pathlib import Path

_NUMBER = re.compile(rb"count[ =](\d+)")
POLL_S = 0.01


class Counter:
    """Follows the serial logs of one instance on all nodes, from a thread of its own."""

    def __init__(self, logs: list[Path]) -> None:
        """Watch ``logs``; they need not exist yet."""
        self._logs = logs
        self._seen: dict[Path, int] = {}
        self._arrivals: list[tuple[float, int]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    @property
    def last(self) -> int:
        return self._arrivals[-1][1] if self._arrivals else 0

    def gap_since(self, start: float) -> float:
        """Return the longest time without a new number since ``start``, up to now, in s."""
        times = [start, *(at for at, _ in self._arrivals if at >= start), time.monotonic()]
        return max(later - earlier for earlier, later in itertools.pairwise(times))

    def went_on(self) -> bool:
        """Tell whether the numbers never went back: the guest was never started anew."""
        numbers = [number for _, number in self._arrivals]
        return bool(numbers) and numbers == sorted(numbers)

    def _follow(self) -> None:
        while not self._stopped.wait(POLL_S):
            for log in self._logs:
                self._read(log)

    def _read(self, log: Path) -> None:
        try:
            with log.open("rb") as file:
                file.seek(self._seen.get(log, 0))
                data = file.read()
        except OSError:
            self._seen.pop(log, None)  # the guest is gone from there
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._seen[log] = self._seen.get(log, 0) + len(whole)
        now = time.monotonic()
        self._arrivals += [(now, int(match[1])) for match in _NUMBER.finditer(whole)]
