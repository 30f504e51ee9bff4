"""Volumes that share their physical volumes with nobody: which ones they get."""

from dataclasses import replace

import pytest

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import LvmBacking
from common.model.spindles import differ_too_much, spindles_for, standard_size
from common.names import DiskId, InstanceId, MiB
from common.noderpc.facts import Spindles
from noded.storage.lvm.exclusive import devices_to_grow_on, kept_on
from noded.storage.lvm.parse import Group, PhysicalVolume
from noded.storage.lvm.placing import lay_out
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume, VolumeReport
from tests.unit.noded.storage.lvm_program import Lvm, row, run, snapshot
from tests.unit.noded.storage.lvm_program import volume as disk_volume

A, B = (DiskId(f"dddddddd-0000-4000-8000-00000000000{end}") for end in "ab")
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")


def group(free: dict[str, int], *volumes: VolumeReport, size: int = 1000) -> Group:
    devices = tuple(
        PhysicalVolume(
            name, name, MiB(size), MiB(left), is_allocatable=name != "closed", is_missing=False,
            is_empty=left == size,
        )
        for name, left in free.items()
    )  # fmt: skip
    return Group(
        name="xenvg", size=MiB(4000), extent=MiB(4), devices=devices,
        volumes={each.place.name: each for each in volumes}, thin_pools={}, unzeroed={},
    )  # fmt: skip


def volume(disk: DiskId = A, kind: str = "disk", *, thin_pool: str = "") -> Volume:
    return Volume(LvmBacking(group="xenvg", name=f"{disk}.{kind}", thin_pool=thin_pool), disk, WEB1)


def new(
    size: int, spindles: int | None, disk: DiskId = A, *, stripes: int = 1, thin_pool: str = ""
) -> NewVolume:
    made = volume(disk, thin_pool=thin_pool)
    return NewVolume(made, MiB(size), stripes=stripes, spindles=spindles)


def there(*devices: str, size: int = 500, disk: DiskId = A) -> VolumeReport:
    place = volume(disk).place
    return VolumeReport(place, MiB(size), "u", disk=disk, instance=WEB1, devices=devices)


def test_each_disk_gets_empty_ones_alone_and_is_spread_over_all() -> None:
    free = {"sda": 1000, "sdb": 500, "sdc": 1000, "sdd": 1000, "closed": 1000}
    laid = lay_out([new(100, 2, stripes=5), new(900, 1, B)], group(free))
    assert [(each.volume.disk, each.stripes, devices) for each, devices in laid] == [
        (A, 2, ("sda", "sdc")), (B, 1, ("sdd",)),
    ]  # fmt: skip


def test_those_that_share_are_put_as_ever() -> None:
    ((made, devices),) = lay_out([new(100, None)], group({"sda": 900, "sdb": 1000}))
    assert (made.stripes, devices) == (1, ("sdb",))


def test_there_have_to_be_as_many_empty_as_wished() -> None:
    with pytest.raises(NodeFailure, match="for itself, and 1 are empty"):
        lay_out([new(8, 1), new(8, 2, B)], group({"sda": 1000, "sdb": 1000, "sdc": 996}))


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (new(8, 0), "It was not said how many"),
        (new(8, 1, thin_pool="thin"), "cannot be in a thin pool"),
        (new(972, 1), "needs 2 physical volumes for itself, and was to have 1"),
    ],
)
def test_what_could_not_be_kept_apart_is_refused(wanted: NewVolume, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        lay_out([wanted], group({"sda": 1000, "sdb": 1000}))


def test_whole_rows_of_extents_have_to_fit() -> None:
    """Of 15 MiB the standard counts 14, and three extents of 4 are there."""
    free = {"sda": 15, "sdb": 15}
    with pytest.raises(NodeFailure, match="no space for a disk of 28M in xenvg: 24M are free"):
        lay_out([new(28, 2)], group(free, size=15))
    assert lay_out([new(24, 2)], group(free, size=15))


def test_a_volume_grows_up_to_the_standard_of_those_that_it_has() -> None:
    its, free = there("sda", "sdb"), {"sda": 750, "sdb": 750, "sdc": 1000}
    found = group(free, its)
    assert devices_to_grow_on(volume(), MiB(1936), its, found) == ("sda", "sdb")
    with pytest.raises(NodeFailure, match="There is no space to grow the disk") as told:
        devices_to_grow_on(volume(), MiB(1944), its, found)
    assert told.value.detail["free_mib"] == 1440


def test_a_snapshot_is_beside_what_it_keeps() -> None:
    found = group({"sda": 500, "sdb": 1000}, there("sda"))
    for room in (500, 504):
        wanted = NewSnapshot(volume(), NewVolume(volume(kind="s"), MiB(room), spindles=1))
        if room == 500:
            assert kept_on(wanted, found) == ("sda",)
            continue
        with pytest.raises(NodeFailure, match="no space for a disk of 504M in the physical vol"):
            kept_on(wanted, found)
    shared = NewSnapshot(volume(), NewVolume(volume(kind="s"), MiB(504)))
    assert kept_on(shared, found) == ()


def test_lvm_is_told_which_ones_to_take(program: Lvm) -> None:
    wanted = NewVolume(disk_volume(), MiB(8), stripes=3, spindles=1)
    run(lambda volumes: volumes.ensure_present([wanted]))
    (made,) = [line for line in program.changes if line.startswith("lvcreate")]
    assert made.endswith(f"--name {disk_volume().place.name} xenvg /dev/sda")
    assert "--stripes" not in made


def test_lvm_is_told_to_stay_on_them(program: Lvm) -> None:
    name = disk_volume().place.name
    program.volumes = [row(disk_volume(), lv_active="active")]
    program.segments = [{"lv_name": name, "devices": "/dev/sda(0)", "zero": ""}]
    run(lambda volumes: volumes.grow(disk_volume(), MiB(16), alone=True))
    assert f"lvextend --size 16m xenvg/{name} /dev/sda" in program.changes
    of = snapshot(0)
    kept = NewSnapshot(of.volume, replace(of.kept, spindles=1))
    run(lambda volumes: volumes.snapshot([kept]))
    assert program.changes[-1].endswith(f"xenvg/{name} /dev/sda")


def test_a_group_tells_of_those_that_new_volumes_can_have() -> None:
    free = {"sda": 1000, "sdb": 500, "closed": 1000}
    assert group(free).spindles == Spindles(total=2, free=1, smallest=MiB(1000), largest=MiB(1000))
    assert group({}).spindles == Spindles(total=0, free=0, smallest=MiB(0), largest=MiB(0))


def test_sizes_are_counted_as_ganeti_counts_them() -> None:
    assert standard_size(MiB(1000)) == 970
    assert [spindles_for(MiB(size), MiB(1000)) for size in (1, 970, 971, 1940)] == [1, 1, 2, 2]
    assert spindles_for(MiB(1), MiB(0)) is None
    assert not differ_too_much(MiB(1000), MiB(1020))
    assert differ_too_much(MiB(1000), MiB(1021))
