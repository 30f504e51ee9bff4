"""Not more than so many bytes a second."""

import time
from collections.abc import Callable

MIB = 1 << 20


class Throttle:
    """Holds up who sends faster than agreed; what was not sent earlier is not made up for."""

    def __init__(
        self,
        mib_per_s: int,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,  # noqa: TID251 -- its process has no loop
    ) -> None:
        """Let ``mib_per_s`` pass; 0: all."""
        self._bytes_per_s = mib_per_s * MIB
        self._now, self._sleep = now, sleep
        self._free_at = 0.0  # when all that has passed was due

    def passed(self, size: int) -> None:
        """Wait until ``size`` more bytes, which have been sent, were due."""
        if not self._bytes_per_s:
            return
        now = self._now()
        self._free_at = max(now, self._free_at) + size / self._bytes_per_s
        if self._free_at > now:
            self._sleep(self._free_at - now)
