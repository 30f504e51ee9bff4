"""What LVM is told, how often, and in which order; what it does then is for the contracts."""

import asyncio
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.execute import Finished
from common.model.backing import LvmBacking
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import MiB
from common.noderpc.disks import Unfinished
from noded.storage.lvm import device, lvm, zeroing
from noded.storage.lvm.linux import LinuxVolumes
from noded.storage.lvm.room import Rooms
from noded.storage.lvm.volumes import NewVolume, Volume
from tests.support.clock import simulate
from tests.unit.noded.storage.lvm_program import WEB1, Lvm, disk, row, run, volume

T = TypeVar("T")


@pytest.mark.parametrize("count", [1, 50])
def test_number_of_commands_does_not_depend_on_that_of_volumes(program: Lvm, count: int) -> None:
    volumes = [volume(number) for number in range(count)]
    run(lambda v: v.ensure_present([NewVolume(each, MiB(8)) for each in volumes]))
    assert len(program.told) == 3
    program.told.clear()
    run(lambda v: v.ensure_active([NewVolume(each, MiB(8)) for each in volumes]))
    assert len(program.told) == 3
    program.told.clear()
    program.volumes = [row(each) for each in volumes]
    run(lambda v: v.activate(volumes))
    assert len(program.told) == 2
    program.volumes = [row(each, lv_active="active") for each in volumes]
    for work in (lambda v: v.deactivate(volumes), lambda v: v.ensure_absent(volumes)):
        program.told.clear()
        run(work)
        assert len(program.told) == 2
    program.told.clear()
    run(lambda v: v.find(volumes))
    run(lambda v: v.activate(volumes))  # has been done
    assert len(program.told) == 2


def test_mark_of_old_data_goes_when_there_is_none_left(program: Lvm) -> None:
    run(lambda v: v.ensure_present([NewVolume(volume(), MiB(8))]))
    created, finished = program.changes
    assert "--addtag gantry.zero-from.0" in created
    assert finished == f"lvchange --activate n --deltag gantry.zero-from.0 xenvg/{disk(0)}.disk"


def test_a_volume_that_is_used_at_once_keeps_its_device_and_no_mark(program: Lvm) -> None:
    (path,) = run(lambda v: v.ensure_active([NewVolume(volume(), MiB(8))]))
    _, finished = program.changes
    assert finished == f"lvchange --deltag gantry.zero-from.0 xenvg/{disk(0)}.disk"
    assert path == f"/dev/mapper/xenvg-{disk(0).replace('-', '--')}.disk"


def test_what_tells_of_a_volume_that_was_cut_off_is_removed_before_that_is_finished(
    program: Lvm,
) -> None:
    data, meta = volume(0), volume(1)
    half = f"gantry,gantry.disk.{disk(0)},gantry.instance.{WEB1},gantry.zero-from.0"
    wanted = [NewVolume(data, MiB(8)), NewVolume(meta, MiB(8), tells_of=data)]
    program.volumes = [row(data, tags=half), row(meta)]
    program.refuses = lambda line: "no" if line.startswith("lvremove") else None
    with pytest.raises(NodeFailure):
        run(lambda v: v.ensure_active(wanted))
    assert program.changes == [f"lvremove --yes {meta.name}"]


def test_what_a_crash_left_is_zeroed_before_it_is_a_disk(program: Lvm) -> None:
    tags = f"gantry,gantry.disk.{disk(0)},gantry.instance.{WEB1},gantry.zero-from.0"
    program.volumes = [row(volume(), tags=tags)]
    assert run(lambda v: v.find([volume()])) == (None,)
    with pytest.raises(NodeFailure, match="its creation was cut off"):
        run(lambda v: v.activate([volume()]))
    program.told.clear()
    with pytest.MonkeyPatch.context() as patch:
        zeroed = []
        patch.setattr(zeroing, "zero", lambda _, start, end: zeroed.append((start, end)))
        patch.setattr(program, "makes", True)
        patch.setattr(lvm, "change_all", _said_nothing)
        run(lambda v: v.ensure_present([NewVolume(volume(), MiB(8))]))
    assert zeroed == [(0, 8)]
    assert "--deltag gantry.zero-from.0" in program.changes[-1]


async def _said_nothing(_: object) -> Finished:
    return Finished(b"", b"")


@pytest.mark.parametrize("is_half_made", [False, True])
def test_what_no_guest_reads_is_zeros_as_far_as_wanted_only(
    program: Lvm, monkeypatch: pytest.MonkeyPatch, is_half_made: bool
) -> None:
    zeroed = []
    monkeypatch.setattr(zeroing, "zero", lambda _, start, end: zeroed.append((start, end)))
    if is_half_made:
        tags = f"gantry,gantry.disk.{disk(0)},gantry.instance.{WEB1},gantry.zero-from.0"
        program.volumes = [row(volume(), tags=tags)]
        monkeypatch.setattr(lvm, "change_all", _said_nothing)
    data, meta = NewVolume(volume(1), MiB(8)), NewVolume(volume(), MiB(8), zeros=MiB(1))
    run(lambda v: v.ensure_present([meta] if is_half_made else [data, meta]))
    assert sorted(zeroed) == ([(0, 1)] if is_half_made else [(0, 1), (0, 8)])
    assert "--deltag gantry.zero-from.0" in program.changes[-1]


