"""The replica under crashes, full disks and damage: it is before a commit or after, never between.

A crash is a real one: a child process that dies in the middle of its work.
"""

import itertools
import os
import random
import resource
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from common.errors import NodeFailure
from common.model.stamp import Stamp
from common.names import Epoch, Serial
from noded.replica.store import ReplicaFile
from tests.support.replicas import Key, carry_out, history, row

COMMITS = history(12, Random(1))
ROWS = tuple(row(("disk", str(number)), b'{"copied":true}') for number in range(40))
COPY = Stamp(epoch=Epoch(2), serial=Serial(99), digest="cd" * 32)
SURVIVED, DIED = 0, 9


def states() -> dict[Stamp, dict[Key, bytes]]:
    """Return the only states that may ever be found, by their stamps."""
    found, rows = {Stamp(): dict[Key, bytes]()}, dict[Key, bytes]()
    for commit in COMMITS:
        carry_out(rows, commit)
        found[commit.stamp] = dict(rows)
    found[COPY] = {(each.kind, each.id): bytes(each.body) for each in ROWS}
    return found


STATES = states()


def contents(path: Path) -> tuple[Stamp, dict[Key, bytes]]:
    replica = ReplicaFile(path)
    page = replica.read(None, 1000)
    assert replica.stamp() == page.stamp
    replica.close()
    return page.stamp, {(each.kind, each.id): bytes(each.body) for each in page.rows}


def check_whole(path: Path) -> Stamp:
    """Check that the replica is in one of the states, and return which."""
    stamp, rows = contents(path)
    assert rows == STATES[stamp]
    return stamp


def in_child(work: Callable[[], None]) -> int:
    """Do ``work`` in a forked process; return how it ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 -- pytest must not go on in the child
            os._exit(1)
        os._exit(SURVIVED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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


def test_a_full_disk_is_told_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    ReplicaFile(path).append(COMMITS[:2])
    reports = tmp_path / "reports"

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        replica = ReplicaFile(path)
        for room in itertools.count(4096, 512):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            try:
                replica.append(COMMITS[2:])
            except NodeFailure as error:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
                with reports.open("a") as file:
                    file.write(f"{error.message}\n")
                assert check_whole(path) == COMMITS[1].stamp
                assert replica.stamp() == COMMITS[1].stamp
            else:
                break
        os._exit(SURVIVED if check_whole(path) == COMMITS[-1].stamp else DIED)

    assert in_child(work) == SURVIVED
    refusals = reports.read_text().splitlines()
    assert refusals
    assert all(str(path) in refusal for refusal in refusals)


def test_no_room_for_a_new_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        with pytest.raises(NodeFailure, match=r"state\.sqlite"):
            ReplicaFile(path).append(COMMITS)

    assert in_child(work) == SURVIVED
    assert not path.exists()
    ReplicaFile(path).append(COMMITS)
    assert check_whole(path) == COMMITS[-1].stamp


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")
def test_a_truly_full_file_system(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=256k tmpfs {disk} 2>/dev/null"):
        pytest.skip("mounting is not allowed here")
    try:
        path = disk / "state.sqlite"
        replica = ReplicaFile(path)
        replica.append(COMMITS[:2])
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(bytes(4096))
        with pytest.raises(NodeFailure, match=f"disk is full under the state file {path}"):
            replica.append(COMMITS[2:])
        assert replica.stamp() == COMMITS[1].stamp
        filler.unlink()
        assert replica.append(COMMITS[2:]) == COMMITS[-1].stamp
        replica.close()
        assert check_whole(path) == COMMITS[-1].stamp
    finally:
        os.system(f"umount {disk}")


def _truncate(path: Path) -> None:
    path.write_bytes(b"")


def _overwrite(path: Path) -> None:
    path.write_bytes(b"all work and no play makes jack a dull boy\n" * 100)


def _scratch(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(len(data) - 100))


def _age(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize("damage", [_truncate, _overwrite, _scratch, _age])
def test_a_damaged_file_is_named_and_left_alone(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "state.sqlite"
    replica = ReplicaFile(path)
    replica.append(COMMITS)
    replica.close()
    damage(path)
    damaged = path.read_bytes()
    replica = ReplicaFile(path)
    works: list[Callable[[], object]] = [
        replica.stamp,
        lambda: replica.append(COMMITS),
        lambda: replica.read(None, 10),
        lambda: replica.restore("x", ROWS, first=True, becomes=COPY),
    ]
    for work in works:
        with pytest.raises(NodeFailure, match=str(path)):
            work()
    assert path.read_bytes() == damaged
    replica.erase()  # what leaving the cluster does
    assert replica.stamp() == Stamp()


def test_another_program_that_writes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    replica = ReplicaFile(path)
    replica.append(COMMITS[:1])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(NodeFailure, match="locked by another program"):
        replica.append(COMMITS)
    assert time.monotonic() - began < 10
    other.execute("ROLLBACK")
    other.close()
    assert replica.append(COMMITS) == COMMITS[-1].stamp
    replica.close()
