"""What a node asks DRBD's module and LVM for an activation, whatever else is there."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.model.backing import DrbdBacking
from common.names import DiskId
from common.noderpc.disks import Access, DiskSpec
from common.noderpc.mirrors import Link
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.lvm.volumes import VolumeReport
from tests.support.fake_pair import FakePair
from tests.support.pairs import begun, whole


def count(of: Any, asked: Counter[str], *names: str) -> None:
    """Have calls be counted."""
    for name in names:
        setattr(of, name, _counted(getattr(of, name), name, asked))


def _counted(real: Callable[..., Any], name: str, asked: Counter[str]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        asked[name] += 1
        return real(*arguments, **named)

    return call


@pytest.mark.parametrize("others", [0, 1, 100])
def test_an_activation_asks_for_as_much_whatever_the_number_of_devices(others: int) -> None:
    async def story(pair: FakePair) -> None:
        await whole(pair)
        await pair.one.detach()
        for number in range(others):
            await pair.one.module.create(f"gantry-{number}", 1000 + number, 0)
        changes = ("create", "attach", "connect", "allow_two", "promote", "demote", "remove")
        count(pair.one.module, asked, *changes)  # a look needs no program
        count(pair.one.storage.devices.volumes, asked, "activate", "find", "deactivate")
        await pair.one.attach(Access.STANDBY)
        await pair.one.attach(Access.SOLE)
        await pair.one.attach(Access.SOLE)

    asked: Counter[str] = Counter()
    pair = FakePair()
    pair.run(story(pair))
    assert asked == {"activate": 1, "create": 1, "attach": 1, "connect": 1, "promote": 1}


@pytest.mark.parametrize(
    ("is_away", "expected"),
    [(False, {"allow_two": 1}), (True, {"disconnect": 1, "connect": 1})],
)
def test_options_are_not_changed_while_a_peer_may_be_proving_who_it_is(
    is_away: bool, expected: dict[str, int]
) -> None:
    async def story(pair: FakePair) -> None:
        await begun(pair)
        if is_away:
            await pair.cut()
            await pair.one.until(lambda r: r.link is Link.CONNECTING, "the loss of its peer")
        count(pair.one.module, asked, "allow_two", "disconnect", "connect")
        await pair.one.attach(Access.SHARED)

    asked: Counter[str] = Counter()
    pair = FakePair()
    pair.run(story(pair))
    assert asked == expected


@pytest.mark.parametrize("number", [1, 2, 12])
def test_all_disks_of_an_instance_are_made_attached_and_detached_by_as_few_changes_of_volumes(
    number: int,
) -> None:
    async def story(pair: FakePair) -> None:
        storage, module, first = pair.one.storage, pair.one.module, pair.one.disk
        disks = tuple(_another(first, index) for index in range(number))
        count(storage.devices.volumes, asked, "ensure_active")
        await storage.ensure_present_with(disks[0], disks[1:])
        assert all(await storage.find_all(disks))
        await storage.devices.volumes.deactivate(
            [each for disk in disks for each in storage.devices.read(disk).volumes]
        )
        count(storage.devices.volumes, asked, "deactivate")
        attach = module.attach

        async def attach_active(*arguments: Any) -> None:
            assert all(each.is_active for each in _volumes(pair))  # so no other look is needed
            await attach(*arguments)

        setattr(module, "attach", attach_active)  # noqa: B010 -- it is a method
        paths = await storage.attach_all(disks, Access.STANDBY)
        assert paths == tuple(f"/dev/drbd{20 + index}" for index in range(number))
        await storage.detach_all(disks)
        assert asked == {"ensure_active": 1, "deactivate": 1}
        assert not await module.look()
        assert not any(report.is_active for report in _volumes(pair))

    asked: Counter[str] = Counter()
    pair = FakePair()
    pair.run(story(pair))


def _volumes(pair: FakePair) -> list[VolumeReport]:
    volumes = pair.one.storage.devices.volumes
    assert isinstance(volumes, FakeVolumes)
    return [each for group in volumes.groups.values() for each in group.volumes.values()]


def _another(disk: DiskSpec, index: int) -> DiskSpec:
    """Return a disk of the same instance, with places and numbers of its own."""
    uuid = DiskId(f"dddddddd-0000-4000-8000-0000000001{index:02}")
    assert isinstance(disk.backing, DrbdBacking)
    data, meta = (
        replace(each, name=f"{uuid}.{kind}")
        for each, kind in ((disk.backing.data, "data"), (disk.backing.meta, "meta"))
    )
    ends = tuple(replace(end, minor=20 + index) for end in disk.ends)
    backing = replace(disk.backing, data=data, meta=meta, port=12_000 + index)
    return replace(disk, id=uuid, backing=backing, ends=ends)
