"""Questions that were asked before: whoever sends them again need not have the key."""

from heapq import heappop, heappush

from coordinator.confd.envelope import MOST_SKEW_S, Asked

MOST = 65_536  # questions that are remembered


class Replays:
    """Remembers questions for as long as their time would let them in again.

    When there are too many, the oldest are forgotten, and with them all of their time or before
    is refused: whoever asks now is let in, and nobody twice.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._by_time: list[tuple[int, bytes]] = []
        self._seals: set[bytes] = set()
        self._closed_until = 0  # seconds since 1970

    def is_new(self, asked: Asked, now: float) -> bool:
        """Tell whether this is asked for the first time, and remember it."""
        if asked.time <= self._closed_until or asked.seal in self._seals:
            return False
        while self._by_time and self._by_time[0][0] < now - MOST_SKEW_S:
            self._forget_oldest()
        if len(self._by_time) >= self._most:
            self._closed_until = self._forget_oldest()
        if asked.time <= self._closed_until:
            return False
        heappush(self._by_time, (asked.time, asked.seal))
        self._seals.add(asked.seal)
        return True

    def _forget_oldest(self) -> int:
        time, seal = heappop(self._by_time)
        self._seals.discard(seal)
        return time
