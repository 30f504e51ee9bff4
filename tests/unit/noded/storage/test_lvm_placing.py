import pytest

from common.errors import NodeFailure
from common.model.backing import LvmBacking
from common.names import DiskId, InstanceId, MiB
from noded.storage.lvm.parse import Group, PhysicalVolume
from noded.storage.lvm.placing import check_space, place
from noded.storage.lvm.volumes import NewVolume, Volume, VolumeReport

A, B = (DiskId(f"dddddddd-0000-4000-8000-00000000000{end}") for end in "ab")
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")


def group(free: dict[str, int], *volumes: VolumeReport) -> Group:
    devices = tuple(
        PhysicalVolume(
            name,
            name,
            MiB(1000),
            MiB(size),
            is_allocatable=True,
            is_missing=False,
            is_empty=size == 1000,
        )
        for name, size in free.items()
    )
    return Group(
        name="xenvg", size=MiB(4000), extent=MiB(4), devices=devices,
        volumes={each.place.name: each for each in volumes}, thin_pools={}, unzeroed={},
    )  # fmt: skip


def new(disk: DiskId, kind: str, size: int, *, stripes: int = 1) -> NewVolume:
    place = LvmBacking(group="xenvg", name=f"{disk}.{kind}")
    return NewVolume(Volume(place, disk, WEB1), MiB(size), stripes)


def test_all_of_an_instance_go_on_one_device_if_it_has_room() -> None:
    wanted = [new(A, "data", 100), new(A, "meta", 128), new(B, "data", 100)]
    chosen = place(wanted, group({"sda": 200, "sdb": 400, "sdc": 328}))
    assert set(chosen.values()) == {("sdb",)}
    assert len(chosen) == 3


def test_each_disk_stays_on_one_device_where_not_all_can() -> None:
    wanted = [
        new(A, "data", 300), new(B, "data", 300), new(A, "meta", 100), new(B, "meta", 100)
    ]  # fmt: skip
    chosen = place(wanted, group({"sda": 400, "sdb": 500}))
    assert chosen == {
        f"{A}.data": ("sdb",), f"{A}.meta": ("sdb",),
        f"{B}.data": ("sda",), f"{B}.meta": ("sda",),
    }  # fmt: skip


def test_what_is_on_one_device_alone_in_no_way_is_spread() -> None:
    assert place([new(A, "data", 600)], group({"sda": 400, "sdb": 500})) == {}
    check_space([new(A, "data", 600)], group({"sda": 400, "sdb": 500}))


def test_later_disks_join_the_earlier_ones() -> None:
    place_of_a = LvmBacking(group="xenvg", name=f"{A}.disk")
    there = VolumeReport(place_of_a, MiB(4), "u", disk=A, instance=WEB1, devices=("sda",))
    assert place([new(B, "disk", 100)], group({"sda": 100, "sdb": 900}, there)) == {
        f"{B}.disk": ("sda",)
    }


def test_stripes_go_where_lvm_puts_them_and_take_whole_rows() -> None:
    striped = new(A, "disk", 100, stripes=2)
    assert place([striped], group({"sda": 400, "sdb": 500})) == {}
    with pytest.raises(NodeFailure, match="no space for a disk of 104M in xenvg: 100M are free"):
        check_space([striped], group({"sda": 50, "sdb": 50}))
