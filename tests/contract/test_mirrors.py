"""What mirrored disks promise, kept by DRBD's module and by the fake, through the same driver."""

from contextlib import suppress

import pytest
from msgspec.structs import replace

from common.errors import NodeFailure
from common.names import MiB
from common.noderpc.disks import Access
from common.noderpc.mirrors import Copying, CopyState, Link
from tests.support.pairs import SECRET, SIZE, Pair, begun, only, refusal, whole


def test_new_copies_are_equal_without_being_copied(pair: Pair) -> None:
    async def story() -> None:
        await whole(pair)
        for side in (pair.one, pair.other):
            report = await side.report()
            assert (report.own, report.copying) == (CopyState.UP_TO_DATE, Copying.NOTHING)
            assert (report.behind_kib, report.primary, report.split) == (0, False, False)
            await side.upkeep.begin(side.disk, full=False)  # the same wish again
        # Now and parted; what was before, DRBD 9 notes otherwise where it was told to be equal.
        now, there = [(await side.report()).generations[:2] for side in (pair.one, pair.other)]
        assert now == there

    pair.run(story())


def test_copies_of_unknown_content_are_copied_in_full(pair: Pair) -> None:
    async def story() -> None:
        for side in (pair.one, pair.other):
            await side.storage.ensure_present(side.disk)
            await side.attach(Access.STANDBY)
        await pair.one.upkeep.begin(pair.one.disk, full=True)
        copying = await pair.other.report()
        if copying.own is not CopyState.UP_TO_DATE:  # else it was fast
            assert copying.own is CopyState.INCONSISTENT
        await pair.one.is_whole()
        assert not (await pair.one.report()).primary

    pair.run(story())


def test_copies_that_were_never_good_are_not_used(pair: Pair) -> None:
    async def story() -> None:
        for side in (pair.one, pair.other):
            await side.storage.ensure_present(side.disk)
            await side.attach(Access.STANDBY)
        await pair.one.until(lambda r: r.link is Link.CONNECTED, "a connection")
        assert "neither copy is known to be good" in await refusal(pair.one.attach(Access.SOLE))
        assert "neither copy is known to be good" in await refusal(pair.one.attach(Access.ALONE))
        assert not (await pair.one.report()).primary

    pair.run(story())


