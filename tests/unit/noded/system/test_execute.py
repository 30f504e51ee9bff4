"""Programs are run with limits, and their failures told in full."""

import asyncio
import contextlib
import errno
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import uvloop

from common.errors import NodeFailure
from noded.system.execute import CommandFailed, Finished, execute
from noded.system.process import start


def run(*argv: str, timeout_s: float = 10, stdin: bytes | None = None) -> Finished:
    return asyncio.run(execute(*argv, timeout_s=timeout_s, stdin=stdin))


def test_output_is_returned() -> None:
    assert run("sh", "-c", "echo out; echo err >&2") == Finished(b"out\n", b"err\n")


def test_input_is_fed() -> None:
    text = b"x" * 1_000_000
    assert run("cat", stdin=text).stdout == text


def test_program_that_ignores_its_input_is_fine() -> None:
    assert run("true", stdin=b"x" * 1_000_000) == Finished(b"", b"")


def test_environment_is_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    lines = run("env").stdout.decode().split()
    assert {line.partition("=")[0] for line in lines} == {"PATH", "LC_ALL", "HOME"}
    assert run("pwd").stdout == b"/\n"


def test_failure_carries_the_end_of_stderr() -> None:
    with pytest.raises(CommandFailed, match=r"status 3\. It said: no such pool") as caught:
        run("sh", "-c", "echo no such pool >&2; exit 3")
    assert caught.value.detail["status"] == 3
    assert caught.value.detail["stderr"] == "no such pool"


def test_death_by_signal_is_named() -> None:
    with pytest.raises(CommandFailed, match="signal 9"):
        run("sh", "-c", "kill -9 $$")


def test_missing_program() -> None:
    with pytest.raises(
        CommandFailed, match="Cannot start no-such-program: no such program is inst"
    ):
        run("no-such-program")
    with pytest.raises(CommandFailed, match="null byte"):
        run("echo", "a\0b")


def test_endless_program_is_killed_with_its_children(tmp_path: Path) -> None:
    """The child holds a lock on a file as long as it lives."""
    lock = str(tmp_path / "lock")
    with pytest.raises(CommandFailed, match=r"did not end within 0\.3 s"):
        run("sh", "-c", f"flock {lock} sleep 100 & wait", timeout_s=0.3)
    run("flock", "--timeout", "5", lock, "true")


def test_children_are_killed_though_the_program_itself_has_ended(tmp_path: Path) -> None:
    """They have its output, so that it is waited for."""
    lock = str(tmp_path / "lock")
    with pytest.raises(CommandFailed, match=r"did not end within 0\.3 s"):
        run("sh", "-c", f"flock {lock} sleep 100 &", timeout_s=0.3)
    run("flock", "--timeout", "5", lock, "true")


def test_nothing_of_a_program_is_left_open_or_unreaped() -> None:
    def have() -> tuple[int, str]:
        descriptors = len([*Path("/proc/self/fd").iterdir()])
        return descriptors, Path("/proc/thread-self/children").read_text()

    async def several() -> None:
        for argv, time_s in ((("true",), 10.0), (("false",), 10.0), (("sleep", "9"), 0.05)):
            with contextlib.suppress(CommandFailed):
                await execute(*argv, timeout_s=time_s, stdin=b"x")

    for loop in (asyncio.new_event_loop, uvloop.new_event_loop):
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.get_loop()
            before = have()
            runner.run(several())
            assert have() == before


def test_a_program_that_cannot_be_watched_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def fail(pid: int) -> int:
        started.append(pid)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", fail)
    descriptors = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(CommandFailed, match="Cannot start sleep: Too many open files"):
        run("sleep", "100", stdin=b"x")
    assert len([*Path("/proc/self/fd").iterdir()]) == descriptors
    with pytest.raises(NodeFailure, match="Cannot start sleep: Too many open files"):
        start(("sleep", "100"), Path(os.devnull))
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_cancellation_kills() -> None:
    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await execute("sleep", "100", timeout_s=100)

    started = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - started < 5


def test_daemon_outlives_the_call() -> None:
    daemon = "echo $$ > /dev/stderr; exec >/dev/null 2>&1; exec sleep 30"
    pid = int(run("setsid", "-f", "sh", "-c", daemon).stderr)
    os.kill(pid, signal.SIGKILL)


def test_flood_is_refused() -> None:
    with pytest.raises(CommandFailed, match="more than 4 MiB"):
        run(sys.executable, "-c", "print('x' * (5 << 20))")


def test_a_program_that_ends_without_reading_what_it_is_given_is_no_surprise() -> None:
    async def feed() -> None:
        for _ in range(50):  # now it ends before the first byte is written, now after
            await execute("true", stdin=b"x" * 100_000, timeout_s=10)

    uvloop.run(feed())
