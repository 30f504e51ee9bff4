"""What disks in Ceph promise, kept by rbd's commands and by the fake.

There is no Ceph where these tests run: rbd is played by what its manual says of it.
"""

import errno
import fcntl
import json
import os
import shutil
import stat
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import FileBacking, RbdBacking
from common.model.disk import Mode
from common.names import DiskId, MiB
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from noded.storage.attached import AttachedDevices
from noded.storage.fake import FakeFiles
from noded.storage.fake_elsewhere import FakeElsewhere
from noded.storage.interface import Storage
from noded.storage.rbd import driver
from noded.storage.rbd.driver import RbdStorage
from noded.storage.rbd.parse import parse_device, parse_size
from noded.system.execute import CommandFailed, Finished
from tests.support.file_rigs import DISK_A, DISK_B, WEB1, run

MIB = 1 << 20


class PlayedRbd:
    """rbd with a directory for a Ceph cluster: images are files, and so are their devices."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mapped: dict[str, str] = {}  # of this node: image -> device
        self.changes: list[Sequence[str]] = []

    async def run(self, *argv: str, timeout_s: float) -> Finished:
        assert timeout_s > 0
        assert argv[0] == "rbd"
        words = argv[3:] if argv[1] == "--id" else argv[1:]
        return Finished(self._answer(words), b"")

    def _answer(self, words: Sequence[str]) -> bytes:
        match words:
            case ("info", "--format", "json", name):
                return json.dumps({
                    "name": name.partition("/")[2], "id": "5e1f", "size": self._size(name),
                    "objects": 2, "order": 22, "object_size": 4 * MIB, "format": 2,
                }).encode()  # fmt: skip
            case ("device", "list", "--format", "json"):
                return json.dumps([
                    {"id": "0", "pool": name.partition("/")[0], "namespace": "",
                     "name": name.partition("/")[2].partition("@")[0],
                     "snap": name.partition("@")[2] or "-", "device": device}
                    for name, device in self.mapped.items()
                ]).encode()  # fmt: skip
            case _:
                self.changes.append(words)
                return self._change(words)

    def _change(self, words: Sequence[str]) -> bytes:
        match words:
            case ("create", "--size", size, name):
                assert not self._path(name).exists()
                self._path(name).touch()
                os.truncate(self._path(name), int(size.removesuffix("M")) * MIB)
            case ("snap", "create", "--no-progress", name):
                shutil.copy(self._path(name.partition("@")[0]), self._path(name))
            case ("snap", "rm", "--no-progress", name):
                assert name not in self.mapped
                self._path(name).unlink()
            case ("snap", "rollback", "--no-progress", name):
                assert name.partition("@")[0] not in self.mapped
                shutil.copy(self._path(name), self._path(name.partition("@")[0]))
            case ("rm", "--no-progress", name):
                assert not list(self.root.glob(f"{name.replace('/', ':')}@*")), "it has snapshots"
                assert name not in self.mapped
                self._path(name).unlink()
            case ("resize", "--no-progress", "--size", size, name):
                assert int(size.removesuffix("M")) * MIB > self._size(name)
                os.truncate(self._path(name), int(size.removesuffix("M")) * MIB)
            case ("device", "map", name):
                assert name not in self.mapped
                self.mapped[name] = str(self._path(name))
                return f"{self.mapped[name]}\n".encode()
            case ("device", "unmap", device):
                self.mapped = {name: each for name, each in self.mapped.items() if each != device}
            case _:
                raise AssertionError(words)
        return b""

    def _size(self, name: str) -> int:
        try:
            return self._path(name).stat().st_size
        except FileNotFoundError as error:
            raise CommandFailed("rbd: error opening image", status=errno.ENOENT) from error

    def _path(self, name: str) -> Path:
        return self.root / name.replace("/", ":")


class Rig(Protocol):
    @property
    def storage(self) -> Storage: ...
    def use(self, disk: DiskSpec) -> None: ...


class FakeRig:
    def __init__(self, _root: Path, _: pytest.MonkeyPatch) -> None:
        self.files = FakeFiles()
        self.storage = FakeElsewhere(self.files)

    def use(self, disk: DiskSpec) -> None:
        self.files.in_use.add(f"rbd/{disk.id}.rbd")


class RbdRig:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rbd = PlayedRbd(root)
        self.root = root
        monkeypatch.setattr(driver, "execute", self.rbd.run)
        self.storage = self.started_anew()
        self.opened: list[int] = []

    def started_anew(self) -> RbdStorage:
        return RbdStorage(AttachedDevices(self.root / "attached"), is_device=stat.S_ISREG)

    def use(self, disk: DiskSpec) -> None:
        """Lock the device as QEMU locks its images."""
        self.opened.append(os.open(self.rbd.mapped[f"rbd/{disk.id}.rbd"], os.O_RDONLY))
        lock = struct.pack("hhqqi0q", fcntl.F_RDLCK, os.SEEK_SET, 100, 1, 0)
        fcntl.fcntl(self.opened[-1], fcntl.F_OFD_SETLK, lock)


@pytest.fixture(params=[FakeRig, RbdRig], ids=["fake", "commands"])
def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    kind: Callable[[Path, pytest.MonkeyPatch], Rig] = request.param
    return kind(tmp_path, monkeypatch)


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RbdRig:
    return RbdRig(tmp_path, monkeypatch)


def disk(*, id: DiskId = DISK_A, size: int = 8, user: str = "") -> DiskSpec:
    backing = RbdBacking(pool="rbd", image=f"{id}.rbd", user=user)
    return DiskSpec(id=id, instance=WEB1, size=MiB(size), backing=backing)


def test_created_image_is_found_grown_and_removed_however_often_it_is_asked(rig: Rig) -> None:
    assert run(rig.storage.find(disk())) is None
    run(rig.storage.ensure_absent(disk()))
    for _ in range(2):
        run(rig.storage.ensure_present(disk()))
    run(rig.storage.ensure_present(disk(size=4)))
    assert run(rig.storage.find(disk())) == DiskReport(id=DISK_A, instance=WEB1, size=MiB(8))
    for size in (12, 12, 4):
        run(rig.storage.grow(disk(size=size)))
    found = run(rig.storage.find(disk()))
    assert found is not None
    assert found.size == 12
    for _ in range(2):
        run(rig.storage.ensure_absent(disk()))
    assert run(rig.storage.find(disk())) is None


def test_image_is_opened_only_while_it_is_attached(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk()))
    with pytest.raises(NodeFailure, match="cannot be opened: it is not attached"):
        rig.storage.open(disk())
    paths = {run(rig.storage.attach(disk(), way)) for way in (Access.SOLE, Access.SHARED)}
    assert len(paths) == 1
    if (opened := rig.storage.open(disk())) >= 0:
        os.close(opened)
    with pytest.raises(NodeFailure, match="is attached; detach it first"):
        run(rig.storage.ensure_absent(disk()))
    for _ in range(2):
        run(rig.storage.detach(disk()))
    with pytest.raises(NodeFailure, match="cannot be opened: it is not attached"):
        rig.storage.open(disk())


def test_image_in_use_is_neither_detached_nor_removed(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk()))
    run(rig.storage.attach(disk(), Access.SOLE))
    rig.use(disk())
    for call in (rig.storage.detach, rig.storage.ensure_absent):
        with pytest.raises(NodeFailure, match="in use by a running guest"):
            run(call(disk()))
    assert run(rig.storage.find(disk())) is not None


def test_what_is_not_there_is_neither_attached_nor_grown(rig: Rig) -> None:
    with pytest.raises(NodeFailure, match="cannot be attached: it is not there"):
        run(rig.storage.attach(disk(), Access.SOLE))
    with pytest.raises(NodeFailure, match="cannot be grown: it is not there"):
        run(rig.storage.grow(disk(size=12)))
    run(rig.storage.detach(disk()))


def kept(of: DiskSpec) -> SnapshotSpec:
    assert isinstance(of.backing, RbdBacking)
    backing = replace(of.backing, image=f"{of.backing.image}@{DISK_B}")
    return SnapshotSpec(of=of, kept=replace(of, id=DISK_B, backing=backing), room=MiB(0))


def test_a_snapshot_is_read_beside_its_image_and_gone_back_to(rig: Rig) -> None:
    run(rig.storage.ensure_present(disk()))
    run(rig.storage.attach(disk(), Access.SOLE))
    run(rig.storage.take_snapshots([kept(disk())]))
    here, there = (
        run(rig.storage.attach(each, Access.SOLE)) for each in (disk(), kept(disk()).kept)
    )
    assert here != there
    run(rig.storage.detach(kept(disk()).kept))
    with pytest.raises(NodeFailure, match="is attached; detach it first"):
        run(rig.storage.roll_back(kept(disk())))
    run(rig.storage.detach(disk()))
    for _ in range(2):
        run(rig.storage.roll_back(kept(disk())))
    for _ in range(2):
        run(rig.storage.ensure_absent(kept(disk()).kept))
    assert run(rig.storage.find(kept(disk()).kept)) is None
    run(rig.storage.ensure_absent(disk()))


# From here on: what only the commands show.


def test_a_user_of_ceph_is_named_in_every_command(
    real: RbdRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Sequence[str]] = []

    async def note(*argv: str, timeout_s: float) -> Finished:
        ran.append(argv)
        return await real.rbd.run(*argv, timeout_s=timeout_s)

    monkeypatch.setattr(driver, "execute", note)
    wanted = disk(user="gantry")
    run(real.storage.ensure_present(wanted))
    run(real.storage.attach(wanted, Access.SOLE))
    run(real.storage.detach(wanted))
    run(real.storage.ensure_absent(wanted))
    assert {tuple(argv[:3]) for argv in ran} == {("rbd", "--id", "gantry")}
    assert [argv[3:5] for argv in ran if argv[3] != "info" and argv[4] != "list"] == [
        ("create", "--size"), ("device", "map"), ("device", "unmap"), ("rm", "--no-progress"),
    ]  # fmt: skip


def test_what_a_killed_noded_has_attached_is_known_to_the_kernel(real: RbdRig) -> None:
    run(real.storage.ensure_present(disk()))
    run(real.rbd.run("rbd", "device", "map", f"rbd/{DISK_A}.rbd", timeout_s=1))
    again = real.started_anew()
    with pytest.raises(NodeFailure, match="is attached; detach it first"):
        run(again.ensure_absent(disk()))
    run(again.attach(disk(), Access.SOLE))
    os.close(real.started_anew().open(disk()))
    run(again.detach(disk()))
    assert real.rbd.mapped == {}


def test_guest_gets_its_image_as_it_is_to_have_it(real: RbdRig) -> None:
    run(real.storage.ensure_present(disk()))
    run(real.storage.attach(disk(), Access.SOLE))
    for mode, access in ((Mode.READ_WRITE, os.O_RDWR), (Mode.READ_ONLY, os.O_RDONLY)):
        opened = real.storage.open(replace(disk(), mode=mode))
        assert fcntl.fcntl(opened, fcntl.F_GETFL) & os.O_ACCMODE == access
        os.close(opened)


def test_ceph_that_cannot_be_asked_is_not_taken_for_an_absent_image(
    real: RbdRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: str, timeout_s: float) -> Finished:
        raise CommandFailed(f"no monitor within {timeout_s:g} s", status=errno.ETIMEDOUT)

    monkeypatch.setattr(driver, "execute", refuse)
    for call in (real.storage.find, real.storage.ensure_absent, real.storage.ensure_present):
        with pytest.raises(CommandFailed, match="no monitor"):
            run(call(disk()))


@pytest.mark.parametrize(
    "backing",
    [
        RbdBacking(pool="rbd", image=f"{DISK_B}.rbd"),
        RbdBacking(pool="--all", image=f"{DISK_A}.rbd"),
        RbdBacking(pool="a/b", image=f"{DISK_A}.rbd"),
        RbdBacking(pool="rbd", image=f"{DISK_A}.rbd", user="--keyring=/etc/shadow"),
    ],
)
def test_what_is_not_the_disks_own_image_is_refused(real: RbdRig, backing: RbdBacking) -> None:
    with pytest.raises(InvalidRequest, match="is not this disk's"):
        run(real.storage.ensure_absent(replace(disk(), backing=backing)))
    with pytest.raises(InvalidRequest, match="is no image of a Ceph cluster"):
        real.storage.check_place(replace(disk(), backing=FileBacking(path="/x", shared=True)))


def test_another_image_or_a_snapshot_is_not_taken_for_the_disk() -> None:
    image = RbdBacking(pool="rbd", image="a.rbd")
    row = {"id": "0", "pool": "rbd", "namespace": "", "name": "a.rbd", "snap": "-",
           "device": "/dev/rbd7"}  # fmt: skip
    assert parse_device(json.dumps([row]).encode(), image) == "/dev/rbd7"
    for other in ({"pool": "p"}, {"namespace": "n"}, {"name": "b.rbd"}, {"snap": "monday"}):
        assert parse_device(json.dumps([row | other]).encode(), image) == ""
    assert parse_device(b"[]", image) == ""


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"size":"8"}'])
def test_what_rbd_never_says_is_no_size(text: bytes) -> None:
    with pytest.raises(NodeFailure, match="not known here"):
        parse_size(text)
