"""Turns, and who gives up while waiting for one."""

import asyncio

import pytest

from common.errors import Expired
from noded.system.patience import bounded_by, without_bounds
from noded.system.turns import Turns
from tests.support.clock import simulate


async def change(turns: Turns, key: str, done: list[str], *, took_s: float = 1.0) -> None:
    async with turns.of(key):
        await asyncio.sleep(took_s)
        done.append(key)


def patience_until(at_s: float) -> None:
    if asyncio.get_running_loop().time() > at_s:
        raise Expired("Nobody waits for it any more.")


def test_an_order_whose_turn_comes_too_late_changes_nothing() -> None:
    async def story() -> None:
        turns, done = Turns(), list[str]()
        async with asyncio.TaskGroup() as group:
            group.create_task(change(turns, "web1", done, took_s=10))
            await asyncio.sleep(0)
            with bounded_by(lambda: patience_until(5)):
                await change(turns, "web2", done)
                with pytest.raises(Expired):
                    await change(turns, "web1", done)
        assert done == ["web2", "web1"]

    simulate(story())


def test_what_outlives_its_order_is_not_bounded_by_it() -> None:
    async def story() -> None:
        turns, done = Turns(), list[str]()
        with bounded_by(lambda: patience_until(-1)):
            with without_bounds():
                await change(turns, "web1", done)
            with pytest.raises(Expired):
                await change(turns, "web1", done)
        await change(turns, "web1", done)
        assert done == ["web1", "web1"]

    simulate(story())
