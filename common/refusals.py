"""Says in the log who was turned away, in a few lines however many they were."""

import asyncio
import logging
from collections import Counter

SPAN_S = 10.0
MOST_SOURCES = 1000  # remembered in one span

log = logging.getLogger(__name__)


class Refusals:
    """Logs the first refusal in each span of time at once, and sums up the others at its end."""

    def __init__(self) -> None:
        self._others: Counter[str] | None = None  # by source; None between spans
        self._end: asyncio.TimerHandle | None = None

    def add(self, source: str, reason: str) -> None:
        """Note that a connection from ``source`` was refused."""
        if self._others is None:
            log.info("A connection from %s was refused: %s.", source, reason)
            self._others = Counter()
            self._end = asyncio.get_running_loop().call_later(SPAN_S, self._sum_up)
        elif source in self._others or len(self._others) < MOST_SOURCES:
            self._others[source] += 1
        else:
            self._others["others"] += 1

    def close(self) -> None:
        """Say what is left to say."""
        if self._end:
            self._end.cancel()
            self._sum_up()

    def _sum_up(self) -> None:
        others, self._others, self._end = self._others, None, None
        if others:
            [(source, most)] = others.most_common(1)
            log.info(
                "%d more connections were refused within %g seconds, %d of them from %s.",
                others.total(),
                SPAN_S,
                most,
                source,
            )
