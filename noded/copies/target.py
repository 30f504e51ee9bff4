"""The disk that a copy fills, and how far it is filled."""

import os
from concurrent.futures import Future, ThreadPoolExecutor

from common.errors import NodeFailure
from noded.copies import chunks
from noded.copies.frames import Garbled
from noded.images.contents import Contents

MOST_BEYOND = 1 << 30  # bytes of zeros beyond a disk's end: volumes are rounded up to extents
SYNC_EVERY = 256  # chunks, so that the end does not wait for all to be written


class Sums:
    """The sums of the chunks that are on the disk, in their order, in a file that is only added to.

    They are noted once their chunks are written, so a process that is killed leaves none too many.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        size = os.fstat(descriptor).st_size // chunks.SUM_BYTES * chunks.SUM_BYTES
        text = os.pread(descriptor, size, 0)
        self.all = [text[at : at + chunks.SUM_BYTES] for at in range(0, size, chunks.SUM_BYTES)]

    @property
    def whole(self) -> bytes:
        return chunks.sum_of_all(self.all)

    def add(self, sums: list[bytes]) -> None:
        os.pwrite(self._descriptor, b"".join(sums), len(self.all) * chunks.SUM_BYTES)
        self.all += sums

    def cut(self, count: int) -> None:
        """Forget all but the first ``count``."""
        os.ftruncate(self._descriptor, count * chunks.SUM_BYTES)
        del self.all[count:]


def verified(
    index: int, payload: bytes, expected: bytes, size: int | None, *, is_packed: bool
) -> bytes:
    """Return a chunk of what has ``size`` bytes; None: nobody knows how many.

    Raises:
        Garbled: it is not what was sent.
    """
    try:
        chunk = chunks.unpack(payload) if is_packed else payload
    except ValueError as error:
        raise Garbled(str(error)) from error
    is_as_long = bool(chunk) if size is None else len(chunk) == chunks.length_of(index, size)
    if not is_as_long or chunks.sum_of(chunk) != expected:
        raise Garbled(f"chunk {index} has arrived damaged")
    return chunk


class Target:
    """A disk of which chunks are written, each checked against its sum first."""

    def __init__(self, disk: Contents, path: str, source_size: int) -> None:
        """Fill a disk with ``source_size`` bytes; what it has beyond becomes zeros.

        Raises:
            NodeFailure: that is larger by far than the disk, whatever may be on it.
        """
        if source_size > disk.size + MOST_BEYOND:
            raise NodeFailure(
                f"The disk {path} has {disk.size} bytes, and the one that is copied is said to "
                f"have {source_size}; make it larger.",
                path=path,
            )
        self._disk, self._path, self._source_size = disk, path, source_size
        self._size = disk.size
        self._syncing = ThreadPoolExecutor(1)
        self._sync: Future[None] | None = None
        self._unsynced = 0

    def close(self) -> None:
        self._syncing.shutdown()

    def write(self, index: int, payload: bytes, expected: bytes, *, is_packed: bool) -> list[bytes]:
        """Write one chunk; return its sum.

        Raises:
            Garbled: it is not what was sent.
            NodeFailure: the disk does not take it, or has no room for it.
        """
        chunk = verified(index, payload, expected, self._source_size, is_packed=is_packed)
        offset = index * chunks.CHUNK
        room = max(0, min(len(chunk), self._size - offset))
        if not chunks.is_zero(chunk[room:]):
            raise NodeFailure(
                f"The disk {self._path} has {self._size} bytes, and there is data beyond that on "
                f"the one that is copied, of {self._source_size} bytes; make it larger.",
                path=self._path,
            )
        try:
            self._disk.write(chunk[:room], offset)
        except OSError as error:
            raise self._explained(error) from error
        return [expected]

    def write_zeros(self, index: int, count: int) -> list[bytes]:
        """Have ``count`` chunks of zeros from ``index`` on; return their sums."""
        end = min((index + count) * chunks.CHUNK, self._source_size)
        self._zero(index * chunks.CHUNK, end)
        sums = [chunks.ZERO_SUM] * count
        last = chunks.length_of(index + count - 1, self._source_size)
        return sums if last == chunks.CHUNK else [*sums[:-1], chunks.sum_of(bytes(last))]

    def sync_some(self, written: int) -> None:
        """Have what is written so far reach the disk beside the rest, once it is enough."""
        self._unsynced += written
        if self._unsynced >= SYNC_EVERY:
            self._unsynced = 0
            self._wait_for_sync()
            self._sync = self._syncing.submit(self._disk.sync)

    def finish(self) -> None:
        """Return when all is durable."""
        self._zero(self._source_size, self._size)
        self._wait_for_sync()
        try:
            self._disk.sync()
        except OSError as error:
            raise self._explained(error) from error

    def _wait_for_sync(self) -> None:
        try:
            if self._sync:
                self._sync.result()
        except OSError as error:
            raise self._explained(error) from error

    def _zero(self, begin: int, end: int) -> None:
        end = min(end, self._size)
        try:
            for offset in range(begin, end, chunks.CHUNK):
                self._disk.write_zeros(min(chunks.CHUNK, end - offset), offset)
        except OSError as error:
            raise self._explained(error) from error

    def _explained(self, error: OSError) -> NodeFailure:
        reason = error.strerror or str(error)
        return NodeFailure(f"The disk {self._path} cannot be written: {reason}.", path=self._path)
