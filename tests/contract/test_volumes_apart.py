"""Volumes with physical volumes of their own, where storage is exclusive: the fake, and LVM."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import InvalidRequest, NodeFailure
from common.model.backing import LvmBacking
from common.names import DiskId, InstanceId, MiB
from common.noderpc.facts import Spindles
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume
from tests.support.file_rigs import DISK_A, DISK_B, run
from tests.support.spindles import COUNT, SIZE, FakeSpindlesRig, LvmSpindlesRig
from tests.support.volumes import WEB1

Rig = FakeSpindlesRig | LvmSpindlesRig
WEB2 = InstanceId("11111111-0000-4000-8000-000000000002")


@pytest.fixture(params=[FakeSpindlesRig, LvmSpindlesRig], ids=["fake", "lvm"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    made: Rig = request.param(tmp_path)
    yield made
    made.close()


def volume(rig: Rig, disk: DiskId = DISK_A, of: InstanceId = WEB1, kind: str = "disk") -> Volume:
    return Volume(LvmBacking(group=rig.group, name=f"{disk}.{kind}"), disk, of)


def make(rig: Rig, volume: Volume, size: int, spindles: int | None) -> None:
    run(rig.volumes.ensure_present([NewVolume(volume, MiB(size), spindles=spindles)]))


def devices(rig: Rig, volume: Volume) -> set[str]:
    (found,) = run(rig.volumes.find([volume]))
    assert found is not None
    return set(found.devices)


def free(rig: Rig) -> int:
    spindles = run(rig.volumes.space(rig.pool)).spindles
    assert spindles is not None
    return spindles.free


def test_a_group_tells_how_many_are_free_and_how_large_they_are(rig: Rig) -> None:
    def told(free: int) -> Spindles:
        return Spindles(total=COUNT, free=free, smallest=SIZE, largest=SIZE)

    assert run(rig.volumes.space(rig.pool)).spindles == told(COUNT)
    make(rig, volume(rig), 4, 2)
    assert run(rig.volumes.space(rig.pool)).spindles == told(1)
    run(rig.volumes.ensure_absent([volume(rig)]))
    assert run(rig.volumes.space(rig.pool)).spindles == told(COUNT)


def test_a_volume_is_on_all_that_are_its_own_and_nobody_else_is(rig: Rig) -> None:
    one, other = volume(rig), volume(rig, DISK_B, WEB2)
    for _ in range(2):
        make(rig, one, 8, 2)
        make(rig, other, 8, 1)
    assert (len(devices(rig, one)), len(devices(rig, other))) == (2, 1)
    assert not devices(rig, one) & devices(rig, other)
    assert free(rig) == 0


def test_two_disks_that_are_made_at_once_share_none(rig: Rig) -> None:
    both = [volume(rig), volume(rig, DISK_B)]
    run(rig.volumes.ensure_present([NewVolume(each, MiB(8), spindles=1) for each in both]))
    assert len(devices(rig, both[0]) | devices(rig, both[1])) == 2


def test_if_there_are_not_as_many_none_is_made(rig: Rig) -> None:
    make(rig, volume(rig, DISK_B, WEB2), 4, 1)
    with pytest.raises(NodeFailure, match="for itself, and 2 are empty"):
        make(rig, volume(rig), 4, 3)
    assert run(rig.volumes.find([volume(rig)])) == (None,)
    assert free(rig) == 2


@pytest.mark.parametrize(("spindles", "says"), [(0, "not said how many"), (1, "needs 2 physical")])
def test_too_few_for_its_size_are_refused(rig: Rig, spindles: int, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        make(rig, volume(rig), SIZE, spindles)
    assert free(rig) == COUNT


def test_it_grows_on_its_own_and_no_further(rig: Rig) -> None:
    make(rig, volume(rig), 8, 2)
    before = devices(rig, volume(rig))
    run(rig.volumes.grow(volume(rig), MiB(48), alone=True))
    assert devices(rig, volume(rig)) == before
    (found,) = run(rig.volumes.find([volume(rig)]))
    assert found is not None
    assert found.size == 48
    with pytest.raises(NodeFailure, match="no space to grow"):
        run(rig.volumes.grow(volume(rig), MiB(56), alone=True))
    assert free(rig) == 1


def test_what_it_keeps_is_on_its_own_too(rig: Rig) -> None:
    make(rig, volume(rig), 8, 1)
    kept = NewVolume(volume(rig, kind="snapshot"), MiB(8), spindles=1)
    run(rig.volumes.snapshot([NewSnapshot(volume(rig), kept)]))
    assert free(rig) == COUNT - 1
    larger = replace(kept, volume=volume(rig, kind="larger"), size=SIZE)
    with pytest.raises(NodeFailure, match="no space for a disk of 28M in the physical volumes of"):
        run(rig.volumes.snapshot([NewSnapshot(volume(rig), larger)]))
    run(rig.volumes.roll_back(volume(rig), kept.volume))
    assert free(rig) == COUNT - 1
