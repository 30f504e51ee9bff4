"""What adopted devices promise, kept by the real driver on files, and by the fake."""

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import BlockBacking, FileBacking
from common.names import DiskId, MiB
from common.noderpc.disks import Access, DiskReport, DiskSpec
from noded.storage.adopted import AdoptedStorage
from noded.storage.attached import AttachedDevices
from noded.storage.fake import FakeFiles
from noded.storage.fake_elsewhere import FakeAdopted
from noded.storage.interface import Storage
from tests.support.file_rigs import DISK_A, DISK_B, WEB1, run


class Rig(Protocol):
    """Where devices are, some of them there."""

    @property
    def storage(self) -> Storage: ...
    def path(self, name: str) -> str: ...
    def put(self, name: str, size: int) -> None: ...
    def use(self, name: str) -> None: ...
    def is_there(self, name: str) -> bool: ...


class FakeRig:
    def __init__(self, _root: Path) -> None:
        self.files = FakeFiles()
        self.storage = FakeAdopted(self.files)

    def path(self, name: str) -> str:
        return f"/dev/disk/by-id/{name}"

    def put(self, name: str, size: int) -> None:
        report = DiskReport(id=DiskId(name), instance=None, size=MiB(size))
        self.files.disks[self.path(name)] = report

    def use(self, name: str) -> None:
        self.files.in_use.add(self.path(name))

    def is_there(self, name: str) -> bool:
        return self.path(name) in self.files.disks


