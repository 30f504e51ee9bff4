"""What mirrored disks promise when their copies part, and when they meet again."""

from common.noderpc.disks import Access
from common.noderpc.mirrors import CopyState, Link
from tests.support.pairs import SIZE, Pair, Side, begun, refusal, whole


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
        await other.is_whole()

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
