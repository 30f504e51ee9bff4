"""What only real files can do as disks, and how strict those are that stand for devices."""

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.model.disk import Mode
from common.names import MiB
from common.noderpc.disks import Access, DiskReport
from noded.storage import file_calls
from noded.storage.directories import path_of
from noded.storage.opening import open_disk
from tests.support.disks import directory, file_disk
from tests.support.file_rigs import DISK_A, FakeRig, FileRig, disk, run

IN_OPEN = 0x20


@pytest.fixture
def real(tmp_path: Path) -> FileRig:
    return FileRig(tmp_path)


def test_fake_disks_are_as_strict_as_devices(tmp_path: Path) -> None:
    rig = FakeRig(tmp_path)
    run(rig.storage.ensure_present(disk(rig)))
    with pytest.raises(NodeFailure, match="cannot be opened: it is not attached"):
        rig.storage.open(disk(rig))
    run(rig.storage.attach(disk(rig), Access.SOLE))
    rig.storage.open(disk(rig))
    with pytest.raises(NodeFailure, match="is attached; detach it first"):
        run(rig.storage.ensure_absent(disk(rig)))
    rig.use(path_of(disk(rig)))
    with pytest.raises(NodeFailure, match="in use by a running guest"):
        run(rig.storage.detach(disk(rig)))


def test_file_is_private_full_and_zero(real: FileRig) -> None:
    run(real.storage.ensure_present(disk(real)))
    found = Path(path_of(disk(real))).stat()
    assert found.st_mode & 0o777 == 0o600
    assert found.st_size == 8 << 20
    assert found.st_blocks * 512 >= 8 << 20  # nothing is left to fail for lack of space
    assert not any(Path(path_of(disk(real))).read_bytes())


def test_growth_is_zero_and_reserved_and_leaves_holes_as_they_are(real: FileRig) -> None:
    run(real.storage.ensure_present(disk(real)))
    path = Path(path_of(disk(real)))
    with path.open("r+b") as file:
        file.truncate(0)  # all a hole, as when a guest discards it
        file.truncate(8 << 20)
        file.write(b"precious")
    holes = path.stat().st_blocks * 512
    run(real.storage.grow(disk(real, size=12)))
    content = path.read_bytes()
    assert content[:8] == b"precious"
    assert not any(content[8:])
    assert len(content) == 12 << 20
    assert path.stat().st_blocks * 512 - holes == 4 << 20


