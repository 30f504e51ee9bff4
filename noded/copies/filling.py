"""One side of a conversation: filling a disk with what somebody tells of theirs."""

import os
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from common.errors import NodeFailure
from noded.copies import chunks
from noded.copies.ending import Ending
from noded.copies.estimate import from_the_line
from noded.copies.frames import (
    DEAD_AFTER_S,
    SCRIPTS_S,
    Frame,
    Garbled,
    Hello,
    Kind,
    Line,
    Welcome,
)
from noded.copies.growing import GrowingTarget
from noded.copies.serving import SYNC_S
from noded.copies.status import Status
from noded.copies.streams import StreamTarget, is_stream, meet
from noded.copies.target import Sums, Target
from noded.images.contents import Contents, Layout, contents_of

WORKERS = min(4, os.cpu_count() or 1)
AHEAD = 2 * WORKERS  # chunks that are being written while one is received
WELCOME_S = 3600.0  # a process that is new has to read again what it is told is there


class Wanted(Protocol):
    """What is told of the disk to be filled; descriptors are numbers."""

    @property
    def path(self) -> str: ...
    @property
    def disk(self) -> int: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def sums(self) -> int: ...
    @property
    def may_grow(self) -> bool: ...


class Filled(Protocol):
    """What takes what has arrived; see ``Target``."""

    def write(
        self, index: int, payload: bytes, expected: bytes, *, is_packed: bool
    ) -> list[bytes]: ...
    def write_zeros(self, index: int, count: int) -> list[bytes]: ...
    def sync_some(self, written: int) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...


class Filling:
    """Fills a disk; goes on from where another process of the same copy ended."""

    def __init__(self, wanted: Wanted, status: Status, source: str) -> None:
        """Fill from ``source``, which is said in messages."""
        self._wanted, self._status, self._from = wanted, status, source
        self._sums = Sums(wanted.sums)
        self._received = 0
        self._pipe: int | None = None
        self._ending: Ending | None = None
        self.is_used_up = False  # what a script has read cannot be taken back
        if is_stream(wanted.disk):
            self._ending = Ending(wanted.disk)
            self._pipe = meet(wanted.disk, os.O_WRONLY)
            self._sums.cut(0)  # what began anew begins at its beginning

    def fill(self, line: Line, secret: str) -> None:
        """Return when all is there, durable.

        Raises:
            Garbled, OSError, EOFError, InvalidRequest: the other side is gone, or makes no sense.
            NodeFailure: it cannot be done.
        """
        sums = self._sums
        line.wait_for(WELCOME_S)
        patience_s = DEAD_AFTER_S if self._pipe is None else SCRIPTS_S
        line.say(
            Hello(secret=secret, have=len(sums.all), sum=sums.whole.hex(), patience_s=patience_s)
        )
        welcome = line.hear(Welcome)
        line.wait_for(DEAD_AFTER_S)
        if welcome.begin not in (0, len(sums.all)):
            raise Garbled("it begins elsewhere than asked")
        sums.cut(welcome.begin)
        target = self._target(welcome.size)  # which refuses a size that nobody is to be told
        try:
            self._status.begin(welcome.size or 0, welcome.begin * chunks.CHUNK)
            self._take_all(line, target, welcome.size)
            target.finish()
        finally:
            target.close()

    def see_script_end(self) -> None:
        """Return when the script that was filled has ended, if it was one.

        Raises:
            NodeFailure: it has failed, or goes on for longer than who has sent it waits.
        """
        until = time.monotonic() + SYNC_S

        def go_on() -> None:
            if time.monotonic() > until:
                raise NodeFailure(
                    f"The script has not ended {SYNC_S / 60:.0f} minutes after it had all of "
                    f"{self._wanted.path}."
                )

        if self._ending and (problem := self._ending.wait(go_on=go_on)):
            raise NodeFailure(f"The script that reads {self._wanted.path} {problem}.")

    def _target(self, size: int | None) -> Filled:
        wanted = self._wanted
        if self._pipe is not None:
            self.is_used_up = True
            return StreamTarget(self._pipe, wanted.path, size)
        if size is not None:
            return Target(_contents(wanted), wanted.path, size)
        if wanted.may_grow:
            return GrowingTarget(wanted.disk, wanted.path)
        raise NodeFailure(
            f"What {self._from} sends was written by a script, and only one that imports can "
            f"make the disk {wanted.path} of it."
        )

    def _take_all(self, line: Line, target: Filled, size: int | None) -> None:
        """Write what comes, some chunks at a time, until the sum of the whole."""
        ahead: deque[Future[list[bytes]]] = deque()
        count = None if size is None else chunks.chunks_in(size)
        # What has no places is written in its order.
        with ThreadPoolExecutor(WORKERS if isinstance(target, Target) else 1) as pool:
            try:
                expected = len(self._sums.all)
                while (frame := line.receive()).kind is not Kind.END:
                    if frame.kind is not Kind.PROBLEM and frame.number != expected:
                        raise Garbled(f"chunk {frame.number} came instead of {expected}")
                    expected += frame.length if frame.kind is Kind.ZEROS else 1
                    if count is not None and expected > count:
                        raise Garbled("there is more than there can be")
                    if count is None and frame.kind is Kind.ZEROS and frame.length:
                        raise Garbled("there are zeros, and nobody knows of which size")
                    ahead.append(self._begin_writing(line, target, frame, pool))
                    while len(ahead) > AHEAD:
                        self._note(ahead.popleft(), target)
                while ahead:
                    self._note(ahead.popleft(), target)
            finally:
                pool.shutdown(cancel_futures=True)
        is_as_many = count is None or len(self._sums.all) == count
        if line.read(frame.length) != self._sums.whole or not is_as_many:
            self._sums.cut(0)
            raise NodeFailure(
                f"What has arrived on the disk {self._wanted.path} is not what "
                f"{self._from} has sent; copy it again."
            )

    def _begin_writing(
        self, line: Line, target: Filled, frame: Frame, pool: ThreadPoolExecutor
    ) -> Future[list[bytes]]:
        if frame.kind is Kind.ZEROS:
            if not frame.length:
                self._status.expect(from_the_line(frame.sum))
            return pool.submit(target.write_zeros, frame.number, frame.length)
        payload = line.read(frame.length)
        if frame.kind is Kind.PROBLEM:
            raise NodeFailure(f"{self._from}: {payload.decode(errors='replace')}")
        self._received += len(payload)
        is_packed = frame.kind is Kind.PACKED
        return pool.submit(target.write, frame.number, payload, frame.sum, is_packed=is_packed)

    def _note(self, writing: Future[list[bytes]], target: Filled) -> None:
        written = writing.result()
        self._sums.add(written)
        target.sync_some(len(written))
        self._status.advance(len(self._sums.all) * chunks.CHUNK, self._received)


def _contents(wanted: Wanted) -> Contents:
    try:
        return contents_of(wanted.disk, wanted.layout)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NodeFailure(f"The disk {wanted.path} cannot be written: {reason}.") from error
