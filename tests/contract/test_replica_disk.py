"""The replica on full disks, damaged, and in the hands of other programs."""

import itertools
import os
import resource
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.model.stamp import Stamp
from common.names import Serial
from common.noderpc.replica import Behind
from noded.replica.store import ReplicaFile
from tests.support.replica_states import COMMITS, COPY, DIED, ROWS, SURVIVED, check_whole, in_child


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


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    if os.geteuid():
        pytest.skip("mounting takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=256k tmpfs {disk} 2>/dev/null"):
        pytest.skip("mounting is not allowed here")
    yield disk
    os.system(f"umount --lazy {disk}")  # a test that failed may have left a file open


def fill(disk: Path) -> Path:
    """Leave no room; return the file that takes it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    return filler


def test_a_truly_full_file_system(small: Path) -> None:
    path = small / "state.sqlite"
    replica = ReplicaFile(path)
    replica.append(COMMITS[:2])
    filler = fill(small)
    with pytest.raises(NodeFailure, match=f"disk is full under the state file {path}"):
        replica.append(COMMITS[2:])
    assert replica.stamp() == COMMITS[1].stamp
    filler.unlink()
    assert replica.append(COMMITS[2:]) == COMMITS[-1].stamp
    replica.close()
    assert check_whole(path) == COMMITS[-1].stamp


@pytest.mark.parametrize("ended", ["closed", "killed"])
def test_who_starts_on_a_full_file_system_tells_what_is_there(small: Path, ended: str) -> None:
    path = small / "state.sqlite"
    before = ReplicaFile(path)
    before.append(COMMITS[:2])
    if ended == "killed":  # with what it has written in its log only
        log = path.with_name("state.sqlite-wal").read_bytes()
        before.close()
        path.with_name("state.sqlite-wal").write_bytes(log)
    else:
        before.close()
    filler = fill(small)
    replica = ReplicaFile(path)
    for _ in range(2):
        assert replica.stamp() == COMMITS[1].stamp
        assert replica.commits_after(Serial(0)) == COMMITS[:2]
        other = ReplicaFile(path)  # as an operator's program that makes a copy
        assert other.stamp() == COMMITS[1].stamp
        with pytest.raises(NodeFailure, match=f"disk is full under the state file {path}"):
            replica.append(COMMITS[2:])
    filler.unlink()
    assert replica.append(COMMITS[2:]) == COMMITS[-1].stamp
    replica.close()
    assert check_whole(path) == COMMITS[-1].stamp


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


def test_a_commit_that_comes_after_the_end_leaves_no_file(tmp_path: Path) -> None:
    replica = ReplicaFile(tmp_path / "state.sqlite")
    replica.append(COMMITS[:2])
    replica.erase()
    with pytest.raises(Behind):
        replica.append(COMMITS[2:])
    assert list(tmp_path.iterdir()) == []


def test_another_program_that_writes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    replica = ReplicaFile(path)
    replica.append(COMMITS[:1])
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(NodeFailure, match="locked by another program"):
        replica.append(COMMITS)
    other.execute("ROLLBACK")
    other.close()
    assert replica.append(COMMITS) == COMMITS[-1].stamp
    replica.close()
