"""Streams of scripts: pipes that are copied in the place of disks, once, from their beginning."""

import os
import select
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from common.errors import NodeFailure
from common.noderpc.copies import Compression
from noded.copies import chunks
from noded.copies.ending import Ending
from noded.copies.estimate import on_the_line, read_estimate
from noded.copies.frames import (
    NO_SUM,
    SCRIPTS_S,
    Frame,
    Garbled,
    Hello,
    Kind,
    Line,
    Verdict,
    Welcome,
)
from noded.copies.serving import SILENT_S, SYNC_S
from noded.copies.target import verified
from noded.copies.throttle import Throttle

MEET_S = 60  # for the script to come to its end of a pipe
READ_S = SCRIPTS_S  # for it to read on: who sends it more waits as long, and begins later


def is_stream(descriptor: int) -> bool:
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode)


def meet(descriptor: int, access: int) -> int:
    """Open a pipe that a descriptor only names, when the script has opened its other end.

    Raises:
        TimeoutError: it has not come.
    """

    def give_up(*_: Any) -> None:
        raise TimeoutError("the script has not come to its end of the stream")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(MEET_S)
    try:
        return os.open(f"/proc/self/fd/{descriptor}", access | os.O_CLOEXEC)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        os.close(descriptor)


class StreamServing:
    """Sends what a script writes, to the first who asks for it."""

    def __init__(
        self,
        pipe: int,
        estimate: int | None,
        ending: Ending,
        *,
        compression: Compression,
        rate: int,
        advance: Callable[[int, int], None],
    ) -> None:
        """Send what comes from a pipe; ``estimate`` is open where the script may say how much."""
        self._estimate, self._ending = estimate, ending
        self._pipe, self._compression, self._advance = pipe, compression, advance
        self._throttle = Throttle(rate)
        self._is_begun = False

    def serve(self, line: Line, hello: Hello) -> Verdict:
        """Send all of it; return what became of it.

        Raises:
            Garbled, OSError, EOFError, InvalidRequest: the other side is gone, or makes no sense;
                or it was sent to somebody before.
        """
        if self._is_begun:
            raise Garbled("what a script writes is passed on once")
        self._is_begun = True
        line.wait_for(hello.patience_s)
        line.say(Welcome(size=None, begin=0))
        self._send_all(line)
        line.wait_for(SYNC_S)
        return line.hear(Verdict)

    def _send_all(self, line: Line) -> None:
        sums: list[bytes] = []
        sent = done = told = 0
        for data in chunks_of(self._pipe):
            expected = self._expected()
            if not data or expected != told:
                _be_heard(line, len(sums), expected)
                told = expected
            if not data:
                continue
            packed = chunks.pack(data, self._compression)
            kind = Kind.PLAIN if packed is None else Kind.PACKED
            payload = data if packed is None else packed
            sum_of_it = chunks.sum_of(data)
            passed = line.send(Frame(kind, len(sums), len(payload), sum_of_it), payload)
            self._throttle.passed(passed)
            sums.append(sum_of_it)
            sent, done = sent + passed, done + len(data)
            self._advance(done, sent)
        # Whether it was whole is known by how the script has ended, and only then.
        if problem := self._ending.wait(go_on=lambda: _be_heard(line, len(sums), told)):
            text = f"The script that wrote this {problem}.".encode()
            line.send(Frame(Kind.PROBLEM, len(sums), len(text), NO_SUM), text)
            return
        whole = chunks.sum_of_all(sums)
        line.send(Frame(Kind.END, len(sums), len(whole), NO_SUM), whole)

    def _expected(self) -> int:
        return 0 if self._estimate is None else read_estimate(self._estimate)


def _be_heard(line: Line, chunk: int, expected: int) -> None:
    line.send(Frame(Kind.ZEROS, chunk, 0, on_the_line(expected)))


class StreamTarget:
    """The script that reads a copy: it is given each chunk in its turn, checked against its sum."""

    def __init__(self, pipe: int, path: str, source_size: int | None) -> None:
        """Pass on ``source_size`` bytes; None: as many as come."""
        self._pipe, self._path, self._source_size = pipe, path, source_size
        os.set_blocking(pipe, False)
        self._room = select.poll()
        self._room.register(pipe, select.POLLOUT)
        self._is_open = True

    def close(self) -> None:
        """Let the script see the end, if it has not."""
        if self._is_open:
            self._is_open = False
            os.close(self._pipe)

    def write(self, index: int, payload: bytes, expected: bytes, *, is_packed: bool) -> list[bytes]:
        self._pass_on(verified(index, payload, expected, self._source_size, is_packed=is_packed))
        return [expected]

    def write_zeros(self, index: int, count: int) -> list[bytes]:
        sums = []
        for each in range(index, index + count):
            whole = self._source_size is None
            zeros = bytes(chunks.CHUNK if whole else chunks.length_of(each, self._source_size or 0))
            self._pass_on(zeros)
            sums.append(chunks.sum_of(zeros))
        return sums

    def sync_some(self, written: int) -> None:
        """What a script writes is made durable by who runs it, at its end."""

    def finish(self) -> None:
        self.close()

    def _pass_on(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                if not self._room.poll(READ_S * 1000):
                    raise NodeFailure(
                        f"The script has read nothing more of {self._path} for "
                        f"{READ_S // 60} minutes; see in its log on this node what it waits for."
                    )
                with suppress(BlockingIOError):  # there is less room than it takes to be told so
                    view = view[os.write(self._pipe, view) :]
        except BrokenPipeError as error:
            raise NodeFailure(
                f"The script has ended before it had read all of {self._path}.", path=self._path
            ) from error


def chunks_of(pipe: int, *, now: Callable[[], float] = time.monotonic) -> Iterator[bytes]:
    """Yield what is written to a pipe, and nothing for each while in which no chunk is filled."""
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    filled = bytearray()
    told = now()
    while True:
        # A script that writes a little all the time is heard of as seldom as one that is silent.
        if now() - told > SILENT_S or not waiting.poll(SILENT_S * 1000):
            yield b""
            told = now()
            continue
        data = os.read(pipe, chunks.CHUNK - len(filled))
        filled += data
        if filled and (not data or len(filled) == chunks.CHUNK):
            yield bytes(filled)
            told = now()
            filled.clear()
        if not data:
            return
