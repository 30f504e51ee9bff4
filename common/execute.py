"""Run a program: an argument list, never a shell; a time limit; limited output."""

import asyncio
import contextlib
import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from common.child import Child
from common.errors import NodeFailure

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/",
}
EMPTY: Mapping[str, str] = {}
STDOUT_LIMIT = 4 << 20
STDERR_LIMIT = 64 << 10
KILL_AGAIN_S = 0.2
TOLD_LIMIT = 2000  # characters of stderr that go into an error


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program left; ``stderr`` holds its last 64 KiB at most."""

    stdout: bytes
    stderr: bytes


class CommandFailed(NodeFailure):
    """A program could not be started, took too long, or ended with a status other than 0.

    Details: ``argv``, ``status`` (negative: the signal; None: it did not end by itself), and
    ``stderr``, the last of what it said.
    """

    code = "node-failure.command"


async def execute(
    *argv: str,
    timeout_s: float,
    stdin: bytes | None = None,
    environment: Mapping[str, str] = EMPTY,
    directory: str = "/",
    streams_as_one: bool = False,
) -> Finished:
    """Run ``argv`` to its end in a session of its own, with a bare environment.

    Cancelled or out of time, the program and its children are killed before this returns.
    Only a daemon, which made a session of its own, survives; it has to close the standard
    streams, or it is waited for.

    Args:
        argv: the program, by path or name, and its arguments.
        timeout_s: how long it may take.
        stdin: what it can read; nothing if None.
        environment: what it is told beside ``ENVIRONMENT``.
        directory: where it is started.
        streams_as_one: keep all that it writes together, in order; errors tell its end.

    Raises:
        CommandFailed: see there; also when it prints more than 4 MiB, since half of an output
            must not be taken for all of it.
    """
    try:
        child = Child(
            argv,
            is_fed=stdin is not None,
            environment={**ENVIRONMENT, **environment},
            directory=directory,
            streams_as_one=streams_as_one,
        )
    except (OSError, ValueError) as error:
        reason = _why_not_started(error, argv[0], directory)
        raise CommandFailed(f"Cannot start {argv[0]}: {reason}.", argv=list(argv)) from error
    stdout = _Kept(STDERR_LIMIT if streams_as_one else STDOUT_LIMIT)
    stderr = stdout if streams_as_one else _Kept(STDERR_LIMIT)
    status = None

    def failed(how: str) -> CommandFailed:
        said = stderr.tail()
        return CommandFailed(f"{_shown(argv)} {how}", argv=list(argv), status=status, stderr=said)

    try:
        async with asyncio.timeout(timeout_s):
            status = await _attend(child, stdin or b"", stdout, stderr)
    except TimeoutError as error:
        how = f"did not end within {timeout_s:g} s and was killed.{stderr.quoted()}"
        raise failed(how) from error
    finally:
        if status is None:
            await _kill(child)
        child.close()
    if status != 0:
        raise failed(f"{_ending(status)}.{stderr.quoted()}")
    if stdout.overflowed and not streams_as_one:
        raise failed(f"printed more than {STDOUT_LIMIT >> 20} MiB.")
    return Finished(bytes(stdout.data), bytes(stderr.data))


class _Kept:
    """The last ``limit`` bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self.overflowed = False
        self._limit = limit

    def keep(self, chunk: bytes) -> None:
        self.data += chunk
        if len(self.data) > self._limit:
            self.overflowed = True
            del self.data[: -self._limit]

    def tail(self) -> str:
        return self.data.decode(errors="replace").strip()[-TOLD_LIMIT:]

    def quoted(self) -> str:
        return f" It said: {self.tail()}" if self.tail() else ""


async def _attend(child: Child, stdin: bytes, stdout: _Kept, stderr: _Kept) -> int | None:
    """Feed the program and follow its output until it has ended; return how it has."""
    async with asyncio.TaskGroup() as group:
        group.create_task(child.follow(child.stdout, stdout.keep))
        group.create_task(child.follow(child.stderr, stderr.keep))
        group.create_task(child.feed(stdin))
        await child.has_ended()
    return child.status


async def _kill(child: Child) -> None:
    """End the program and all of its session, also what is being started at that moment."""
    child.kill_session()
    while child.status is None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(KILL_AGAIN_S):
                await child.has_ended()
        child.kill_session()


def _why_not_started(error: OSError | ValueError, program: str, directory: str) -> str:
    if isinstance(error, FileNotFoundError) and "/" not in f"{program}{directory[1:]}":
        return "no such program is installed there"
    return str(error.strerror) if isinstance(error, OSError) else str(error)


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        return f"was ended by signal {-status} ({signal.strsignal(-status)})"
    return f"ended with status {status}"


def _shown(argv: tuple[str, ...]) -> str:
    """Give the program and its first arguments; command lines of guests fill a screen."""
    text = shlex.join(argv)
    return text if len(text) <= 120 else f"{text[:117]}..."
