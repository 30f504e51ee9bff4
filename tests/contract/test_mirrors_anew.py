"""What mirrored disks promise while one of their copies is made anew."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from common.errors import NodeFailure
from common.noderpc.disks import Access
from common.noderpc.mirrors import CopyState, Link
from noded.storage.lvm.volumes import Volume
from tests.support.pairs import Pair, Side, begun, refusal


def test_a_copy_that_was_given_up_is_copied_anew_though_both_were_equal(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        written = await pair.write(one)
        assert "it is attached; detach it first" in await refusal(other.upkeep.give_up(other.disk))
        for side in (one, other):
            await side.storage.detach(side.disk)
        for _ in range(2):  # the same wish again
            await other.upkeep.give_up(other.disk)
        assert await other.storage.find(other.disk) is not None
        await other.attach(Access.STANDBY)
        assert (await other.report()).own is CopyState.INCONSISTENT
        await one.attach(Access.SOLE)
        await one.is_whole()
        await one.attach(Access.STANDBY)
        await other.attach(Access.SOLE)
        assert await pair.has(other, written)

    pair.run(story())


def test_new_volumes_get_the_data_while_the_guest_goes_on(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        written = await pair.write(one)
        end = await pair.hold_open(one)
        storage, upkeep, disk = one.storage, one.upkeep, one.disk
        for _ in range(2):
            await upkeep.set_aside(disk)
        assert await storage.find(disk) is None
        report = await one.report()
        assert (report.own, report.peer, report.primary) == (
            CopyState.NONE, CopyState.UP_TO_DATE, True,
        )  # fmt: skip
        await storage.ensure_present(disk)
        await one.attach(Access.SOLE)
        await one.is_whole()
        await upkeep.drop_aside(disk)
        await upkeep.drop_aside(disk)
        await end()
        await other.detach()
        assert await pair.has(one, written)

    pair.run(story())


def test_a_copy_that_has_lost_one_volume_is_made_anew(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        written = await pair.write(one)
        await one.attach(Access.STANDBY)
        devices = one.storage.devices
        mirror = devices.read(one.disk)
        await devices.module.detach(mirror.minor)
        await devices.volumes.ensure_absent([mirror.data])  # gone with what it was on
        for _ in range(2):
            await one.upkeep.set_aside(one.disk)
        assert await devices.volumes.find(mirror.volumes) == (None, None)
        await one.storage.ensure_present(one.disk)
        await one.attach(Access.STANDBY)
        await other.is_whole()
        await one.attach(Access.SOLE)
        assert await pair.has(one, written)

    pair.run(story())


def test_old_volumes_are_taken_back(pair: Pair) -> None:
    async def story() -> None:
        one, _ = await begun(pair)
        written = await pair.write(one)
        await one.upkeep.set_aside(one.disk)
        await one.storage.ensure_present(one.disk)
        await one.attach(Access.SOLE)
        for _ in range(2):
            await one.upkeep.take_back(one.disk)
        await one.attach(Access.SOLE)
        await one.is_whole()
        assert await pair.has(one, written)
        await one.detach()
        await one.storage.ensure_absent(one.disk)

    pair.run(story())


def test_volumes_are_set_aside_once(pair: Pair) -> None:
    async def story() -> None:
        one, _ = await begun(pair)
        await one.upkeep.set_aside(one.disk)
        await one.storage.ensure_present(one.disk)
        await one.attach(Access.SOLE)
        await one.is_whole()
        await one.upkeep.set_aside(one.disk)  # the same wish, by whoever goes on with a job
        assert await one.storage.find(one.disk) is not None
        assert (await one.report()).own is CopyState.UP_TO_DATE

    pair.run(story())


def test_new_data_is_not_what_old_metadata_tells_of(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        written = await pair.write(one)
        await one.attach(Access.STANDBY)
        await one.detach()
        devices = one.storage.devices
        await devices.volumes.ensure_absent([devices.read(one.disk).data])  # by somebody else
        assert await one.storage.find(one.disk) is None
        await one.storage.ensure_present(one.disk)
        await one.attach(Access.STANDBY)
        await other.is_whole()
        await one.attach(Access.SOLE)
        assert await pair.has(one, written)

    pair.run(story())


@pytest.mark.parametrize("back", [False, True], ids=["set aside", "taken back"])
def test_what_was_half_set_aside_is_never_taken_for_a_good_copy(pair: Pair, back: bool) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        written = await pair.write(one)
        if back:
            await one.upkeep.set_aside(one.disk)
            await one.storage.ensure_present(one.disk)
            await one.attach(Access.SOLE)
        with interrupted(one):
            doing = one.upkeep.take_back if back else one.upkeep.set_aside
            assert await refusal(doing(one.disk)) == "It was cut off."
        await one.storage.ensure_present(one.disk)  # by whoever knows nothing of that
        await one.attach(Access.SOLE)
        await one.is_whole()
        await other.detach()
        assert await pair.has(one, written)

    pair.run(story())


def test_what_was_half_set_aside_is_so_as_a_whole_when_it_is_asked_again(pair: Pair) -> None:
    async def story() -> None:
        one, _ = await begun(pair)
        with interrupted(one):
            await refusal(one.upkeep.set_aside(one.disk))
        await one.upkeep.set_aside(one.disk)
        devices = one.storage.devices
        mirror = devices.read(one.disk)
        assert await devices.volumes.find(mirror.volumes) == (None, None)
        assert None not in await devices.volumes.find(mirror.set_aside)

    pair.run(story())


@contextmanager
def interrupted(side: Side) -> Iterator[None]:
    """Have the second of several volumes not be renamed."""
    volumes: Any = side.storage.devices.volumes
    rename = volumes.rename

    async def renames_one(pairs: Sequence[tuple[Volume, Volume]]) -> None:
        await rename(pairs[:1])
        raise NodeFailure("It was cut off.")

    volumes.rename = renames_one
    yield
    del volumes.rename


def test_good_copy_is_not_set_aside_for_want_of_another(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        await other.detach()
        await one.until(lambda r: r.link is Link.CONNECTING, "the loss")
        assert "not known to have a good copy" in await refusal(one.upkeep.set_aside(one.disk))
        await one.upkeep.take_back(one.disk)  # as whoever undoes it does
        assert (await one.report()).own is CopyState.UP_TO_DATE

    pair.run(story())
