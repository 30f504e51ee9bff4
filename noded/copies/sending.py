"""The side of a copy that reads a disk and sends what is on it."""

import os
import socket
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from common.errors import GntError
from common.noderpc.copies import Compression
from common.tls.context import server_context
from noded.copies import chunks
from noded.copies.device import next_data, read_exactly, size_of
from noded.copies.door import Door, Visit
from noded.copies.frames import NO_SUM, Frame, Garbled, Kind, Line, Verdict, Welcome
from noded.copies.orders import Sending
from noded.copies.throttle import Throttle

IDLE_S = 3600.0  # until an offer lapses that nobody makes use of
WORKERS = min(4, os.cpu_count() or 1)
AHEAD = 2 * WORKERS  # chunks that are read and packed while one is sent
SILENT_S = 1.0  # between two frames, where all is zeros
SYNC_S = 3600.0  # for the other side to make all durable


class Sender:
    """Sends a disk to whoever the door lets in, as often as it is asked for."""

    def __init__(self, order: Sending) -> None:
        """Load what needs rights that are given up afterwards."""
        self._order = order
        self._door = Door(
            socket.socket(fileno=order.listener),
            server_context(Path(order.identity)),
            order.peer,
            order.secret,
        )
        self._source = Source(order.disk, order.compression)

    def run(self) -> None:
        """Serve until nobody has come for an hour, or this process is killed."""
        self._door.open()
        while visit := self._door.wait(IDLE_S):
            # One that breaks off comes again, if it still wants.
            with closing(visit.line), suppress(OSError, EOFError, Garbled, GntError):
                self._serve(visit)
        self._door.close()

    def _serve(self, visit: Visit) -> None:
        line = visit.line
        try:
            begin = self._source.agreed(visit.hello.have, visit.hello.sum)
            line.say(Welcome(size=self._source.size, begin=begin))
            self._send_from(begin, line)
        except Unreadable as error:
            text = f"The disk {self._order.path} cannot be read: {error}.".encode()
            line.send(Frame(Kind.PROBLEM, 0, len(text), NO_SUM), text)
        line.wait_for(SYNC_S)
        line.hear(Verdict)

    def _send_from(self, begin: int, line: Line) -> None:
        throttle = Throttle(self._order.rate)
        zeros, sent_at = 0, time.monotonic()
        index = begin
        for index, chunk in enumerate(self._source.read_from(begin), begin):
            if chunk.kind is Kind.ZEROS:
                zeros += 1
            if zeros and (chunk.kind is not Kind.ZEROS or time.monotonic() - sent_at > SILENT_S):
                first = index + (chunk.kind is Kind.ZEROS) - zeros
                line.send(Frame(Kind.ZEROS, first, zeros, NO_SUM))
                zeros, sent_at = 0, time.monotonic()
            if chunk.kind is not Kind.ZEROS:
                frame = Frame(chunk.kind, index, len(chunk.payload), chunk.sum)
                throttle.passed(line.send(frame, chunk.payload))
                sent_at = time.monotonic()
        if zeros:
            line.send(Frame(Kind.ZEROS, index + 1 - zeros, zeros, NO_SUM))
        whole = self._source.sum
        line.send(Frame(Kind.END, chunks.chunks_in(self._source.size), len(whole), NO_SUM), whole)


class Unreadable(Exception):
    """The disk does not give its data; the text says why."""


class Chunk(NamedTuple):
    """One chunk, ready to be sent; zeros have no payload."""

    kind: Kind
    sum: bytes
    payload: bytes


class Source:
    """A disk that is read from its beginning to its end, some chunks ahead."""

    def __init__(self, disk: int, compression: Compression) -> None:
        self._disk, self._compression = disk, compression
        self._sums: list[bytes] = []  # of all chunks that were read so far
        self.size = size_of(disk)

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
            if next_data(self._disk, offset, offset + length) == offset + length:
                data = bytes(length)
            else:
                data = read_exactly(self._disk, length, offset)
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from error
        if chunks.is_zero(data):
            kept = length == chunks.CHUNK
            return Chunk(Kind.ZEROS, chunks.ZERO_SUM if kept else chunks.sum_of(data), b"")
        packed = chunks.pack(data, self._compression)
        if packed is None:
            return Chunk(Kind.PLAIN, chunks.sum_of(data), data)
        return Chunk(Kind.PACKED, chunks.sum_of(data), packed)