class DeviceRig:
    """Files stand for devices."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "disk/by-id").mkdir(parents=True)
        self.storage = AdoptedStorage(
            AttachedDevices(root / "attached"), root=str(root / "disk"), is_device=stat.S_ISREG
        )
        self.opened: list[int] = []

    def path(self, name: str) -> str:
        return str(self.root / "disk/by-id" / name)

    def put(self, name: str, size: int) -> None:
        Path(self.path(name)).write_bytes(b"precious")
        os.truncate(self.path(name), size << 20)

    def use(self, name: str) -> None:
        """Lock the device as QEMU locks its images."""
        self.opened.append(os.open(self.path(name), os.O_RDONLY))
        lock = struct.pack("hhqqi0q", fcntl.F_RDLCK, os.SEEK_SET, 100, 1, 0)
        fcntl.fcntl(self.opened[-1], fcntl.F_OFD_SETLK, lock)

    def is_there(self, name: str) -> bool:
        return Path(self.path(name)).read_bytes().startswith(b"precious")


@pytest.fixture(params=[FakeRig, DeviceRig], ids=["fake", "devices"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    kind: Callable[[Path], Rig] = request.param
    return kind(tmp_path)


@pytest.fixture
def real(tmp_path: Path) -> DeviceRig:
    return DeviceRig(tmp_path)


def disk(rig: Rig, name: str = "lun", *, id: DiskId = DISK_A, size: int = 8) -> DiskSpec:
    backing = BlockBacking(device=rig.path(name))
    return DiskSpec(id=id, instance=WEB1, size=MiB(size), backing=backing)


def test_a_device_becomes_a_disk_and_outlives_it_with_its_data(rig: Rig) -> None:
    rig.put("lun", 8)
    for _ in range(2):
        run(rig.storage.ensure_present(disk(rig)))
    assert run(rig.storage.find(disk(rig))) == DiskReport(id=DISK_A, instance=WEB1, size=MiB(8))
    run(rig.storage.attach(disk(rig), Access.SOLE))
    with pytest.raises(NodeFailure, match="is attached; detach it first"):
        run(rig.storage.ensure_absent(disk(rig)))
    for _ in range(2):
        run(rig.storage.detach(disk(rig)))
    for _ in range(2):
        run(rig.storage.ensure_absent(disk(rig)))
    assert rig.is_there("lun")


def test_a_device_that_is_missing_or_of_another_size_is_refused(rig: Rig) -> None:
    with pytest.raises(NodeFailure, match="There is no device"):
        run(rig.storage.ensure_present(disk(rig)))
    assert run(rig.storage.find(disk(rig))) is None
    with pytest.raises(NodeFailure, match="cannot be attached: it is not there"):
        run(rig.storage.attach(disk(rig), Access.SOLE))
    rig.put("lun", 8)
    with pytest.raises(InvalidRequest, match="has 8M, not 9M; give size=8M with it"):
        run(rig.storage.ensure_present(disk(rig, size=9)))


def test_two_disks_do_not_get_one_device(rig: Rig) -> None:
    rig.put("lun", 8)
    run(rig.storage.attach(disk(rig), Access.SOLE))
    other = disk(rig, id=DISK_B)
    for call in (rig.storage.ensure_present(other), rig.storage.attach(other, Access.SOLE)):
        with pytest.raises(NodeFailure, match="is attached for another disk"):
            run(call)
    run(rig.storage.attach(disk(rig), Access.SHARED))
    run(rig.storage.detach(disk(rig)))
    run(rig.storage.attach(other, Access.SOLE))


def test_a_device_is_opened_only_while_it_is_attached_and_not_detached_in_use(rig: Rig) -> None:
    rig.put("lun", 8)
    with pytest.raises(NodeFailure, match="cannot be opened: it is not attached"):
        rig.storage.open(disk(rig))
    run(rig.storage.attach(disk(rig), Access.SOLE))
    if (opened := rig.storage.open(disk(rig))) >= 0:
        os.close(opened)
    rig.use("lun")
    for call in (rig.storage.detach, rig.storage.ensure_absent):
        with pytest.raises(NodeFailure, match="in use by a running guest"):
            run(call(disk(rig)))


def test_a_device_is_grown_where_it_comes_from(rig: Rig) -> None:
    with pytest.raises(NodeFailure, match="cannot be grown: it is not there"):
        run(rig.storage.grow(disk(rig)))
    rig.put("lun", 8)
    with pytest.raises(NodeFailure, match="is grown where it comes"):
        run(rig.storage.grow(disk(rig, size=12)))
    rig.put("lun", 12)
    run(rig.storage.grow(disk(rig, size=12)))
    run(rig.storage.grow(disk(rig, size=4)))


# From here on: what only real devices show.


@pytest.mark.parametrize(
    "name", ["/dev/sda", "{root}/disk", "{root}/disk/x", "{root}/disk/by-id/../x", "", "lun"]
)
def test_only_names_that_udev_keeps_are_taken(real: DeviceRig, name: str) -> None:
    place = BlockBacking(device=name.format(root=real.root))
    with pytest.raises(InvalidRequest, match="is no path below"):
        run(real.storage.ensure_present(replace(disk(real), backing=place)))
    with pytest.raises(InvalidRequest, match="is no adopted device"):
        real.storage.check_place(replace(disk(real), backing=FileBacking(path="/x", shared=True)))


def test_two_names_of_one_device_are_one_device(real: DeviceRig) -> None:
    real.put("lun", 8)
    Path(real.path("wwn")).symlink_to(real.path("lun"))
    run(real.storage.attach(disk(real), Access.SOLE))
    with pytest.raises(NodeFailure, match="wwn is attached for another disk"):
        run(real.storage.attach(disk(real, "wwn", id=DISK_B), Access.SOLE))


def test_a_device_that_is_mounted_is_left_alone(
    real: DeviceRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel lets nobody have a device exclusively that it uses itself: open(2), O_EXCL."""
    real.put("lun", 8)
    plain = os.open

    def refuse(path: str, flags: int, *rest: int) -> int:
        if flags & os.O_EXCL:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return plain(path, flags, *rest)

    monkeypatch.setattr(os, "open", refuse)
    for call in (real.storage.ensure_present(disk(real)),
                 real.storage.attach(disk(real), Access.SOLE)):  # fmt: skip
        with pytest.raises(NodeFailure, match="in use on this node: mounted"):
            run(call)


def test_what_is_no_device_is_not_taken_for_one(real: DeviceRig) -> None:
    os.mkfifo(real.path("lun"))
    with pytest.raises(NodeFailure, match="it is no block device"):
        run(real.storage.ensure_present(disk(real)))
