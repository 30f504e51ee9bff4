"""The disk that is copied: read from its beginning to its end, some chunks ahead."""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from common.noderpc.copies import Compression
from noded.copies import chunks
from noded.copies.frames import Kind
from noded.images.contents import Contents

WORKERS = min(4, os.cpu_count() or 1)
AHEAD = 2 * WORKERS  # chunks that are read and packed while one is sent


class Unreadable(Exception):
    """The disk does not give its data; the text says why."""


class Chunk(NamedTuple):
    """One chunk, ready to be sent; zeros have no payload."""

    kind: Kind
    sum: bytes
    payload: bytes


class Source:
    """Reads a disk, and keeps the sums of what it has read."""

    def __init__(self, disk: Contents, compression: Compression) -> None:
        self._disk, self._compression = disk, compression
        self._sums: list[bytes] = []  # of all chunks that were read so far
        self.size = disk.size

    @property
    def sum(self) -> bytes:
        """The sum of the whole disk, when all of it has been read."""
        return chunks.sum_of_all(self._sums)

    def agreed(self, have: int, sum_of_these: str) -> int:
        """Return with which chunk to begin for one who has the first ``have`` of them.

        What was not read before, as this process is another one, is read now.

        Raises:
            Unreadable: see there.
        """
        if not 0 < have <= chunks.chunks_in(self.size):
            return 0
        for _ in self.read_from(len(self._sums), until=have):
            pass
        return have if chunks.sum_of_all(self._sums[:have]).hex() == sum_of_these else 0

    def read_from(self, begin: int, until: int | None = None) -> Iterator[Chunk]:
        """Yield chunks in their order.

        Raises:
            Unreadable: see there.
        """
        end = chunks.chunks_in(self.size) if until is None else until
        ahead: deque[Future[Chunk]] = deque()
        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                for index in range(begin, end):
                    ahead.append(pool.submit(self._read, index))
                    if len(ahead) > AHEAD:
                        yield self._noted(end_of=ahead, index=index - AHEAD)
                for index in range(end - len(ahead), end):
                    yield self._noted(end_of=ahead, index=index)
            finally:
                pool.shutdown(cancel_futures=True)

    def _noted(self, *, end_of: "deque[Future[Chunk]]", index: int) -> Chunk:
        chunk = end_of.popleft().result()
        del self._sums[index:]  # of a time before, if the one who fetches began anew
        self._sums.append(chunk.sum)
        return chunk

    def _read(self, index: int) -> Chunk:
        offset, length = index * chunks.CHUNK, chunks.length_of(index, self.size)
        try:
            if self._disk.next_data(offset, offset + length) == offset + length:
                data = bytes(length)
            else:
                data = self._disk.read(length, offset)
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from error
        if chunks.is_zero(data):
            kept = length == chunks.CHUNK
            return Chunk(Kind.ZEROS, chunks.ZERO_SUM if kept else chunks.sum_of(data), b"")
        packed = chunks.pack(data, self._compression)
        if packed is None:
            return Chunk(Kind.PLAIN, chunks.sum_of(data), data)
        return Chunk(Kind.PACKED, chunks.sum_of(data), packed)