def test_growth_that_was_cut_off_is_finished_before_a_guest_gets_it(program: Lvm) -> None:
    tags = f"gantry,gantry.disk.{disk(0)},gantry.instance.{WEB1},gantry.zero-from.4"
    program.volumes = [row(volume(), tags=tags)]
    zeroed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zeroing, "zero", lambda _, start, end: zeroed.append((start, end)))
        run(lambda v: v.activate([volume()]))
    assert zeroed == [(4, 8)]
    assert program.changes[-1].startswith("lvchange --deltag gantry.zero-from.4")


def test_growth_is_marked_before_it_happens(program: Lvm) -> None:
    program.volumes = [row(volume(), lv_active="active")]
    run(lambda v: v.grow(volume(), MiB(16)))
    name = f"xenvg/{disk(0)}.disk"
    assert program.changes == [
        f"lvchange --addtag gantry.zero-from.8 {name}", f"lvextend --size 16m {name}",
        f"lvchange --deltag gantry.zero-from.8 {name}",
    ]  # fmt: skip


def test_what_is_not_ours_is_left_alone(program: Lvm) -> None:
    for tags in ("", "gantry", f"gantry.disk.{disk(0)},gantry.instance.{WEB1}",
                 f"gantry,gantry.disk.{disk(1)},gantry.instance.{WEB1}"):  # fmt: skip
        program.volumes = [row(volume(), tags=tags, lv_active="active")]
        with pytest.raises(Conflict):
            run(lambda v: v.ensure_present([NewVolume(volume(), MiB(8))]))
        run(lambda v: v.ensure_absent([volume()]))
        run(lambda v: v.deactivate([volume()]))
        for work in (lambda v: v.activate([volume()]), lambda v: v.grow(volume(), MiB(16))):
            with pytest.raises(NodeFailure, match="it is not there"):
                run(work)
    assert program.changes == []


def test_snapshot_of_somebody_else_keeps_its_volume(program: Lvm) -> None:
    snapshot = row(volume(7), tags="", origin=volume().place.name)
    program.volumes = [row(volume()), snapshot]
    with pytest.raises(NodeFailure, match="is a snapshot of it"):
        run(lambda v: v.ensure_absent([volume()]))
    assert program.changes == []


def test_if_one_cannot_be_made_none_is(program: Lvm) -> None:
    program.makes = False
    wanted = [NewVolume(volume(number), MiB(8)) for number in (0, 1)]
    with pytest.raises(NodeFailure, match="LVM did not make all volumes in xenvg: no luck"):
        run(lambda v: v.ensure_present(wanted))
    assert program.changes[-1] == f"lvremove --yes xenvg/{disk(0)}.disk"


def test_who_has_it_open_is_told(program: Lvm) -> None:
    program.volumes = [row(volume(), lv_active="active")]
    program.refuses = lambda line: (
        f"  Logical volume xenvg/{disk(0)}.disk in use." if line.startswith("lv") else None
    )
    for work in (lambda v: v.deactivate([volume()]), lambda v: v.ensure_absent([volume()])):
        with pytest.raises(NodeFailure, match="in use, by a running guest"):
            run(work)


def test_names_that_are_no_disks_are_refused(program: Lvm) -> None:
    for group, name in (
        ("xenvg", "root"), ("xenvg", f"{disk(1)}.disk"), ("x y", f"{disk(0)}.disk"),
        ("-x", f"{disk(0)}.disk"), ("..", f"{disk(0)}.disk"), ("xenvg", f"{disk(0)}.a/b"),
    ):  # fmt: skip
        wrong = Volume(LvmBacking(group=group, name=name), disk(0), WEB1)
        for work in (
            lambda v: v.find([wrong]), lambda v: v.ensure_absent([wrong]),  # noqa: B023
            lambda v: v.activate([wrong]), lambda v: v.grow(wrong, MiB(9)),  # noqa: B023
        ):  # fmt: skip
            with pytest.raises(InvalidRequest):
                run(work)
        with pytest.raises(InvalidRequest):
            LinuxVolumes().open(wrong, read_only=True)
    assert program.told == []


def test_group_that_is_not_there_hides_no_other(program: Lvm) -> None:
    program.volumes = [row(volume())]
    program.refuses = lambda line: (
        '  Volume group "gone" not found\n' if line.endswith(" gone xenvg") else None
    )
    found = run(lambda v: v.find([volume(group="gone"), volume()]))
    assert [each is not None for each in found] == [False, True]


