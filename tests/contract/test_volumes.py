"""What logical volumes promise to the disks that are made of them: the fake, and LVM."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import Conflict, NodeFailure
from common.model.backing import LvmBacking
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import DiskId, MiB
from noded.storage.lvm import commands
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume, VolumeReport
from tests.support.file_rigs import DISK_A, DISK_B, run
from tests.support.volumes import WEB1, FakePlainRig, LvmRig, lvm

Rig = FakePlainRig | LvmRig


@pytest.fixture(params=[FakePlainRig, LvmRig], ids=["fake", "lvm"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    made: Rig = request.param(tmp_path)
    yield made
    if isinstance(made, LvmRig):
        made.close()


@pytest.fixture
def real(tmp_path: Path) -> Iterator[LvmRig]:
    made = LvmRig(tmp_path)
    yield made
    made.close()


def volume(rig: Rig, kind: str = "data", disk: DiskId = DISK_A, *, thin_pool: str = "") -> Volume:
    place = LvmBacking(group=rig.group, name=f"{disk}.{kind}", thin_pool=thin_pool)
    return Volume(place, disk, WEB1)


def make(rig: Rig, *volumes: Volume, size: int = 8) -> None:
    run(rig.volumes.ensure_present([NewVolume(each, MiB(size)) for each in volumes]))


def snapshot_of(rig: Rig, disk: DiskId = DISK_A, *, room: int = 8) -> NewSnapshot:
    kept = NewVolume(volume(rig, "snapshot", disk), MiB(room))
    return NewSnapshot(volume(rig, disk=disk), kept)


def names(rig: Rig) -> list[str]:
    return sorted(each.place.name for each in run(rig.volumes.inventory(rig.pool)))


def test_several_are_made_attached_and_removed_at_once(rig: Rig) -> None:
    every = (volume(rig), volume(rig, "meta"), volume(rig, disk=DISK_B))
    make(rig, *every)
    assert [each.is_active for each in run(rig.volumes.find(every)) if each] == [False] * 3
    assert len(set(run(rig.volumes.activate(every)))) == 3
    assert [each.is_active for each in run(rig.volumes.find(every)) if each] == [True] * 3
    run(rig.volumes.deactivate(every))
    run(rig.volumes.ensure_absent(every))
    assert names(rig) == []


def test_what_is_used_at_once_is_attached_when_it_is_made(rig: Rig) -> None:
    made = [NewVolume(each, MiB(8)) for each in (volume(rig), volume(rig, "meta"))]
    paths = run(rig.volumes.ensure_active(made))
    every = [new.volume for new in made]
    assert [each.is_active for each in run(rig.volumes.find(every)) if each] == [True, True]
    assert run(rig.volumes.activate(every)) == paths == run(rig.volumes.ensure_active(made))
    run(rig.volumes.deactivate(every))
    assert run(rig.volumes.ensure_active(made)) == paths
    assert [each.is_active for each in run(rig.volumes.find(every)) if each] == [True, True]


def test_what_tells_of_a_lost_volume_is_made_anew_with_it(rig: Rig) -> None:
    data, meta = volume(rig), volume(rig, "meta")
    made = [NewVolume(data, MiB(8)), NewVolume(meta, MiB(8), tells_of=data)]

    def uuids() -> list[str]:
        return [each.uuid for each in run(rig.volumes.find([data, meta])) if each]

    run(rig.volumes.ensure_active(made))
    before = uuids()
    run(rig.volumes.ensure_active(made))
    assert uuids() == before
    run(rig.volumes.ensure_absent([meta]))
    run(rig.volumes.ensure_active(made))
    assert uuids()[0] == before[0]
    before = uuids()
    run(rig.volumes.ensure_absent([data]))
    run(rig.volumes.ensure_active(made))
    assert not set(uuids()).intersection(before)


def test_if_there_is_no_room_for_all_none_is_made(rig: Rig) -> None:
    huge = NewVolume(volume(rig, "meta"), MiB(1 << 30))
    with pytest.raises(NodeFailure, match="no space for a disk of"):
        run(rig.volumes.ensure_present([NewVolume(volume(rig), MiB(8)), huge]))
    assert names(rig) == []


def test_a_volume_gets_another_name_once(rig: Rig) -> None:
    old, new = volume(rig), volume(rig, "data.old")
    make(rig, old)
    for _ in range(2):
        run(rig.volumes.rename([(old, new)]))
    assert names(rig) == [new.place.name]
    make(rig, old)
    with pytest.raises(Conflict, match=DISK_A):
        run(rig.volumes.rename([(old, new)]))
    run(rig.volumes.ensure_absent([old, new]))
    with pytest.raises(NodeFailure, match="cannot be renamed: it is not there"):
        run(rig.volumes.rename([(old, new)]))


def test_a_snapshot_is_taken_once_and_goes_with_its_volume(rig: Rig) -> None:
    make(rig, volume(rig))
    snapshot = snapshot_of(rig, room=4)
    for _ in range(2):
        run(rig.volumes.snapshot([snapshot]))
    (found,) = run(rig.volumes.find([snapshot.kept.volume]))
    assert found is not None
    assert found.origin == volume(rig).place.name
    assert found.size == 8
    run(rig.volumes.ensure_absent([volume(rig)]))
    assert names(rig) == []


def test_there_is_no_snapshot_of_what_is_not_there(rig: Rig) -> None:
    with pytest.raises(NodeFailure, match="it is not there"):
        run(rig.volumes.snapshot([snapshot_of(rig)]))
    with pytest.raises(NodeFailure, match="it is not there"):
        run(rig.volumes.roll_back(volume(rig), volume(rig, "snapshot")))


def test_rolled_back_is_rolled_back_once(rig: Rig) -> None:
    make(rig, volume(rig))
    run(rig.volumes.snapshot([snapshot_of(rig)]))
    for _ in range(2):
        run(rig.volumes.roll_back(volume(rig), volume(rig, "snapshot")))
    assert run(rig.volumes.find([volume(rig, "snapshot")])) == (None,)


def test_snapshots_of_several_are_taken_at_once_or_none_is(rig: Rig) -> None:
    make(rig, volume(rig), volume(rig, disk=DISK_B))
    huge = snapshot_of(rig, DISK_B, room=1 << 30)
    with pytest.raises(NodeFailure, match="no space for a disk of"):
        run(rig.volumes.snapshot([snapshot_of(rig), huge]))
    assert len(names(rig)) == 2
    run(rig.volumes.snapshot([snapshot_of(rig), snapshot_of(rig, DISK_B)]))
    assert len(names(rig)) == 4


def test_a_snapshot_is_read_while_its_volume_is_in_use(rig: Rig) -> None:
    make(rig, volume(rig))
    run(rig.volumes.activate([volume(rig)]))
    rig.use(volume(rig).name)
    run(rig.volumes.snapshot([snapshot_of(rig)]))
    kept = snapshot_of(rig).kept.volume
    run(rig.volumes.activate([kept]))
    descriptor = rig.volumes.open(kept, read_only=True)
    if descriptor >= 0:
        os.close(descriptor)
    run(rig.volumes.deactivate([kept]))
    run(rig.volumes.ensure_absent([kept]))
    assert names(rig) == [volume(rig).place.name]


def strange(rig: Rig, name: str = "old-server", *, size: int = 8) -> None:
    """Have a volume that somebody else has made."""
    if isinstance(rig, LvmRig):
        lvm("lvcreate", "--yes", "-Wn", "-Zn", "-ay", "-L", f"{size}M", "-n", name, rig.group)
    else:
        place = LvmBacking(group=rig.group, name=name)
        rig.fake.groups[rig.group].volumes[name] = VolumeReport(place, MiB(size), "u")


def test_what_is_adopted_is_a_disks_until_it_is_given_back(rig: Rig) -> None:
    strange(rig)
    for _ in range(2):
        run(rig.volumes.adopt("old-server", volume(rig), MiB(8)))
    (found,) = run(rig.volumes.find([volume(rig)]))
    assert found is not None
    assert (found.size, found.is_active, found.adopted_by) == (8, False, None)
    for _ in range(2):
        run(rig.volumes.give_back(volume(rig), "old-server"))
    (found,) = run(rig.volumes.inventory(rig.pool))
    assert (found.place.name, found.disk, found.adopted_by) == ("old-server", None, None)
    run(rig.volumes.give_back(volume(rig), "old-server"))
    assert names(rig) == ["old-server"]


def test_what_is_in_use_or_another_disks_or_of_another_size_is_not_adopted(rig: Rig) -> None:
    strange(rig)
    make(rig, volume(rig, disk=DISK_B))
    with pytest.raises(NodeFailure, match="there is no volume"):
        run(rig.volumes.adopt("older-server", volume(rig), MiB(8)))
    with pytest.raises(NodeFailure, match="has 8 MiB, and not 16"):
        run(rig.volumes.adopt("old-server", volume(rig), MiB(16)))
    with pytest.raises(Conflict, match=DISK_B):
        run(rig.volumes.adopt(f"{DISK_B}.data", volume(rig), MiB(8)))
    rig.use(f"{rig.group}/old-server")
    with pytest.raises(NodeFailure, match="in use"):
        run(rig.volumes.adopt("old-server", volume(rig), MiB(8)))
    assert names(rig) == [f"{DISK_B}.data", "old-server"]


# From here on: what only LVM can do.


def content(real: LvmRig, of: Volume, new: bytes | None = None) -> bytes:
    """Return the beginning of a volume, after writing to it, if that is wanted."""
    run(real.volumes.activate([of]))
    descriptor = real.volumes.open(of, read_only=new is None)
    try:
        if new is not None:
            os.pwrite(descriptor, new, 0)
            os.fsync(descriptor)
        return os.pread(descriptor, 16, 0)
    finally:
        os.close(descriptor)
        run(real.volumes.deactivate([of]))


def test_what_a_former_volume_held_is_not_seen(real: LvmRig) -> None:
    make(real, volume(real))
    assert content(real, volume(real), b"secret of web1!!") == b"secret of web1!!"
    run(real.volumes.ensure_absent([volume(real)]))
    make(real, volume(real, disk=DISK_B))
    assert content(real, volume(real, disk=DISK_B)) == bytes(16)


def test_what_is_added_is_zeros_and_the_rest_stays(real: LvmRig) -> None:
    make(real, volume(real), volume(real, "meta"))
    content(real, volume(real, "meta"), b"secret of web2!!")
    content(real, volume(real), b"precious")
    run(real.volumes.ensure_absent([volume(real, "meta")]))  # what follows the first
    run(real.volumes.grow(volume(real), MiB(16)))
    assert content(real, volume(real)) == b"precious" + bytes(8)
    run(real.volumes.activate([volume(real)]))
    descriptor = real.volumes.open(volume(real), read_only=True)
    assert os.lseek(descriptor, 0, os.SEEK_END) == 16 << 20
    assert not any(os.pread(descriptor, 8 << 20, 8 << 20))
    os.close(descriptor)


def test_rolling_back_brings_back_what_was_there(real: LvmRig) -> None:
    make(real, volume(real))
    content(real, volume(real), b"before")
    run(real.volumes.snapshot([snapshot_of(real)]))
    content(real, volume(real), b"after!")
    run(real.volumes.roll_back(volume(real), volume(real, "snapshot")))
    assert content(real, volume(real)).startswith(b"before")


def test_a_snapshot_that_has_overflowed_is_told_and_not_gone_back_to(real: LvmRig) -> None:
    make(real, volume(real), size=16)
    run(real.volumes.snapshot([snapshot_of(real, room=4)]))
    content(real, volume(real), bytes(range(256)) * (8 << 12))
    with pytest.raises(NodeFailure, match="what it kept is lost"):
        run(real.volumes.activate([volume(real)]))
        run(real.volumes.roll_back(volume(real), snapshot_of(real).kept.volume))
    (found,) = run(real.volumes.find([snapshot_of(real).kept.volume]))
    assert found is not None
    assert found.is_lost


def test_what_is_adopted_keeps_its_data(real: LvmRig) -> None:
    strange(real)
    with Path(f"/dev/{real.group}/old-server").open("r+b", buffering=0) as device:
        device.write(b"precious".ljust(4096))
        os.fsync(device.fileno())
    run(real.volumes.adopt("old-server", volume(real), MiB(8)))
    assert content(real, volume(real)).startswith(b"precious")


@pytest.mark.parametrize("step", [0, 1, 2])
def test_an_adoption_that_was_cut_off_goes_on_or_back(real: LvmRig, step: int) -> None:
    steps = (
        commands.begin_adoption(volume(real), "old-server"),
        commands.take_name(volume(real), "old-server"),
        commands.end_adoption(volume(real)),
    )
    for again in (True, False):
        strange(real)
        for command in steps[: step + 1]:
            lvm(*command)
        if again:
            run(real.volumes.adopt("old-server", volume(real), MiB(8)))
            assert names(real) == [volume(real).place.name]
            run(real.volumes.ensure_absent([volume(real)]))
        else:
            run(real.volumes.give_back(volume(real), "old-server"))
            (found,) = run(real.volumes.inventory(real.pool))
            assert (found.place.name, found.disk, found.adopted_by) == ("old-server", None, None)


def test_volumes_of_others_are_left_alone(real: LvmRig) -> None:
    lvm("lvcreate", "--yes", "-Wn", "-Zn", "-an", "-L", "8M", "-n", f"{DISK_A}.data", real.group)
    with pytest.raises(Conflict, match="a volume that is not ours"):
        make(real, volume(real))
    run(real.volumes.ensure_absent([volume(real)]))
    with pytest.raises(NodeFailure, match="it is not there"):
        run(real.volumes.activate([volume(real)]))
    (found,) = run(real.volumes.inventory(real.pool))
    assert (found.disk, found.is_active) == (None, False)


def test_thin_volumes_take_what_is_written(real: LvmRig) -> None:
    lvm("lvcreate", "--yes", "--type", "thin-pool", "-L", "64M", "-n", "thin", real.group)
    pool = Pool(kind=PoolKind.VOLUME_GROUP, name=f"{real.group}/thin")
    thin = volume(real, thin_pool="thin")
    make(real, thin, size=128)
    assert run(real.volumes.space(pool)).free <= 64
    content(real, thin, b"precious")
    kept = NewVolume(volume(real, "s", thin_pool="thin"), MiB(1))
    run(real.volumes.snapshot([NewSnapshot(thin, kept)]))
    content(real, thin, b"spoiled!")
    run(real.volumes.roll_back(thin, volume(real, "s")))
    assert content(real, thin).startswith(b"precious")
    space = run(real.volumes.space(pool))
    assert (space.usable, space.total) == (True, 64)
    run(real.volumes.ensure_absent([thin]))
