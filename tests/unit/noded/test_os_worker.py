"""The process that runs a script claims disks, so it does not wait for ever."""

import fcntl
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from noded.operating_systems.turns import take_turn
from noded.operating_systems.worker import meet


@pytest.mark.parametrize("access", [os.O_RDONLY, os.O_WRONLY])
def test_who_comes_to_a_stream_alone_gives_up_and_takes_it_away(
    tmp_path: Path, access: int
) -> None:
    stream = tmp_path / "stream"
    os.mkfifo(stream)
    with pytest.raises(TimeoutError, match="nobody has come to the other end"):
        meet(str(stream), access, patience_s=0.01)
    assert not stream.exists()


def test_who_comes_to_a_stream_gives_up_though_time_was_over_before_waiting_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal in between sets a flag, which nobody reads while the kernel waits."""
    stream = tmp_path / "stream"
    os.mkfifo(stream)
    real_open = os.open

    def open_late(path: str, flags: int) -> int:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGALRM,))
        signal.sigwait((signal.SIGALRM,))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGALRM,))
        return real_open(path, flags)

    monkeypatch.setattr(os, "open", open_late)
    with pytest.raises(TimeoutError, match="nobody has come to the other end"):
        meet(str(stream), os.O_RDONLY, patience_s=0.01)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert not stream.exists()


def test_a_turn_is_over_with_whoever_has_it_and_is_nobodys_to_take_but_roots(
    tmp_path: Path,
) -> None:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    umask = os.umask(0)
    try:
        turn = take_turn(str(tmp_path), log)
    finally:
        os.umask(umask)
    assert os.fstat(turn).st_mode & 0o777 == 0o600
    assert not os.get_inheritable(turn), "what a script leaves behind would keep the turn"
    others = os.open(tmp_path, os.O_RDONLY)  # what anybody can open who may look here
    fcntl.flock(others, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(turn)
    with os.fdopen(take_turn(str(tmp_path), log)):
        assert not (tmp_path / "log").read_text()
    for each in (log, others):
        os.close(each)


def test_who_has_waited_for_the_turn_has_it_alone(tmp_path: Path) -> None:
    said, log = os.pipe()
    with ThreadPoolExecutor(1) as pool:
        with os.fdopen(take_turn(str(tmp_path), log)):
            waiter = pool.submit(take_turn, str(tmp_path), log)
            assert b"waits until another one has ended" in os.read(said, 4096)
        has = os.fdopen(waiter.result())
        with has, (tmp_path / "turn").open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    for each in (said, log):
        os.close(each)
