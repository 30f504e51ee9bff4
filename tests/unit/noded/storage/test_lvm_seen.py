"""LVM is asked about a volume once, while its device shows that nothing has changed."""

import asyncio

import pytest

from common.errors import NodeFailure
from common.execute import CommandFailed
from common.names import MiB
from common.noderpc.disks import Unfinished
from noded.storage.lvm import seen
from noded.storage.lvm.linux import LinuxVolumes
from noded.storage.lvm.volumes import NewVolume, Volume
from tests.unit.noded.storage.lvm_program import Lvm, row, run, snapshot, volume


def test_what_was_just_made_is_attached_and_detached_without_another_look(
    program: Lvm, devices: dict[Volume, str]
) -> None:
    made = [volume(0), volume(1)]
    devices |= {each: f"u{index}" for index, each in enumerate(made)}

    async def story(volumes: LinuxVolumes) -> None:
        paths = await volumes.ensure_active([NewVolume(each, MiB(8)) for each in made])
        program.told.clear()
        assert await volumes.activate(made) == paths
        assert await volumes.ensure_active([NewVolume(made[1], MiB(8))]) == paths[1:]
        assert program.told == []
        await volumes.deactivate(made)
        assert program.told == [f"lvchange --activate n {made[0].name} {made[1].name}"]

    run(story)


def test_a_volume_is_not_looked_for_again_as_long_as_its_device_is_there(
    program: Lvm, devices: dict[Volume, str]
) -> None:
    program.volumes = [row(volume(), lv_active="active", lv_uuid="u-1")]
    devices[volume()] = "u1"

    async def story(volumes: LinuxVolumes) -> None:
        def looks() -> int:
            return sum(line.startswith("fullreport") for line in program.told)

        for _ in range(2):
            await volumes.activate([volume()])
        assert looks() == 1
        devices[volume()] = "u2"  # another volume has its name
        await volumes.activate([volume()])
        assert looks() == 2
        devices[volume()] = "u1"
        await asyncio.sleep(seen.SOUND_S)  # its physical volume may have gone meanwhile
        await volumes.activate([volume()])
        assert looks() == 3
        await asyncio.sleep(seen.SOUND_S)  # which does not make it another's
        await volumes.deactivate([volume()])
        assert looks() == 3
        await volumes.activate([volume()])
        assert looks() == 4

    run(story)


def test_a_volume_that_cannot_be_read_is_looked_for_again(
    program: Lvm, devices: dict[Volume, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program.volumes = [row(volume(), lv_active="active", lv_uuid="u-1")]
    devices[volume()] = "u1"

    async def story(volumes: LinuxVolumes) -> None:
        await volumes.activate([volume()])
        monkeypatch.setattr(seen, "can_be_read", lambda *_: False)
        program.volumes = []  # as LVM says of a group whose device fails
        with pytest.raises(NodeFailure, match="cannot be attached"):
            await volumes.activate([volume()])

    run(story)


def test_what_may_hold_old_data_is_looked_at_again(
    program: Lvm, devices: dict[Volume, str]
) -> None:
    devices[volume()] = "u1"

    async def story(volumes: LinuxVolumes) -> None:
        await volumes.ensure_active([NewVolume(volume(), MiB(8))])
        program.volumes = [row(volume(), lv_active="active", lv_uuid="u1")]
        program.refuses = lambda line: "full" if line.startswith("lvextend") else None
        with pytest.raises(CommandFailed):
            await volumes.grow(volume(), MiB(16))  # it is marked as holding some, all the same
        program.told.clear()
        await volumes.activate([volume()])
        assert program.told[0].startswith("fullreport")

    run(story)


def test_a_volume_that_grows_or_goes_back_is_opened_only_if_it_is_still_the_same(
    program: Lvm, devices: dict[Volume, str]
) -> None:
    """Another one may get its name while it does."""
    kept = snapshot(0).kept.volume
    devices[volume()] = "u1"
    program.volumes = [row(volume(), lv_active="active", lv_uuid="u1")]
    program.refuses = lambda line: "full" if line.startswith("lvextend") else None

    async def story(volumes: LinuxVolumes) -> None:
        await volumes.activate([volume()])
        with pytest.raises(CommandFailed):
            await volumes.grow(volume(), MiB(16))
        assert volumes._seen.uuid_of(volume()) == "u1"
        program.volumes[0]["lv_merging"] = "merging"
        with pytest.raises(Unfinished):
            await volumes.roll_back(volume(), kept)
        assert volumes._seen.uuid_of(volume()) == "u1"

    run(story)


def test_a_snapshot_beside_its_volume_is_never_deactivated_by_itself(
    program: Lvm, devices: dict[Volume, str]
) -> None:
    program.volumes = [row(volume(), lv_active="active", lv_uuid="u1", origin="other")]
    devices[volume()] = "u1"

    async def story(volumes: LinuxVolumes) -> None:
        await volumes.activate([volume()])
        await volumes.deactivate([volume()])
        assert program.changes == []
        assert volumes._seen.uuid_of(volume()) == ""

    run(story)
