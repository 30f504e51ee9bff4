"""Processes that outlive noded: started, found again, waited for, and never mistaken for others.

A number in a file may by now belong to a stranger. So a process is held by a file descriptor
(pidfd) first, looked at then, and signalled through that descriptor only.
"""

import asyncio
import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from common.errors import NodeFailure
from noded.system.execute import ENVIRONMENT

PROC = Path("/proc")
OWN_DESCRIPTORS = PROC / "self/fd"
STANDARD = (0, 1, 2)
STAT_FLAGS = 6  # the ninth field of a process, the seventh after its name
PF_EXITING = 0x4
KILL_WAIT_S = 20.0  # for the kernel to take down a process that hangs in a broken disk


class Process:
    """A running process; close it when done (``with``), which leaves the process alone."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._pidfd)

    @property
    def has_ended(self) -> bool:
        return bool(select.select([self._pidfd], [], [], 0)[0])

    async def ended(self) -> None:
        """Wait for its end, and clear it away if we are its parent."""
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        # A copy: two tasks may wait for one process, and the loop has one reader a descriptor.
        descriptor = os.dup(self._pidfd)
        loop.add_reader(descriptor, over.set)
        try:
            await over.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self._clear_away()

    async def kill(self) -> None:
        """Kill it and return when it is gone.

        Raises:
            NodeFailure: the kernel does not get rid of it.
        """
        self.signal(signal.SIGKILL)
        try:
            async with asyncio.timeout(KILL_WAIT_S):
                await self.ended()
        except TimeoutError as error:
            raise NodeFailure(
                f"Process {self.pid} was killed but does not end; it probably waits for a disk "
                "that does not answer. The node may have to be power-cycled.",
                pid=self.pid,
            ) from error

    async def stop(self, wait_s: float) -> None:
        """Ask it to end, kill it if it has not after ``wait_s``, and return when it is gone.

        Raises:
            NodeFailure: the kernel does not get rid of it.
        """
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(wait_s):
                await self.ended()
        except TimeoutError:
            await self.kill()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; harmless when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def stat(self) -> str:
        """Return the text of its ``/proc/PID/stat``, or "" when it has ended."""
        return self._told("stat")

    def statm(self) -> str:
        """Return the text of its ``/proc/PID/statm``, or "" when it has ended."""
        return self._told("statm")

    def _told(self, file: str) -> str:
        try:
            return (PROC / str(self.pid) / file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def _clear_away(self) -> None:
        with contextlib.suppress(ChildProcessError):  # somebody else's child, or done already
            os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)


def start(argv: tuple[str, ...], log: Path, handed: Iterable[int] = ()) -> Process:
    """Start a program that outlives us, in a session of its own; from now on it can be found.

    Args:
        argv: the program and its arguments.
        log: where both outputs are appended.
        handed: descriptors it gets, under their own numbers; no others, whatever is open here.

    Raises:
        NodeFailure: it cannot be started.
    """
    output = (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    given = tuple(handed)
    kept = [(os.POSIX_SPAWN_DUP2, number, number) for number in given]  # so not closed by exec
    shut = [(os.POSIX_SPAWN_CLOSE, number) for number in _inheritable() if number not in given]
    try:
        # Not asyncio's subprocess: that kills its child when the event loop is closed.
        pid = os.posix_spawnp(
            argv[0],
            argv,
            ENVIRONMENT,
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGINT, signal.SIGHUP, signal.SIGTERM),
            file_actions=[nothing, output, (os.POSIX_SPAWN_DUP2, 1, 2), *kept, *shut],
        )
        started = Process(pid, _held(pid))
    except OSError as error:
        raise NodeFailure(f"Cannot start {argv[0]}: {error.strerror}.", program=argv[0]) from error
    # Its memory is there, but the kernel may have yet to say where in it the arguments are.
    while not (_arguments(pid) or _is_ending(pid) or started.has_ended):
        os.sched_yield()
    return started


def _held(child: int) -> int:
    """Return a descriptor of a child just started; one that cannot be held does not go on.

    Raises:
        OSError: too many files are open.
    """
    try:
        return os.pidfd_open(child)
    except OSError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def _inheritable() -> Iterator[int]:
    """Yield the descriptors that a program would get unasked; libraries leave some so."""
    for entry in OWN_DESCRIPTORS.iterdir():
        number = int(entry.name)
        with contextlib.suppress(OSError):  # that of the list itself
            if number not in STANDARD and os.get_inheritable(number):
                yield number


def find(pid_file: Path, is_it: Callable[[Sequence[bytes]], bool]) -> Process | None:
    """Return the process whose number is in ``pid_file``, if it still runs.

    One that is ending still runs: it may have its disks open until it has ended.

    Without that file every process is looked at: noded may have been killed after it started
    one and before it wrote the number down.

    Args:
        pid_file: holds a number.
        is_it: tells the process from others by its arguments.
    """
    try:
        number = int(pid_file.read_text(encoding="ascii"))
    except FileNotFoundError:
        return _first(lambda pid: is_it(_arguments(pid)))
    except (OSError, ValueError):
        return None
    # What is ending has no arguments any more. A stranger that is can be taken for it, until
    # it has ended; no signal does anything to it.
    return _open(number, lambda pid: is_it(_arguments(pid)) or _is_ending(pid))


def _first(is_it: Callable[[int], bool]) -> Process | None:
    numbers = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal())
    return next((found for number in numbers if (found := _open(number, is_it))), None)


def _open(pid: int, is_it: Callable[[int], bool]) -> Process | None:
    if not is_it(pid):  # most are not, and need no descriptor
        return None
    try:
        process = Process(pid, os.pidfd_open(pid))
    except OSError:
        return None
    # Once more: now that it is held, the number cannot become another's.
    if is_it(pid) and not process.has_ended:
        return process
    with process:
        return None


def _arguments(pid: int) -> list[bytes]:
    """Return the arguments of a process; none for one whose last thread gave up its memory."""
    return next(filter(None, map(_arguments_of, _threads(pid))), [])


def _threads(pid: int) -> Iterator[Path]:
    """Yield directories of a process and its threads: the first may be gone, and others go on."""
    yield (itself := PROC / str(pid))
    with contextlib.suppress(OSError):
        yield from (itself / "task").iterdir()


def _arguments_of(thread: Path) -> list[bytes]:
    try:
        told = (thread / "cmdline").read_bytes()
    except OSError:
        return []
    return told.split(b"\0") if told else []


def _is_ending(pid: int) -> bool:
    """Tell whether a process has given up its memory, and may still have files open.

    Source: proc(5), ``flags`` of ``/proc/PID/stat``; do_exit in the kernel's ``kernel/exit.c``.
    """
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return False
    flags = int(stat.rpartition(b")")[2].split()[STAT_FLAGS])
    return bool(flags & PF_EXITING) and not _arguments(pid)
