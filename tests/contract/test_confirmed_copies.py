"""What each side of a copy between clusters is told when the other one has recorded it."""

from pathlib import Path

import pytest

from common.errors import NodeFailure
from common.noderpc.copies import BrokenOff
from common.noderpc.disks import Access
from tests.contract.test_copies import COPY, DISK, SIZE
from tests.contract.test_copies_between_clusters import (
    NODES,
    WAIT_S,
    Rig,
    Tell,
    bring,
    ended,
    expect,
    seen,
    telling,
)
from tests.support.disks import file_disk

OTHER = "4711-copy-1"


@pytest.fixture(params=["fake", "processes"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    return telling(request.param, tmp_path)


def test_nobody_hears_that_it_is_there_before_that_is_confirmed(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await expect(rig, until_confirmed=True)
        await bring(rig, offer)
        there = await seen(rig, "beta", lambda now: now.is_there)
        assert not there.has_ended
        assert rig.is_filled("beta")
        assert not (await rig.copiers["alpha"].look(COPY)).has_ended
        for node in NODES:
            rig.restart_noded(node)
        assert await expect(rig, until_confirmed=True) == offer
        for _ in range(2):
            await rig.copiers["beta"].confirm(COPY)
        for node in NODES:
            await ended(rig, node)
        await rig.copiers["beta"].confirm(COPY)
        await ended(rig, "beta")

    tell(story)


def test_who_comes_again_before_it_is_confirmed_hears_it_then(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await expect(rig, until_confirmed=True)
        await bring(rig, offer)
        await seen(rig, "beta", lambda now: now.is_there)
        rig.kill_side("alpha")
        with pytest.raises(BrokenOff):
            await ended(rig, "alpha")
        await bring(rig, offer)
        await rig.copiers["beta"].confirm(COPY)
        for node in NODES:
            await ended(rig, node)
        assert rig.is_filled("beta")

    tell(story)


def test_who_expected_it_hears_nothing_before_the_other_side_lets_go(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await expect(rig, until_confirmed=True)
        await bring(rig, offer, until_confirmed=True)
        await seen(rig, "beta", lambda now: now.is_there)
        assert not await rig.copiers["alpha"].has_arrived(COPY)
        await rig.copiers["beta"].confirm(COPY)
        there = await seen(rig, "alpha", lambda now: now.is_there)
        assert not there.has_ended
        assert await rig.copiers["alpha"].has_arrived(COPY)
        for node in NODES:
            rig.restart_noded(node)
        await bring(rig, offer, until_confirmed=True)
        assert not (await rig.copiers["beta"].look(COPY)).has_ended
        for _ in range(2):
            await rig.copiers["alpha"].confirm(COPY)
        for node in NODES:
            await ended(rig, node)

    tell(story)


def test_who_lets_go_comes_again_to_say_so(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        offer = await expect(rig)
        await bring(rig, offer, until_confirmed=True)
        await seen(rig, "alpha", lambda now: now.is_there)
        rig.kill_side("alpha")
        with pytest.raises(BrokenOff):
            await ended(rig, "alpha")
        assert await rig.copiers["alpha"].has_arrived(COPY)
        await bring(rig, offer, until_confirmed=True)
        await rig.copiers["alpha"].confirm(COPY)
        for node in NODES:
            await ended(rig, node)

    tell(story)


def test_who_has_not_let_go_notices_that_the_other_side_is_gone(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await bring(rig, await expect(rig), until_confirmed=True)
        await seen(rig, "alpha", lambda now: now.is_there)
        await rig.copiers["beta"].end(COPY)
        with pytest.raises(BrokenOff):
            await ended(rig, "alpha")
        assert await rig.copiers["alpha"].has_arrived(COPY)
        await rig.copiers["alpha"].end(COPY)
        assert not await rig.copiers["alpha"].has_arrived(COPY)

    tell(story)


def test_of_all_disks_of_an_instance_the_last_one_waits(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        beta = rig.copiers["beta"]
        path = f"{rig.disks['beta'].backing.where}-other"
        other = file_disk(f"{DISK[:-1]}b", path, size=SIZE)
        await rig.storages["beta"].ensure_present(other)
        await rig.storages["beta"].attach(other, Access.SOLE)
        await bring(rig, await expect(rig, until_confirmed=True))
        await seen(rig, "beta", lambda now: now.is_there)
        await beta.confirm_unless_last(COPY, ())
        await beta.confirm_unless_last(COPY, (COPY, "8-copy-0"))  # of which nothing is known
        assert not (await rig.copiers["alpha"].look(COPY)).has_ended
        await beta.expect(OTHER, other, rig.stranger("alpha"), WAIT_S, until_confirmed=True)
        await beta.confirm_unless_last(COPY, (OTHER,))
        for node in NODES:
            await ended(rig, node)
        await beta.confirm_unless_last(OTHER, (COPY,))
        assert not (await beta.look(OTHER)).has_ended
        await beta.confirm(OTHER)
        await beta.end(OTHER)

    tell(story)


def test_what_is_not_known_cannot_be_confirmed(tell: Tell) -> None:
    async def story(rig: Rig) -> None:
        await bring(rig, await expect(rig, until_confirmed=True))
        await seen(rig, "beta", lambda now: now.is_there)
        await rig.copiers["beta"].end(COPY)
        with pytest.raises(NodeFailure, match="knows nothing of this copy"):
            await rig.copiers["beta"].confirm(COPY)
        with pytest.raises(BrokenOff):
            await ended(rig, "alpha")

    tell(story)
