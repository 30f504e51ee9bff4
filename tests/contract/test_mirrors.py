"""What mirrored disks promise, kept by DRBD's module and by the fake, through the same driver."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.names import DiskId, MiB
from common.noderpc.disks import Access
from common.noderpc.mirrors import Copying, CopyState, Link
from noded.storage.drbd.mirror import OURS
from noded.storage.lvm.volumes import Volume
from tests.support.drbd_pair import DrbdPair
from tests.support.fake_pair import FakePair, FakePairOfNine
from tests.support.pairs import SECRET, SIZE, Pair, Side, only, refusal, whole

Story = Callable[[Pair], Coroutine[Any, Any, None]]


@pytest.fixture(params=[FakePair, FakePairOfNine, DrbdPair], ids=["fake", "fake-9", "drbd"])
def pair(request: pytest.FixtureRequest) -> Pair:
    kind: Callable[[], Pair] = request.param
    return kind()


@pytest.fixture(scope="module", autouse=True)
def emptied() -> Iterator[None]:
    """Leave no volume behind."""
    yield
    DrbdPair.remove()


async def begun(pair: Pair) -> tuple[Side, Side]:
    """Make a disk that is primary on one side, and follows on the other."""
    await whole(pair)
    await pair.one.attach(Access.SOLE)
    return pair.one, pair.other


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


def test_copy_is_not_used_while_nobody_knows_whether_it_is_the_newest(pair: Pair) -> None:
    async def story() -> None:
        await whole(pair)
        await pair.other.detach()
        await pair.one.detach()
        words = await refusal(pair.one.attach(Access.SOLE))
        assert "it is not connected to its other copy" in words
        assert (await pair.one.report()).own is CopyState.CONSISTENT
        await pair.one.attach(Access.ALONE)  # the other one is noted to be behind
        assert (await pair.one.report()).primary

    pair.run(story())


def test_only_what_was_written_meanwhile_is_copied_afterwards(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        await other.detach()
        await one.until(lambda r: r.link is Link.CONNECTING, "the loss")
        written = await pair.write(one)
        alone = await one.report()
        assert 0 < alone.behind_kib < SIZE * 1024
        assert alone.percent < 100
        await other.attach(Access.STANDBY)
        await other.is_whole()
        await one.attach(Access.STANDBY)
        await other.attach(Access.SOLE)
        assert await pair.has(other, written)

    pair.run(story())


def test_copy_that_fell_behind_is_used_only_when_it_was_declared_good(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        await other.detach()  # in order, so it knows that it falls behind
        await pair.write(one)
        await one.detach()
        words = await refusal(other.attach(Access.ALONE))
        assert "this one is outdated" in words
        await other.upkeep.declare_good(other.disk)
        await other.upkeep.declare_good(other.disk)
        await other.attach(Access.ALONE)
        assert (await other.report()).primary

    pair.run(story())


def test_a_copy_that_loses_the_other_one_is_told_to_be_the_newest(pair: Pair) -> None:
    """By that it is known that nothing is lost when its guest is started there."""

    async def story() -> None:
        _, other = await begun(pair)
        await pair.cut()
        await other.until(
            lambda r: r.link is Link.CONNECTING and r.own is CopyState.UP_TO_DATE, "the loss"
        )
        await pair.heal()

    pair.run(story())


async def split(pair: Pair) -> tuple[Side, Side]:
    """Have both sides written to apart, then connect them."""
    one, other = await begun(pair)
    await pair.cut()
    await pair.write(one)
    await other.until(lambda r: r.link is Link.CONNECTING, "the cut")
    await other.attach(Access.ALONE)
    await pair.write(other)
    await other.attach(Access.STANDBY)
    await pair.heal()
    for side in (one, other):
        await side.until(lambda r: r.link is Link.NONE, "the two to refuse each other")
    return one, other


def test_copies_that_were_written_apart_refuse_each_other(pair: Pair) -> None:
    async def story() -> None:
        one, other = await split(pair)
        for side in (one, other):
            report = await side.report()
            assert (report.split, report.own) == (True, CopyState.UP_TO_DATE)
        (mine, theirs) = [(await side.report()).generations for side in (one, other)]
        assert mine[0] != theirs[0]
        assert mine[1] == theirs[1]  # where they parted

    pair.run(story())


def test_one_of_two_that_were_written_apart_is_given_up_by_name(pair: Pair) -> None:
    async def story() -> None:
        one, other = await split(pair)
        assert "cannot be given up" in await refusal(one.upkeep.connect(one.disk, discard=True))
        await other.upkeep.connect(other.disk, discard=True)
        await one.upkeep.connect(one.disk, discard=False)
        await one.is_whole()
        report = await one.report()
        assert (report.primary, report.split) == (True, False)

    pair.run(story())


def test_cut_is_survived_and_only_the_difference_copied(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        await pair.cut()
        await one.until(lambda r: r.link is Link.CONNECTING, "the cut")
        written = await pair.write(one)
        await pair.heal()
        await one.is_whole()
        await one.attach(Access.STANDBY)
        await other.attach(Access.SOLE)
        assert await pair.has(other, written)

    pair.run(story())


def test_device_of_somebody_else_is_neither_used_nor_taken_away(pair: Pair) -> None:
    async def story() -> None:
        one = pair.one
        await one.storage.ensure_present(one.disk)
        minor = one.disk.ends[0].minor
        await one.module.create("precious", minor, 0)
        with pytest.raises(Conflict, match="that of precious, which is none of ours"):
            await one.attach(Access.STANDBY)
        assert [device.resource for device in await one.module.look()] == ["precious"]
        await one.module.remove("precious")

    pair.run(story())


def test_remnant_of_another_disk_makes_way(pair: Pair) -> None:
    async def story() -> None:
        one = pair.one
        await one.storage.ensure_present(one.disk)
        minor = one.disk.ends[0].minor
        await one.module.create(f"{OURS}dddddddd-0000-4000-8000-00000000000f", minor, 0)
        await one.attach(Access.STANDBY)
        assert [device.resource for device in await one.module.look()] == [one.resource]

    pair.run(story())


def test_device_of_another_disk_that_is_connected_does_not_make_way(pair: Pair) -> None:
    async def story() -> None:
        await whole(pair)
        one = pair.one
        foreign = replace(
            one.disk, id=DiskId("dddddddd-0000-4000-8000-00000000000f"), ends=one.disk.ends[:1]
        )
        with pytest.raises(Conflict, match=f"{one.resource} has /dev/drbd"):
            await one.storage.attach(foreign, Access.STANDBY)
        assert (await one.report()).link is Link.CONNECTED

    pair.run(story())


def test_device_that_nobody_is_to_have_is_taken_away_unless_it_is_in_use(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        assert "it is primary" in await refusal(one.upkeep.take_away(one.disk.id))
        assert "connected to another copy" in await refusal(other.upkeep.take_away(other.disk.id))
        await one.detach()
        await other.until(lambda r: r.link is Link.CONNECTING, "the other side to be gone")
        await other.upkeep.take_away(other.disk.id)
        await other.upkeep.take_away(other.disk.id)
        assert await other.module.look() == ()

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


@contextmanager
def interrupted(side: Side) -> Iterator[None]:
    """Have the second of several volumes not be renamed."""
    volumes: Any = side.storage.devices.volumes
    rename = volumes.rename
    renamed: list[Volume] = []

    async def renames_one(volume: Volume, new: Volume) -> None:
        if renamed:
            raise NodeFailure("It was cut off.")
        await rename(volume, new)
        renamed.append(volume)

    volumes.rename = renames_one
    yield
    del volumes.rename


def test_good_copy_is_not_set_aside_for_want_of_another(pair: Pair) -> None:
    async def story() -> None:
        one, other = await begun(pair)
        await other.detach()
        await one.until(lambda r: r.link is Link.CONNECTING, "the loss")
        assert "not known to have a good copy" in await refusal(one.upkeep.set_aside(one.disk))
        assert (await one.report()).own is CopyState.UP_TO_DATE

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
