"""The replica under crashes: it is before a commit or after, never between.

A crash is a real one: a child process that dies in the middle of its work.
"""

import itertools
import os
import random
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from common.model.stamp import Stamp
from noded.replica.store import ReplicaFile
from tests.support.replica_states import COMMITS, COPY, DIED, ROWS, SURVIVED, check_whole, in_child


def die_at(statement: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End this process when SQLite begins its ``statement``-th statement from now."""
    count = itertools.count(1)
    connect = sqlite3.connect

    def watched(*args: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(lambda _: next(count) < statement or os._exit(DIED))
        return connection

    monkeypatch.setattr(sqlite3, "connect", watched)


def first_commits(path: Path) -> None:
    ReplicaFile(path).append(COMMITS[:2])


def more_commits(path: Path) -> None:
    replica = ReplicaFile(path)
    replica.append(COMMITS[2:3])
    replica.append(COMMITS[3:])


def a_whole_copy(path: Path) -> None:
    replica = ReplicaFile(path)
    for start in range(0, 40, 10):
        replica.restore(
            "x", ROWS[start : start + 10], first=start == 0, becomes=COPY if start == 30 else None
        )


@pytest.mark.parametrize(
    ("prepared", "work", "allowed"),
    [
        (0, first_commits, {0, 2}),
        (2, more_commits, {2, 3, 12}),
        (2, a_whole_copy, {2, 99}),
        (0, a_whole_copy, {0, 99}),
    ],
    ids=["first commits", "more commits", "a copy over commits", "a first copy"],
)
def test_a_crash_at_any_statement_leaves_a_whole_state(
    prepared: int,
    work: Callable[[Path], None],
    allowed: set[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = set()
    for statement in itertools.count(1):
        path = tmp_path / str(statement) / "state.sqlite"
        path.parent.mkdir()
        if prepared:
            ReplicaFile(path).append(COMMITS[:prepared])

        def doomed(path: Path = path, statement: int = statement) -> None:
            die_at(statement, monkeypatch)
            work(path)

        outcome = in_child(doomed)
        seen.add(check_whole(path).serial)
        work_again = ReplicaFile(path)  # and it is as good as any other
        work_again.restore("y", (), first=True, becomes=Stamp())
        work_again.append(COMMITS)
        work_again.close()
        assert check_whole(path) == COMMITS[-1].stamp
        shutil.rmtree(path.parent)
        if outcome == SURVIVED:
            break
        assert outcome == DIED
    assert seen == allowed


def test_killed_at_any_moment_it_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")  # noqa: T201 -- shown when the test fails
    chance = Random(seed)
    for attempt in range(25):
        path = tmp_path / f"{attempt}.sqlite"
        heard, told = os.pipe()
        child = os.fork()
        if child == 0:
            replica = ReplicaFile(path)
            for commit in COMMITS:
                os.write(told, bytes([replica.append((commit,)).serial]))
            signal.pause()
        os.close(told)
        killer = threading.Timer(chance.uniform(0, 0.03), os.kill, (child, signal.SIGKILL))
        killer.start()
        with os.fdopen(heard, "rb") as pipe:
            acknowledged = pipe.read()  # until it is dead
        killer.join()
        os.waitpid(child, 0)
        assert check_whole(path).serial >= max(acknowledged, default=0)


def test_a_torn_log_loses_only_the_newest_commits(tmp_path: Path) -> None:
    """What a power cut leaves of commits that nobody was told about yet."""
    path = tmp_path / "state.sqlite"
    replica = ReplicaFile(path)
    for commit in COMMITS:
        replica.append((commit,))
    log = path.with_name("state.sqlite-wal").read_bytes()
    torn = tmp_path / "torn.sqlite"
    found = set()
    for length in range(0, len(log) + 1, 1009):
        shutil.copy(path, torn)
        torn.with_name("torn.sqlite-wal").write_bytes(log[:length])
        found.add(check_whole(torn).serial)
        for left in tmp_path.glob("torn*"):
            left.unlink()
    assert {0, 1, 6, 11} <= found
    replica.close()