def test_slow_zeroing_is_told_and_goes_on(program: Lvm, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slowly(work: Callable[..., T], *arguments: object) -> T:
        if work is device.zero:
            await asyncio.sleep(30.0)
        return work(*arguments)

    async def scenario() -> None:
        volumes = LinuxVolumes()
        with pytest.raises(Unfinished) as caught:
            await volumes.ensure_present([NewVolume(volume(), MiB(8))])
        assert caught.value.detail == {"done_mib": 0, "total_mib": 8}
        await asyncio.sleep(60.0)
        await volumes.ensure_present([NewVolume(volume(), MiB(8))])

    monkeypatch.setattr(zeroing, "in_thread", slowly)
    monkeypatch.setattr(zeroing, "zero", device.zero)
    monkeypatch.setattr("fcntl.ioctl", lambda *_: 0)
    simulate(scenario())
    assert "--deltag gantry.zero-from.0" in program.changes[-1]


def test_room_is_looked_at_again_when_the_group_has_changed(program: Lvm, tmp_path: Path) -> None:
    pool = Pool(kind=PoolKind.VOLUME_GROUP, name="xenvg")

    async def scenario() -> list[int]:
        rooms, counts = Rooms(tmp_path), []
        for change in ("none", "first", "none", "second", "late"):
            if change == "late":
                await asyncio.sleep(61.0)
            elif change != "none":
                (tmp_path / "xenvg").write_text(change)
            assert (await rooms.of(pool)).free == 1024
            counts.append(len(program.told))
        return counts

    assert simulate(scenario()) == [1, 2, 2, 3, 4]


@pytest.mark.parametrize(
    ("before", "looks"),
    [("nothing", 0), ("change", 1), ("a minute", 1), ("failure", 1), ("other volumes", 1)],
)
def test_who_makes_what_was_just_asked_room_for_does_not_look_again(
    program: Lvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, looks: int
) -> None:
    (tmp_path / "xenvg").write_text("first")
    wanted = [NewVolume(volume(), MiB(8))]

    async def story(volumes: LinuxVolumes) -> None:
        monkeypatch.setattr(volumes, "_rooms", Rooms(tmp_path))
        if before == "other volumes":
            program.volumes = [row(volume())]
        await volumes.space(Pool(kind=PoolKind.VOLUME_GROUP, name="xenvg"))
        if before == "change":
            (tmp_path / "xenvg").write_text("second")
        if before == "a minute":
            await asyncio.sleep(60.0)
        if before == "failure":
            program.makes = False
            with pytest.raises(NodeFailure):
                await volumes.ensure_present(wanted)
            program.makes = True
        program.told.clear()
        await volumes.ensure_present(wanted)
        assert len(program.told) - len(program.changes) == looks

    run(story)


def test_zeroing_that_is_stopped_lets_go_of_the_device(
    program: Lvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the volume could not be removed: it would be in use."""
    closed: list[int] = []

    async def late(work: Callable[..., T], *arguments: object) -> T:
        """Be cancelled while a thread works; its work is done all the same."""
        try:
            await asyncio.sleep(5.0)
        finally:
            work(*arguments)
        raise AssertionError

    async def scenario() -> None:
        volumes = LinuxVolumes()
        creation = asyncio.ensure_future(volumes.ensure_present([NewVolume(volume(), MiB(8))]))
        await asyncio.sleep(1.0)
        program.volumes = [row(volume())]
        await volumes.ensure_absent([volume()])
        await asyncio.wait([creation])
        assert isinstance(creation.exception(), NodeFailure)

    monkeypatch.setattr(zeroing, "in_thread", late)
    monkeypatch.setattr("os.close", closed.append)
    simulate(scenario())
    assert closed == [99]
    assert program.changes[-1].startswith("lvremove")


def test_a_volume_that_grows_again_is_zeroed_up_to_its_new_end(
    program: Lvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, zeroed = 16, []

    async def slowly(work: Callable[..., T], *arguments: object) -> T:
        if work is device.zero:
            await asyncio.sleep(30.0)
        return work(*arguments)

    async def scenario() -> None:
        nonlocal size
        volumes = LinuxVolumes()
        program.volumes = [row(volume(), lv_active="active")]
        with pytest.raises(Unfinished):
            await volumes.grow(volume(), MiB(16))
        tags = f"gantry,gantry.disk.{disk(0)},gantry.instance.{WEB1},gantry.zero-from.8"
        program.volumes = [row(volume(), tags=tags, size=16, lv_active="active")]
        size = 32
        with pytest.raises(Unfinished):
            await volumes.grow(volume(), MiB(32))
        program.volumes = [row(volume(), tags=tags, size=32, lv_active="active")]
        await asyncio.sleep(60.0)
        await volumes.grow(volume(), MiB(32))

    def note(_: int, _code: int, span: bytes) -> int:
        zeroed.append(tuple(number >> 20 for number in struct.unpack("QQ", span)))
        return 0

    monkeypatch.setattr(zeroing, "in_thread", slowly)
    monkeypatch.setattr(zeroing, "zero", device.zero)
    monkeypatch.setattr(zeroing, "size_of", lambda _: MiB(size))
    monkeypatch.setattr("fcntl.ioctl", note)
    simulate(scenario())
    assert zeroed == [(8, 24)]
    assert program.changes[-1].startswith("lvchange --deltag gantry.zero-from.8")
