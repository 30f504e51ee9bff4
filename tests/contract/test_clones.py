"""What snapshots of disks that are files promise: the fake, and a file system that shares data.

GANTRY_TEST_CLONES names a directory of one, as XFS or Btrfs is.
"""

import asyncio
import fcntl
import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from common.errors import NodeFailure
from common.names import DiskId, MiB
from common.noderpc.disks import Access, DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from noded.handlers.snapshots import SnapshotHandlers
from noded.storage.directories import Directories, path_of
from noded.storage.fake import FakeFiles, FakeStorage
from noded.storage.file import FileStorage
from noded.storage.interface import Storage
from noded.system.turns import Turns
from tests.support.disks import file_disk, only_files
from tests.support.file_rigs import DISK_A, DISK_B, run
from tests.support.hypervisors import KvmRig, goes_on, has_qemu, run_kvm
from tests.support.sequence import check

CLONES = os.environ.get("GANTRY_TEST_CLONES", "")


class Rig(Protocol):
    @property
    def storage(self) -> Storage: ...

    def disk(self, id: DiskId, name: str) -> DiskSpec: ...
    def write(self, disk: DiskSpec, word: str) -> None: ...
    def read(self, disk: DiskSpec) -> str: ...


class FakeRig:
    def __init__(self, _: Path) -> None:
        directories = Directories(local="/srv/local")
        self.storage = FakeStorage(lambda: directories, local=FakeFiles(), shared=FakeFiles())
        self.storage.clones = True

    def disk(self, id: DiskId, name: str) -> DiskSpec:
        return file_disk(id, f"/srv/local/web1/{name}", size=8)

    def write(self, disk: DiskSpec, word: str) -> None:
        self.storage.write(disk, word)

    def read(self, disk: DiskSpec) -> str:
        return self.storage.read(disk)


class FileRig:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.storage = FileStorage(lambda: Directories(local=str(root)))

    def disk(self, id: DiskId, name: str) -> DiskSpec:
        return file_disk(id, f"{self.root}/web1/{name}", size=8)

    def write(self, disk: DiskSpec, word: str) -> None:
        with Path(path_of(disk)).open("r+b") as file:
            file.write(word.encode().ljust(16, b"\0"))

    def read(self, disk: DiskSpec) -> str:
        return Path(path_of(disk)).read_bytes()[:16].rstrip(b"\0").decode()


@pytest.fixture(params=[FakeRig, FileRig], ids=["fake", "file"])
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    if request.param is FileRig and not CLONES:
        pytest.skip("GANTRY_TEST_CLONES names no directory whose files can share their data")
    with tempfile.TemporaryDirectory(dir=CLONES or None) as directory:
        yield request.param(Path(directory))


def prepare(rig: Rig) -> SnapshotSpec:
    """Have a disk with a word on it; return a snapshot that can be taken."""
    disk, kept = rig.disk(DISK_A, f"{DISK_A}.raw"), rig.disk(DISK_B, f"{DISK_B}.snapshot")
    run(rig.storage.ensure_present(disk))
    rig.write(disk, "first")
    return SnapshotSpec(of=disk, kept=kept, room=MiB(0))


def test_a_snapshot_keeps_what_was_there_and_is_a_disk_itself(rig: Rig) -> None:
    snapshot = prepare(rig)
    assert run(rig.storage.snapshot_problem(snapshot.of)) == ""
    run(rig.storage.take_snapshots([snapshot]))
    rig.write(snapshot.of, "second")
    assert rig.read(snapshot.kept) == "first"
    found = run(rig.storage.find(snapshot.kept))
    assert found is not None
    assert (found.id, found.size) == (DISK_B, 8)
    run(rig.storage.attach(snapshot.kept, Access.SOLE))
    run(rig.storage.detach(snapshot.kept))
    for _ in range(2):
        run(rig.storage.ensure_absent(snapshot.kept))
    assert rig.read(snapshot.of) == "second"


def test_one_goes_back_as_often_as_one_likes(rig: Rig) -> None:
    snapshot = prepare(rig)
    run(rig.storage.take_snapshots([snapshot]))
    for word in ("second", "third"):
        rig.write(snapshot.of, word)
        run(rig.storage.roll_back(snapshot))
        assert (rig.read(snapshot.of), rig.read(snapshot.kept)) == ("first", "first")


def test_what_is_not_there_is_neither_kept_nor_gone_back_to(rig: Rig) -> None:
    snapshot = prepare(rig)
    with pytest.raises(NodeFailure, match="is not there"):
        run(rig.storage.roll_back(snapshot))
    run(rig.storage.ensure_absent(snapshot.of))
    with pytest.raises(NodeFailure, match="is not there"):
        run(rig.storage.take_snapshots([snapshot]))
    assert run(rig.storage.find(snapshot.kept)) is None


def test_who_uses_a_disk_is_not_rolled_back() -> None:
    if not CLONES:
        pytest.skip("GANTRY_TEST_CLONES names no directory whose files can share their data")
    with tempfile.TemporaryDirectory(dir=CLONES) as directory:
        rig = FileRig(Path(directory))
        snapshot = prepare(rig)
        run(rig.storage.take_snapshots([snapshot]))
        rig.write(snapshot.of, "second")
        with Path(path_of(snapshot.of)).open("r+b") as file:
            lock = struct.pack("hhqqi0q", fcntl.F_RDLCK, os.SEEK_SET, 100, 1, 0)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)  # as QEMU locks its images
            with pytest.raises(NodeFailure, match="in use by a running guest"):
                run(rig.storage.roll_back(snapshot))
        assert rig.read(snapshot.of) == "second"


def test_a_file_system_that_shares_nothing_says_so_and_keeps_nothing(tmp_path: Path) -> None:
    rig = FileRig(tmp_path)
    snapshot = prepare(rig)
    if not asyncio.run(rig.storage.snapshot_problem(snapshot.of)):
        pytest.skip("Files in the directory for temporary ones can share their data")
    assert "XFS and Btrfs have them" in run(rig.storage.snapshot_problem(snapshot.of))
    with pytest.raises(NodeFailure, match="Cannot keep the disk"):
        run(rig.storage.take_snapshots([snapshot]))
    assert [path.name for path in (tmp_path / "web1").iterdir()] == [f"{DISK_A}.raw"]


def test_what_a_guest_that_runs_has_told_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (CLONES and has_qemu):
        pytest.skip("There is no QEMU here, or GANTRY_TEST_CLONES names no directory")
    monkeypatch.setattr(tempfile, "tempdir", CLONES)

    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        before = await goes_on(rig, "alpha")
        disk, path = rig.disk(0), rig.root / f"{DISK_B}.snapshot"
        snapshot = SnapshotSpec(
            of=disk, kept=file_disk(DISK_B, str(path), size=disk.size), room=MiB(0)
        )
        storages = only_files(FileStorage(lambda: Directories(local=str(rig.root))))
        handlers = SnapshotHandlers(storages, {"kvm": alpha}, Turns())
        await handlers.ensure_taken(instance=disk.instance, snapshots=(snapshot,))
        after = await goes_on(rig, "alpha")
        found = check(path.read_bytes())
        assert found.wrong == ()
        assert before <= found.whole_to <= after

    run_kvm(scenario)
