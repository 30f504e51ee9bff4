"""Which commits a replica keeps: the newest ones, as many as there is room for."""

from collections import deque
from collections.abc import Iterable
from itertools import chain, islice
from typing import NamedTuple

KEPT_COMMITS = 1000
KEPT_BYTES = 16 * 2**20  # of commits


class Size(NamedTuple):
    """Of a commit."""

    serial: int
    bytes: int


class KeptCommits:
    """The sizes of the commits that are kept, oldest first."""

    def __init__(self, sizes: Iterable[Size] = ()) -> None:
        self._sizes = deque(sizes)
        self._bytes = sum(size.bytes for size in self._sizes)

    def dropped_for(self, new: list[Size]) -> int:
        """Return up to which serial commits have to go when ``new`` ones come; 0 for none."""
        count = len(self._sizes) + len(new)
        total = self._bytes + sum(size.bytes for size in new)
        dropped = 0
        for serial, size in islice(chain(self._sizes, new), count - 1):  # the newest one stays
            if count <= KEPT_COMMITS and total <= KEPT_BYTES:
                break
            dropped, count, total = serial, count - 1, total - size
        return dropped

    def replace(self, dropped: int, new: list[Size]) -> None:
        """Keep ``new`` commits, and none up to ``dropped`` any more."""
        self._sizes.extend(new)
        self._bytes += sum(size.bytes for size in new)
        while self._sizes and self._sizes[0].serial <= dropped:
            self._bytes -= self._sizes.popleft().bytes