def test_what_was_written_is_on_the_other_node(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        written = await pair.write(one)
        await one.attach(Access.STANDBY)
        await other.attach(Access.SOLE)
        assert await pair.has(other, written)

    pair.run(story())


def test_only_one_node_may_write(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        assert "Multiple primaries" in await refusal(other.attach(Access.SOLE))
        assert "Multiple primaries" in await refusal(other.attach(Access.ALONE))
        assert (await one.report()).primary
        assert not (await other.report()).primary

    pair.run(story())


def test_both_may_write_while_a_guest_moves(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        await one.attach(Access.SHARED)
        await other.attach(Access.SHARED)
        assert (await one.report()).peer_primary
        await one.attach(Access.STANDBY)
        await other.attach(Access.SOLE)
        assert "Multiple primaries" in await refusal(one.attach(Access.SOLE))

    pair.run(story())


def test_two_that_look_for_each_other_for_a_guest_that_moves_do_meet(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        for side in (one, other):
            connection = side.storage.devices.read(side.disk).connection
            assert connection is not None
            await side.module.disconnect(connection)
        for side in (one, other):
            await side.attach(Access.SHARED)
        assert (await one.is_whole()).primary
        assert (await one.report()).peer_primary

    pair.run(story())


def test_whether_two_may_be_primary_changes_while_the_other_end_is_away(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        end = await pair.hold_open(one)
        await pair.cut()
        await one.until(lambda r: r.link is Link.CONNECTING, "the loss of its peer")
        for access in (Access.SHARED, Access.SOLE, Access.SHARED):
            await one.attach(access)
            (device,) = (d for d in await one.module.look() if d.resource == one.resource)
            assert device.allows_two is (access is Access.SHARED)
            assert device.report.primary
        await one.attach(Access.SOLE)
        await pair.heal()
        await one.is_whole()
        assert not (await other.report()).primary
        await end()

    pair.run(story())


def test_attaching_may_be_repeated(pair: Pair) -> None:
    async def story() -> None:
        await whole(pair)
        ways = (Access.STANDBY, Access.SOLE, Access.SOLE, Access.SHARED, Access.SHARED, Access.SOLE,
                Access.ALONE, Access.STANDBY, Access.STANDBY)  # fmt: skip
        paths = [await pair.one.attach(access) for access in ways]
        assert len(set(paths)) == 1
        assert not (await pair.one.report()).primary

    pair.run(story())


def test_detaching_may_be_repeated(pair: Pair) -> None:
    async def story() -> None:
        await pair.one.detach()
        await whole(pair)
        await pair.one.detach()
        await pair.one.detach()
        assert await pair.one.upkeep.status((pair.one.disk,)) == (None,)
        assert await pair.one.storage.find(pair.one.disk) is not None

    pair.run(story())


def test_deletion_may_be_repeated_and_leaves_nothing(pair: Pair) -> None:
    async def story() -> None:
        await pair.one.storage.ensure_absent(pair.one.disk)
        await whole(pair)
        assert "is attached; detach it first" in await refusal(
            pair.one.storage.ensure_absent(pair.one.disk)
        )
        await pair.one.detach()
        for _ in range(2):
            await pair.one.storage.ensure_absent(pair.one.disk)
            assert await pair.one.storage.find(pair.one.disk) is None

    pair.run(story())


def test_disk_in_use_is_not_taken_away(pair: Pair) -> None:
    async def story() -> None:
        one, _ = await begun(pair)
        end = await pair.hold_open(one)
        assert "in use by a running guest" in await refusal(one.detach())
        assert "in use by a running guest" in await refusal(one.attach(Access.STANDBY))
        assert (await one.report()).primary
        await end()
        await one.detach()

    pair.run(story())


def test_what_is_not_attached_for_a_guest_is_not_opened(pair: Pair) -> None:
    async def story() -> None:
        await whole(pair)
        with pytest.raises(Exception, match="cannot be opened"):
            pair.one.storage.open(pair.one.disk)

    pair.run(story())


def test_disk_grows_on_both_sides(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        larger = {side.node: replace(side.disk, size=MiB(SIZE + 16)) for side in (one, other)}
        for side in (other, one):  # where it is used, last
            await side.storage.grow(larger[side.node])
            await side.storage.grow(larger[side.node])
        for side in (one, other):
            (device,) = (d for d in await side.module.look() if d.resource == side.resource)
            assert device.size == SIZE + 16
        await one.is_whole()

    pair.run(story())


def test_a_device_is_never_larger_than_its_volume(pair: Pair) -> None:
    async def story() -> None:
        await whole(pair)
        await pair.one.detach()
        larger = replace(pair.one.disk, size=MiB(SIZE + 16))
        with suppress(NodeFailure):  # some versions refuse it, others take what there is
            await pair.one.storage.attach(larger, Access.STANDBY)
        there = await pair.one.storage.find(larger)
        assert there is not None
        assert there.size == SIZE

    pair.run(story())


def test_disk_does_not_grow_while_its_copies_are_parted(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        await pair.cut()
        for side in (other, one):
            await side.until(lambda r: r.link is not Link.CONNECTED, "the loss of its peer")
        for side in (other, one):
            larger = replace(side.disk, size=MiB(SIZE + 16))
            assert "is not connected to its other copy" in await refusal(side.storage.grow(larger))
            there = await side.storage.find(side.disk)
            assert there is not None
            assert there.size == SIZE

    pair.run(story())


def test_disk_without_another_copy_is_used_alone(pair: Pair) -> None:
    async def story() -> None:
        storage, upkeep, disk = pair.one.storage, pair.one.upkeep, only(pair.one)
        await storage.ensure_present(disk)
        await storage.attach(disk, Access.STANDBY)
        await upkeep.begin(disk, full=True)
        await storage.attach(disk, Access.SOLE)
        (report,) = await upkeep.status((disk,))
        assert report is not None
        assert (report.primary, report.link, report.split) == (True, Link.NONE, False)

    pair.run(story())


def test_end_that_does_not_know_the_secret_gets_nothing(pair: Pair) -> None:
    async def story() -> None:
        await whole(pair)
        await pair.other.detach()
        backing = replace(pair.other.disk.backing, secret=SECRET[::-1])
        await pair.other.storage.attach(replace(pair.other.disk, backing=backing), Access.STANDBY)
        if not pair.proves:  # it cannot be checked here, which is logged
            await pair.other.until(lambda r: r.link is Link.CONNECTED, "a connection")
            return
        await pair.other.until(lambda r: r.link is Link.NONE, "a refusal")
        assert (await pair.one.report()).link is not Link.CONNECTED

    pair.run(story())
