"""Who waits for the next time is woken by that, and by nothing that was before."""

import asyncio

from common.bell import Bell, first_of
from tests.support.clock import simulate


def test_all_who_wait_are_told_which_rang_first_and_who_comes_later_waits() -> None:
    async def story() -> None:
        one, other = Bell(), Bell()
        one.ring()  # for nobody
        both = [asyncio.ensure_future(first_of(one, other)) for _ in range(2)]
        only = asyncio.ensure_future(first_of(one))
        await asyncio.sleep(1)
        other.ring()
        one.ring()
        assert [await each for each in (*both, only)] == [other, other, one]
        later = asyncio.ensure_future(first_of(one))
        await asyncio.sleep(1)
        assert not later.done()
        one.ring()
        assert await later is one

    simulate(story())


def test_nobody_is_kept_who_does_not_wait_any_more() -> None:
    async def story() -> None:
        bell = Bell()
        waits = asyncio.ensure_future(first_of(bell))
        await asyncio.sleep(1)
        waits.cancel()
        await asyncio.wait([waits])
        assert not bell._waiting
        bell.ring()

    simulate(story())