def test_failed_growth_is_taken_back(real: FileRig, monkeypatch: pytest.MonkeyPatch) -> None:
    run(real.storage.ensure_present(disk(real)))

    def fail(descriptor: int, size: int, *, present: int) -> None:
        os.ftruncate(descriptor, (present + size) // 2)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("noded.storage.file.allocate", fail)
    with pytest.raises(NodeFailure, match="no space for a disk of 12M"):
        run(real.storage.grow(disk(real, size=12)))
    assert Path(path_of(disk(real))).stat().st_size == 8 << 20


def test_guest_gets_its_disk_as_it_is_to_have_it(real: FileRig) -> None:
    run(real.storage.ensure_present(disk(real)))
    for mode, access in ((Mode.READ_WRITE, os.O_RDWR), (Mode.READ_ONLY, os.O_RDONLY)):
        opened = real.storage.open(replace(disk(real), mode=mode))
        assert fcntl.fcntl(opened, fcntl.F_GETFL) & os.O_ACCMODE == access
        assert os.path.samestat(os.fstat(opened), Path(path_of(disk(real))).stat())
        os.close(opened)


def test_foreign_file_is_a_conflict_and_survives(real: FileRig) -> None:
    path = Path(real.directories.local) / "disk0"
    path.write_bytes(b"precious")
    with pytest.raises(Conflict, match="without label"):
        run(real.storage.ensure_present(disk(real, "disk0")))
    run(real.storage.ensure_absent(disk(real, "disk0")))
    assert path.read_bytes() == b"precious"


def test_pipe_in_the_place_does_not_block(real: FileRig) -> None:
    os.mkfifo(f"{real.directories.local}/disk0")
    with pytest.raises(Conflict, match="no regular file"):
        run(real.storage.ensure_present(disk(real, "disk0")))


def test_leftover_of_a_crash_is_not_a_disk_and_goes_away(real: FileRig) -> None:
    parent = Path(real.directories.local) / "web1"
    parent.mkdir()
    (parent / ".disk0.new").write_bytes(b"half")
    assert run(real.storage.find(disk(real))) is None
    assert run(real.storage.inventory(directory(real.directories.local))) == (
        f"{parent}/.disk0.new",
    )
    run(real.storage.ensure_present(disk(real)))
    assert [path.name for path in parent.iterdir()] == ["disk0"]
    (parent / ".disk0.new").write_bytes(b"half")
    run(real.storage.ensure_absent(disk(real)))
    assert not parent.exists()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "no space for a disk of 8M"),
        (errno.EDQUOT, "no space for a disk of 8M"),
        (errno.EROFS, "may not create the disk"),
        (errno.EIO, "Cannot create the disk .* Input/output error"),
    ],
)
def test_failure_while_writing_leaves_nothing(
    real: FileRig, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("noded.storage.file.allocate", fail)
    with pytest.raises(NodeFailure, match=words) as caught:
        run(real.storage.ensure_present(disk(real)))
    assert caught.value.detail["errno"] == errno.errorcode[code]
    assert list(Path(real.directories.local).iterdir()) == []


def test_file_system_without_labels_goes_by_size(
    real: FileRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    run(real.storage.ensure_present(disk(real)))
    found = run(real.storage.find(disk(real)))
    assert found == DiskReport(id=DISK_A, instance=None, size=MiB(8))
    assert run(real.storage.find(disk(real, size=9))) is None
    run(real.storage.ensure_absent(disk(real)))
    assert list(Path(real.directories.local).iterdir()) == []


def test_file_system_without_labels_knows_a_grown_disk_by_its_name(
    real: FileRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    name = f"web1/{DISK_A}.raw"
    run(real.storage.ensure_present(disk(real, name)))
    run(real.storage.grow(disk(real, name, size=12)))
    found = run(real.storage.find(disk(real, name)))
    assert found == DiskReport(id=DISK_A, instance=None, size=MiB(12))
    run(real.storage.ensure_absent(disk(real, name)))
    assert list(Path(real.directories.local).iterdir()) == []


def test_file_system_that_cannot_reserve_gets_holes(
    real: FileRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "get_errno", lambda: errno.EOPNOTSUPP)
    monkeypatch.setattr(file_calls, "_libc", _NoFallocate())
    run(real.storage.ensure_present(disk(real)))
    found = Path(path_of(disk(real))).stat()
    assert found.st_size == 8 << 20
    assert found.st_blocks * 512 <= 8192


class _NoFallocate:
    def fallocate(self, *_: object) -> int:
        return -1


def test_what_is_no_disk_is_not_even_opened(real: FileRig) -> None:
    """The opening of some devices, as of a watchdog, does something; a pipe can tell of it."""
    wanted = disk(real)
    place = Path(path_of(wanted))
    place.parent.mkdir()
    os.mkfifo(place)
    opened = watch_opening(place)
    with pytest.raises(NodeFailure, match="it is no regular file"):
        open_disk(file_disk(DISK_A, str(place)), real.directories)
    assert run(real.storage.find(wanted)) is None
    assert not opened()
    os.close(os.open(place, os.O_RDONLY | os.O_NONBLOCK))
    assert opened()


def watch_opening(path: Path) -> Callable[[], bool]:
    """Return what tells whether ``path`` has been opened since. Source: inotify(7)."""
    libc = ctypes.CDLL(None, use_errno=True)
    watching = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert libc.inotify_add_watch(watching, os.fsencode(path), IN_OPEN) >= 0

    def opened() -> bool:
        try:
            return bool(os.read(watching, 4096))
        except BlockingIOError:
            return False

    return opened
