import errno
import os
import stat
from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.model.backing import LvmBacking
from common.names import DiskId, InstanceId
from noded.storage.lvm import device
from noded.storage.lvm.device import (
    can_be_read,
    check_device,
    find_uuid,
    mapper_path,
    open_device,
)
from noded.storage.lvm.volumes import Volume

DISK = DiskId("0e1b3c8a-1111-4222-8333-444455556666")
VOLUME = Volume(LvmBacking(group="my-vg", name=f"{DISK}.disk"), DISK, InstanceId("-"))
NAME = "my--vg-0e1b3c8a--1111--4222--8333--444455556666.disk"
UUID = "M4rvYw-EYRJ-G6Vg-1z7I-aOty-pE2V-KYHPoc"
MARK = "LVM-nXwct7AKkuOghxio7JAudUTj3BO5t5QMM4rvYwEYRJG6Vg1z7IaOtypE2VKYHPoc"


def told(sysfs: Path, name: str = NAME, mark: str = MARK) -> os.stat_result:
    """Have the kernel tell of a device; return what is seen of its file."""
    about = sysfs / "254:3" / "dm"
    about.mkdir(parents=True)
    (about / "name").write_text(f"{name}\n")
    (about / "uuid").write_text(f"{mark}\n")
    seen = list(Path("/").stat())
    seen[0] = stat.S_IFBLK | 0o660
    return os.stat_result([*seen, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, os.makedev(254, 3)])


def test_device_is_known_by_the_names_of_group_and_volume() -> None:
    assert mapper_path(VOLUME) == f"/dev/mapper/{NAME}"


def test_device_of_the_volume_is_taken(tmp_path: Path) -> None:
    check_device(VOLUME, told(tmp_path), UUID, sysfs=tmp_path)
    check_device(VOLUME, told(tmp_path / "2"), sysfs=tmp_path / "2")


@pytest.mark.parametrize(
    ("name", "mark", "words"),
    [
        ("my--vg-other", MARK, "the device my--vg-other is there"),
        (NAME, "CRYPT-LUKS2-abc", f"the device {NAME} is there"),
        (NAME, MARK[:-1] + "x", "another volume has got its name"),
    ],
)
def test_any_other_device_is_refused(tmp_path: Path, name: str, mark: str, words: str) -> None:
    with pytest.raises(NodeFailure, match=words):
        check_device(VOLUME, told(tmp_path, name, mark), UUID, sysfs=tmp_path)


def test_what_is_no_device_of_the_mapper_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NodeFailure, match="no block device"):
        check_device(VOLUME, Path("/dev/null").stat(), sysfs=tmp_path)
    with pytest.raises(NodeFailure, match="of something else is there"):
        check_device(VOLUME, told(tmp_path), sysfs=tmp_path / "empty")
    with pytest.raises(NodeFailure, match="it is not attached"):
        open_device(VOLUME, os.O_RDONLY)


def test_a_device_tells_which_volume_it_is_of_if_its_name_is_the_volumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_uuid(VOLUME, sysfs=tmp_path) == ""  # there is none
    for number, (name, mark, uuid) in enumerate(
        ((NAME, MARK, UUID.replace("-", "")), (NAME, "CRYPT-LUKS2-abc", ""), ("other", MARK, ""))
    ):
        sysfs = tmp_path / str(number)
        seen = told(sysfs, name, mark)
        monkeypatch.setattr(Path, "stat", lambda _, seen=seen: seen)
        found = find_uuid(VOLUME, sysfs=sysfs)
        monkeypatch.undo()
        assert found == uuid


def test_a_device_that_fails_or_is_not_there_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not can_be_read(VOLUME, UUID), "there is none"
    place = tmp_path / "device"
    place.write_bytes(bytes(1 << 16))
    monkeypatch.setattr(device, "open_device", lambda *_, **__: os.open(place, os.O_RDONLY))
    assert can_be_read(VOLUME, UUID)

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "preadv", fail)
    assert not can_be_read(VOLUME, UUID)
