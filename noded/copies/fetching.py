"""The side of a copy that fetches what is on another node's disk, and writes it."""

import os
import socket
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from common.errors import GntError, NodeFailure
from common.tls.context import client_context, read_peer
from noded.copies import chunks
from noded.copies.frames import DEAD_AFTER_S, Frame, Garbled, Hello, Kind, Line, Verdict, Welcome
from noded.copies.orders import Fetching
from noded.copies.status import Status
from noded.copies.target import Sums, Target

WORKERS = min(4, os.cpu_count() or 1)
AHEAD = 2 * WORKERS  # chunks that are being written while one is received
CONNECT_S = 10.0
WELCOME_S = 3600.0  # a process that is new has to read again what it is told is there


class Fetcher:
    """Fills a disk; goes on from where another process of the same copy ended."""

    def __init__(self, order: Fetching) -> None:
        """Load what needs rights that are given up afterwards."""
        self._order = order
        self._context = client_context(Path(order.identity))
        self._status = Status(order.status)
        self._sums = Sums(order.sums)
        self._received = 0

    def run(self) -> None:
        """Fetch all that is missing, and leave word of how it ended."""
        source = self._order.peer.name
        try:
            self._fetch()
        except (EOFError, Garbled) as error:
            self._status.fail(f"The connection to {source} ended: {error}.", is_final=False)
        except OSError as error:
            reason = error.strerror or str(error)
            self._status.fail(f"The connection to {source} broke: {reason}.", is_final=False)
        except GntError as error:
            self._status.fail(error.message, is_final=True)

    def _fetch(self) -> None:
        line, sums = self._connect(), self._sums
        line.wait_for(WELCOME_S)
        line.say(Hello(secret=self._order.offer.secret, have=len(sums.all), sum=sums.whole.hex()))
        welcome = line.hear(Welcome)
        line.wait_for(DEAD_AFTER_S)
        if welcome.begin not in (0, len(sums.all)):
            raise Garbled("it begins elsewhere than asked")
        sums.cut(welcome.begin)
        self._status.begin(welcome.size, welcome.begin * chunks.CHUNK)
        target = Target(self._order.disk, self._order.path, welcome.size)
        try:
            self._take_all(line, target, chunks.chunks_in(welcome.size))
            target.finish()
        finally:
            target.close()
        self._status.succeed()
        line.say(Verdict())

    def _take_all(self, line: Line, target: Target, count: int) -> None:
        """Write what comes, some chunks at a time, until the sum of the whole."""
        ahead: deque[Future[list[bytes]]] = deque()
        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                expected = len(self._sums.all)
                while (frame := line.receive()).kind is not Kind.END:
                    if frame.number != expected:
                        raise Garbled(f"chunk {frame.number} came instead of {expected}")
                    expected += frame.length if frame.kind is Kind.ZEROS else 1
                    if expected > count:
                        raise Garbled("there is more than there can be")
                    ahead.append(self._begin_writing(line, target, frame, pool))
                    while len(ahead) > AHEAD:
                        self._note(ahead.popleft(), target)
                while ahead:
                    self._note(ahead.popleft(), target)
            finally:
                pool.shutdown(cancel_futures=True)
        if line.read(frame.length) != self._sums.whole or len(self._sums.all) != count:
            self._sums.cut(0)
            raise NodeFailure(
                f"What has arrived on the disk {self._order.path} is not what "
                f"{self._order.peer.name} has sent; copy it again."
            )

    def _begin_writing(
        self, line: Line, target: Target, frame: Frame, pool: ThreadPoolExecutor
    ) -> Future[list[bytes]]:
        if frame.kind is Kind.ZEROS:
            return pool.submit(target.write_zeros, frame.number, frame.length)
        payload = line.read(frame.length)
        if frame.kind is Kind.PROBLEM:
            raise NodeFailure(f"{self._order.peer.name}: {payload.decode(errors='replace')}")
        self._received += len(payload)
        is_packed = frame.kind is Kind.PACKED
        return pool.submit(target.write, frame.number, payload, frame.sum, is_packed=is_packed)

    def _note(self, writing: Future[list[bytes]], target: Target) -> None:
        written = writing.result()
        self._sums.add(written)
        target.sync_some(len(written))
        self._status.advance(len(self._sums.all) * chunks.CHUNK, self._received)

    def _connect(self) -> Line:
        peer, place = self._order.peer, (self._order.host, self._order.offer.port)
        connection = socket.create_connection(place, timeout=CONNECT_S)
        secured = self._context.wrap_socket(connection, server_hostname=peer.name)
        shown = read_peer(secured)
        if shown is None or peer.key not in ("", shown.key):
            raise NodeFailure(f"Who answers for {peer.name} does not show the key of {peer.name}.")
        return Line(secured)
