"""What LVM said, read: recorded from LVM2 2.03.16 with two physical volumes."""

from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.model.backing import LvmBacking
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import DiskId, InstanceId, MiB
from noded.storage.lvm.parse import (
    Group,
    ThinPool,
    parse_created,
    parse_groups,
    parse_in_use,
    parse_missing,
)
from noded.storage.lvm.room import room_in
from noded.storage.lvm.volumes import VolumeReport

HERE = Path(__file__).parent
DISK = DiskId("0e1b3c8a-1111-4222-8333-444455556666")
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")


def recorded(name: str) -> Group:
    return parse_groups((HERE / name).read_bytes())["two"]


def test_volume_of_ours_is_told_by_its_tags() -> None:
    assert recorded("lvm-2.03.16.json").volumes[f"{DISK}.data"] == VolumeReport(
        place=LvmBacking(group="two", name=f"{DISK}.data"),
        size=MiB(104),
        uuid="7FaIhq-dqPu-uh7h-EVZI-t1Nd-Tjon-MjKl4V",
        disk=DISK,
        instance=WEB1,
        is_unfinished=True,
        is_active=True,
        is_open=True,
        devices=("/dev/loop0", "/dev/loop1"),
    )


def test_a_group_that_lacks_a_device_has_no_room_and_says_how_it_does_without() -> None:
    pool = Pool(kind=PoolKind.VOLUME_GROUP, name="two")
    room = room_in(pool, recorded("lvm-2.03.16-missing.json"))
    assert (room.usable, room.free) == (False, 0)
    assert "“gnt-node repair-storage NODE lvm-vg two”" in room.problem


def test_what_others_made_belongs_to_nobody() -> None:
    volumes = recorded("lvm-2.03.16.json").volumes
    assert {name for name, each in volumes.items() if each.disk is None} == {
        "spill", "snap", f"{DISK}.snap",  # the last has but one of our tags
    }  # fmt: skip
    assert volumes["snap"].origin == f"{DISK}.data"


def test_thin_volumes_and_their_pools_are_told() -> None:
    group = recorded("lvm-2.03.16.json")
    assert group.volumes[f"{DISK}.disk"].place.thin_pool == "thin"
    assert group.thin_pools["thin"] == ThinPool(
        size=MiB(64),
        is_whole=True,
        zeroes=True,
        data_percent=93.75,
        metadata_percent=11.82,
        allotted=MiB(256),
    )
    assert not group.thin_pools["leaky"].zeroes


def test_free_is_what_can_be_allocated() -> None:
    group = recorded("lvm-2.03.16.json")
    assert (group.size, group.extent, group.free) == (1016, 4, 288)
    assert recorded("lvm-2.03.16-missing.json").free == 0


def test_what_lacks_a_device_is_not_whole() -> None:
    group = recorded("lvm-2.03.16-missing.json")
    whole = {name for name, each in group.volumes.items() if each.is_whole}
    assert whole == {"spill"}
    assert [each.is_missing for each in group.devices] == [False, True]
    assert not group.volumes[f"{DISK}.data"].is_open  # which LVM does not know
    assert group.thin_pools["thin"].data_percent is None


def test_reports_of_another_kind_are_refused() -> None:
    for text in (b"", b"{}", b'{"report": [{}]}', b'{"report": [{"vg": [{"vg_name": "x"}]}]}'):
        with pytest.raises(NodeFailure, match="in a way that is not known"):
            parse_groups(text)


def test_what_lvm_says_is_understood() -> None:
    assert parse_missing('  Volume group "a" not found\n  Cannot process volume group a\n') == (
        "a",
    )
    made = b'  WARNING: two/x not zeroed.\n  Logical volume "x.disk" created.\n'
    assert parse_created(made) == {"x.disk"}
    assert parse_in_use("  Logical volume two/striped in use.\n") == ("two/striped",)
    assert parse_in_use("  Logical volume two/a contains a filesystem in use.") == ("two/a",)
