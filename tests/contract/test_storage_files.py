"""What holds for disks in files, and what only real files can do."""

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.model.disk import Mode
from common.names import MiB
from common.noderpc.disks import Access, DiskReport
from noded.storage import file_calls
from noded.storage.directories import Directories, names_below, path_of
from noded.storage.opening import open_disk
from tests.support.disks import directory, file_disk
from tests.support.file_rigs import (
    DISK_A,
    DISK_B,
    FakeRig,
    FileRig,
    GlusterRig,
    at,
    disk,
    mounted,
    run,
)

IN_OPEN = 0x20


@pytest.fixture(params=[FakeRig, FileRig], ids=["fake", "file"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FakeRig | FileRig:
    """What keeps files, or pretends to."""
    kind: Callable[[Path], FakeRig | FileRig] = request.param
    return kind(tmp_path)


@pytest.fixture
def real(tmp_path: Path) -> FileRig:
    return FileRig(tmp_path)


def test_place_outside_is_refused(files: FakeRig | FileRig, tmp_path: Path) -> None:
    local = files.directories.local
    for path in (
        f"{tmp_path}/elsewhere/disk0", f"{local}/../elsewhere/disk0", f"{local}/a/../../x",
        f"{local}", f"{local}/", f"{local}//disk0", f"{local}-more/disk0", "disk0", "",
        f"{local}/.hidden", f"{local}/a\0b", f"{local}/a\nb", "/etc/passwd",
    ):  # fmt: skip
        storage = files.storage
        for call in (
            storage.ensure_present, storage.ensure_absent, storage.grow, storage.find,
            storage.detach,
        ):  # fmt: skip
            with pytest.raises(InvalidRequest, match="is not below"):
                run(call(at(path)))
        with pytest.raises(InvalidRequest, match="is not below"):
            run(storage.attach(at(path), Access.SOLE))
        with pytest.raises(InvalidRequest, match="is not below"):
            storage.open(at(path))
        with pytest.raises(InvalidRequest, match="is not below"):
            files.storage.check_place(at(path))
    with pytest.raises(InvalidRequest, match="no directory for disks"):
        run(files.storage.inventory(directory("/etc")))


def test_a_directory_for_several_instances_stays_when_one_of_them_goes(real: FileRig) -> None:
    """Another may be about to make its own there."""
    top = Path(real.directories.local)
    spec = at(f"{top}/fast/web1/disk0")
    run(real.storage.ensure_present(spec))
    run(real.storage.ensure_present(spec))
    assert run(real.storage.inventory(directory(str(top)))) == (path_of(spec),)
    run(real.storage.ensure_absent(spec))
    assert [*top.rglob("*")] == [top / "fast"]
    run(real.storage.ensure_absent(spec))
    run(real.storage.ensure_present(at(f"{top}/web1/disk0")))
    run(real.storage.ensure_absent(at(f"{top}/web1/disk0")))
    assert [*top.rglob("*")] == [top / "fast"]


def test_shared_disks_have_a_directory_of_their_own(files: FakeRig | FileRig) -> None:
    with pytest.raises(InvalidRequest, match="shared file storage"):
        run(files.storage.ensure_present(at(path_of(disk(files)), shared=True)))
    path = f"{files.directories.shared}/disk0"
    files.storage.check_place(at(path, shared=True))
    run(files.storage.ensure_present(at(path, shared=True)))
    assert run(files.storage.inventory(directory(files.directories.shared))) == (path,)
    assert run(files.storage.inventory(directory(files.directories.local))) == ()


def test_storage_without_a_directory_is_refused(files: FakeRig | FileRig) -> None:
    spec = disk(files)
    files.directories = Directories()
    with pytest.raises(InvalidRequest, match="no directory for file storage"):
        run(files.storage.ensure_present(spec))
    with pytest.raises(InvalidRequest):
        run(files.storage.inventory(directory("")))


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


def test_a_directory_without_the_volume_is_no_place_for_its_disks(tmp_path: Path) -> None:
    rig = GlusterRig(tmp_path)
    run(rig.storage.ensure_present(disk(rig)))
    rig.mounts = mounted("/elsewhere", "127.0.0.1:/gv0")
    how = r"mount -t glusterfs -o server-port=24007 127.0.0.1:/gv0 /.*a volume”"
    for call in (rig.storage.ensure_present, rig.storage.ensure_absent, rig.storage.find):
        with pytest.raises(NodeFailure, match=f"No Gluster volume is mounted at .*{how}"):
            run(call(disk(rig)))
    with pytest.raises(NodeFailure, match="No Gluster volume is mounted"):
        rig.storage.open(disk(rig))
    space = run(rig.storage.space(rig.pool))
    assert (space.usable, "No Gluster volume" in space.problem) == (False, True)
    assert run(rig.storage.inventory(rig.pool)) == ()


@pytest.mark.parametrize("source", ["127.0.0.1:/gv1", "127.0.0.1:gv1", "server:24007:/gv1"])
def test_another_volume_is_no_place_for_gluster_disks(tmp_path: Path, source: str) -> None:
    rig = GlusterRig(tmp_path)
    rig.mounts = mounted(rig.directories.gluster, source)
    with pytest.raises(NodeFailure, match=r"volume “gv1” is mounted at .*, and not “gv0”"):
        run(rig.storage.ensure_present(disk(rig)))
    run(rig.storage.ensure_present(replace(disk(rig), parameters={"volume": "gv1"})))
    rig.mounts += mounted(rig.directories.gluster, "tmpfs", "tmpfs")  # and hides the volume
    with pytest.raises(NodeFailure, match="No Gluster volume is mounted"):
        run(rig.storage.find(replace(disk(rig), parameters={"volume": "gv1"})))


def test_paths_below_a_root() -> None:
    assert names_below("/srv/x", "/srv/x/a/b") == ("a", "b")
    assert names_below("/srv/x/", "/srv/x/a") == ("a",)
    for root in ("", "/", "//", "srv/x", "."):
        assert names_below(root, "/srv/x/a") == ()


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


def test_directories_come_and_go_with_their_disks(real: FileRig) -> None:
    first, second = disk(real), disk(real, "web1/disk1", id=DISK_B)
    run(real.storage.ensure_present(first))
    run(real.storage.ensure_present(second))
    run(real.storage.ensure_absent(first))
    run(real.storage.ensure_absent(second))
    assert list(Path(real.directories.local).iterdir()) == []


def test_symbolic_links_lead_nowhere(real: FileRig, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "disk0").write_bytes(b"precious")
    (Path(real.directories.local) / "web1").symlink_to(outside)
    for call in (real.storage.ensure_present, real.storage.ensure_absent, real.storage.find):
        with pytest.raises(InvalidRequest, match="symbolic link"):
            run(call(disk(real)))
    (Path(real.directories.local) / "direct").symlink_to(outside / "disk0")
    with pytest.raises(Conflict, match="no regular file"):
        run(real.storage.ensure_present(disk(real, "direct")))
    run(real.storage.ensure_absent(disk(real, "direct")))
    assert [path.read_bytes() for path in outside.iterdir()] == [b"precious"]


def test_allowed_directory_may_be_a_link(real: FileRig, tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    Path(real.directories.local).rmdir()
    Path(real.directories.local).symlink_to(tmp_path / "large")
    run(real.storage.ensure_present(disk(real)))
    assert (tmp_path / "large/web1/disk0").exists()


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
