"""A program as a child of this process, watched through descriptors.

It is started with vfork, which costs the same however large this process is. An event loop's own
means may fork instead (uvloop's do): all the memory that a daemon has locked is marked page by page
then, twice, while nobody else is served.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import IO

CHUNK = 65536  # as much as a pipe holds


class Child:
    """A program in a session of its own; who starts one ends it, and closes it at last."""

    def __init__(
        self,
        argv: tuple[str, ...],
        *,
        is_fed: bool,
        environment: Mapping[str, str],
        directory: str,
        streams_as_one: bool,
    ) -> None:
        """Start it.

        Raises:
            OSError, ValueError: it cannot be started.
        """
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if is_fed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if streams_as_one else subprocess.PIPE,
            cwd=directory,
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except OSError:  # too many files are open, say; what nobody watches does not go on
            with self._process:
                self.kill_session()
            raise
        self.stdout, self.stderr = self._process.stdout, self._process.stderr
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)

    @property
    def status(self) -> int | None:
        """Return how it has ended, a signal as a negative number; None: it has not.

        It is left to be reaped, so that its number stays its own, and its session can be killed.
        """
        how = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if how is None:
            return None
        return how.si_status if how.si_code == os.CLD_EXITED else -how.si_status

    async def has_ended(self) -> None:
        """Return when it has."""
        while self.status is None:
            await _ready(self._pidfd)

    async def follow(self, pipe: IO[bytes] | None, keep: Callable[[bytes], None]) -> None:
        """Hand on what is written to a pipe, until nobody can write to it any more."""
        while pipe is not None:
            try:
                chunk = os.read(pipe.fileno(), CHUNK)
            except BlockingIOError:
                await _ready(pipe.fileno())
                continue
            if not chunk:
                return
            keep(chunk)
            await asyncio.sleep(0)  # others have their turn while it goes on and on

    async def feed(self, data: bytes) -> None:
        """Have it read something, and then the end; it need not."""
        pipe = self._process.stdin
        if pipe is None:
            return
        rest = memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while rest:
                try:
                    rest = rest[os.write(pipe.fileno(), rest[:CHUNK]) :]
                except BlockingIOError:
                    await _ready(pipe.fileno(), write=True)
        pipe.close()

    def kill_session(self) -> None:
        """Kill it, and all that it has started in its session and process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Forget it, once it has ended; what it has left with its pipes writes to nobody."""
        self._process.poll()
        for pipe in self._pipes():
            pipe.close()
        os.close(self._pidfd)

    def _pipes(self) -> list[IO[bytes]]:
        every = (self._process.stdin, self._process.stdout, self._process.stderr)
        return [pipe for pipe in every if pipe is not None]


async def _ready(descriptor: int, *, write: bool = False) -> None:
    """Wait until a descriptor can be read, or written."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    begin, end = (
        (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    )
    begin(descriptor, tell)
    try:
        await ready
    finally:
        end(descriptor)
