"""One side of a conversation: telling what is on a disk to who has said hello."""

import time
from collections.abc import Callable

from noded.copies import chunks
from noded.copies.frames import NO_SUM, Frame, Hello, Kind, Line, Verdict, Welcome
from noded.copies.source import Source, Unreadable
from noded.copies.throttle import Throttle

SILENT_S = 1.0  # between two frames, where all is zeros
SYNC_S = 3600.0  # for the other side to make all durable


class Serving:
    """Sends what is on a disk, as often as it is asked for."""

    def __init__(
        self,
        source: Source,
        *,
        path: str,
        rate: int,
        begin: Callable[[int, int], None],
        advance: Callable[[int, int], None],
    ) -> None:
        """Say how far it is by ``begin`` and ``advance``, in bytes of the disk and on the line."""
        self._source, self._path, self._rate = source, path, rate
        self._begin, self._advance = begin, advance

    def serve(self, line: Line, hello: Hello) -> Verdict:
        """Send what is missing there; return what became of it.

        Raises:
            Garbled, OSError, EOFError, InvalidRequest: the other side is gone, or makes no sense.
        """
        line.wait_for(hello.patience_s)
        try:
            begin = self._source.agreed(hello.have, hello.sum)
            line.say(Welcome(size=self._source.size, begin=begin))
            self._begin(self._source.size, begin * chunks.CHUNK)
            self._send_from(begin, line)
        except Unreadable as error:
            text = f"The disk {self._path} cannot be read: {error}.".encode()
            line.send(Frame(Kind.PROBLEM, 0, len(text), NO_SUM), text)
        line.wait_for(SYNC_S)
        return line.hear(Verdict)

    def _send_from(self, begin: int, line: Line) -> None:
        throttle = Throttle(self._rate)
        zeros, sent, sent_at = 0, 0, time.monotonic()
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
                passed = line.send(frame, chunk.payload)
                throttle.passed(passed)
                sent += passed
                sent_at = time.monotonic()
            self._advance((index + 1) * chunks.CHUNK, sent)
        if zeros:
            line.send(Frame(Kind.ZEROS, index + 1 - zeros, zeros, NO_SUM))
        whole = self._source.sum
        line.send(Frame(Kind.END, chunks.chunks_in(self._source.size), len(whole), NO_SUM), whole)
