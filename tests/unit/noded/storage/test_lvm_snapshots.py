"""What LVM is told about snapshots of volumes, and going back to them."""

import pytest

from common.errors import NodeFailure
from common.noderpc.disks import Unfinished
from noded.storage.lvm.linux import LinuxVolumes
from tests.unit.noded.storage.lvm_program import Lvm, disk, row, run, snapshot, volume


def test_snapshots_are_taken_by_one_process_since_a_guest_waits(program: Lvm) -> None:
    program.volumes = [row(volume(number)) for number in (0, 1)]
    run(lambda v: v.snapshot([snapshot(0), snapshot(1)]))
    (change,) = program.changes
    assert [line.split()[-1] for line in change.split("|")] == [
        f"xenvg/{disk(0)}.disk", f"xenvg/{disk(1)}.disk",
    ]  # fmt: skip
    assert change.count("--setactivationskip y") == 2


def test_if_one_snapshot_cannot_be_taken_none_is(program: Lvm) -> None:
    program.volumes = [row(volume(number)) for number in (0, 1)]
    program.makes = False
    with pytest.raises(NodeFailure, match="LVM did not take all snapshots in xenvg: no luck"):
        run(lambda v: v.snapshot([snapshot(0), snapshot(1)]))
    assert program.changes[-1] == f"lvremove --yes xenvg/{disk(5)}.snapshot"


def test_a_snapshot_keeps_its_device_as_long_as_its_volume_has_one(program: Lvm) -> None:
    """LVM would take both away."""
    kept = snapshot(0).kept.volume
    program.volumes = [
        row(volume(), lv_active="active"),
        row(kept, lv_active="active", origin=volume().place.name),
    ]
    run(lambda v: v.deactivate([kept]))
    assert program.changes == []


def test_rolling_back_happens_while_the_volume_is_attached_and_no_later(program: Lvm) -> None:
    kept = snapshot(0).kept.volume
    program.volumes = [row(volume()), row(kept, origin=volume().place.name)]
    run(lambda v: v.roll_back(volume(), kept))
    activated, merged = program.changes
    assert activated.startswith("lvchange --yes --activate y")
    assert merged == f"lvconvert --yes --merge {kept.name}"


def test_rolling_back_that_takes_long_is_asked_for_again_and_done_once(program: Lvm) -> None:
    kept = snapshot(0).kept.volume
    program.volumes = [row(volume()), row(kept, origin=volume().place.name)]
    program.takes_s = 50.0

    async def patiently(volumes: LinuxVolumes) -> None:
        for _ in range(2):
            with pytest.raises(Unfinished):
                await volumes.roll_back(volume(), kept)
        await volumes.roll_back(volume(), kept)

    run(patiently)
    assert [line.split()[0] for line in program.changes] == ["lvchange", "lvconvert"]


def test_what_has_overflowed_is_not_gone_back_to(program: Lvm) -> None:
    kept, origin = snapshot(0).kept.volume, volume().place.name
    program.volumes = [
        row(volume()), row(kept, origin=origin, lv_snapshot_invalid="snapshot invalid"),
    ]  # fmt: skip
    with pytest.raises(NodeFailure, match="cannot be gone back to: more was written"):
        run(lambda v: v.roll_back(volume(), kept))
    assert program.changes == []


@pytest.mark.parametrize("active", ["", "active"])
def test_a_merge_that_outlived_noded_or_its_machine_is_waited_for(
    program: Lvm, active: str
) -> None:
    program.volumes = [row(volume(), lv_active=active, lv_merging="merging")]
    kept = snapshot(0).kept.volume
    with pytest.raises(Unfinished):
        run(lambda v: v.roll_back(volume(), kept))
    assert len(program.changes) == (0 if active else 1)
    program.volumes = [row(volume(), lv_active="active")]
    run(lambda v: v.roll_back(volume(), kept))
    assert program.changes[-1] == f"lvchange --activate n {volume().name}"
