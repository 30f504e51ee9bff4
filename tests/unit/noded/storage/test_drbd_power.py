"""What is left of mirrored disks when nodes lose their power; on the module that pretends."""

import asyncio

from common.noderpc.disks import Access
from common.noderpc.mirrors import CopyState, Link
from noded.storage.drbd.fake import FakeDrbd
from tests.support.fake_pair import FakePair
from tests.support.pairs import Side, refusal, whole


def lose_power(pair: FakePair, *sides: Side) -> None:
    for side in sides:
        assert isinstance(side.module, FakeDrbd)
        side.module.lose_power()
        pair.stop(side)


async def guest_on(pair: FakePair, side: Side) -> None:
    await whole(pair)
    await side.attach(Access.SOLE)
    await pair.hold_open(side)
    await asyncio.sleep(60)


def test_what_was_acknowledged_is_on_the_node_that_is_left() -> None:
    async def story(pair: FakePair) -> None:
        await guest_on(pair, pair.one)
        lose_power(pair, pair.one)
        await asyncio.sleep(20)
        report = await pair.other.report()
        assert (report.own, report.link) == (CopyState.UP_TO_DATE, Link.CONNECTING)
        await pair.other.attach(Access.ALONE)
        await pair.hold_open(pair.other)
        assert pair.pairs.lost == []
        await asyncio.sleep(60)
        await pair.one.attach(Access.STANDBY)
        assert (await pair.one.report()).own is CopyState.INCONSISTENT
        await pair.other.is_whole()

    pair = FakePair()
    pair.run(story(pair))


def test_a_copy_is_used_at_once_though_the_dead_node_has_not_been_missed_yet() -> None:
    async def story(pair: FakePair) -> None:
        await guest_on(pair, pair.one)
        lose_power(pair, pair.one)
        report = await pair.other.report()
        assert (report.peer_primary, report.link) == (True, Link.CONNECTED)
        await pair.other.attach(Access.STANDBY)
        await pair.other.upkeep.declare_good(pair.other.disk)
        await pair.other.attach(Access.ALONE)
        await pair.hold_open(pair.other)
        assert pair.pairs.lost == []

    pair = FakePair()
    pair.run(story(pair))


def test_both_nodes_come_back_in_any_order() -> None:
    async def story(pair: FakePair, first: Side, second: Side) -> None:
        await guest_on(pair, pair.one)
        lose_power(pair, pair.one, pair.other)
        await first.attach(Access.STANDBY)
        assert (await first.report()).own is CopyState.CONSISTENT
        assert "not connected to its other copy" in await refusal(first.attach(Access.SOLE))
        await second.attach(Access.STANDBY)
        await first.is_whole()
        await first.attach(Access.SOLE)
        await pair.hold_open(first)
        assert pair.pairs.lost == []

    for first in ("one", "other"):
        pair = FakePair()
        order = (pair.one, pair.other) if first == "one" else (pair.other, pair.one)
        pair.run(story(pair, *order))


def test_loss_is_found_when_a_copy_is_used_that_fell_behind() -> None:
    """The simulation is worth something only if it sees what nobody may do."""

    async def story(pair: FakePair) -> None:
        await guest_on(pair, pair.one)
        lose_power(pair, pair.other)
        await asyncio.sleep(60)
        lose_power(pair, pair.one)
        await pair.other.attach(Access.ALONE)  # that it is behind, nobody has noted
        await pair.hold_open(pair.other)
        assert pair.pairs.lost == [f"{pair.other.resource} on {pair.other.disk.ends[1].address}"]

    pair = FakePair()
    pair.run(story(pair))


def test_guest_goes_on_when_its_volumes_fail() -> None:
    async def story(pair: FakePair) -> None:
        await guest_on(pair, pair.one)
        assert isinstance(pair.one.module, FakeDrbd)
        pair.one.module.fail_volumes(pair.one.resource)
        report = await pair.one.report()
        assert (report.primary, report.own, report.peer) == (
            True, CopyState.NONE, CopyState.UP_TO_DATE,
        )  # fmt: skip
        await asyncio.sleep(60)
        await pair.one.attach(Access.SOLE)  # with volumes that were mended
        await pair.one.is_whole()
        assert pair.pairs.lost == []

    pair = FakePair()
    pair.run(story(pair))
