"""Threads for work that may never end: who waits for one, and for how long."""

import asyncio
from collections.abc import Callable

import pytest

from common.errors import NodeFailure
from noded.system import threads
from noded.system.threads import Threads
from tests.support.clock import simulate

PATIENCE_S = 20.0


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have work take as long as it says, in virtual time."""

    async def run(_: object, work: Callable[[], float]) -> float:
        await asyncio.sleep(work())
        return work()

    monkeypatch.setattr(threads, "in_thread_of", run)


def ends(*works: float) -> list[float | str]:
    """Have some work done by two threads; return what comes of each."""

    async def scenario() -> list[float | str]:
        two = Threads(2, patience_s=PATIENCE_S, busy="all are held")

        async def end(seconds: float) -> float | str:
            try:
                return await two.run(lambda: seconds)
            except NodeFailure as error:
                return error.message

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(end(seconds)) for seconds in works]
        return [task.result() for task in tasks]

    return simulate(scenario())


def test_many_take_their_time_as_long_as_threads_come_free() -> None:
    assert ends(*[15.0] * 40) == [15.0] * 40


def test_who_waits_for_threads_that_are_held_is_told() -> None:
    assert ends(1e4, 1e4, 1.0, 1.0) == [1e4, 1e4, "all are held", "all are held"]


def test_one_held_thread_leaves_the_other() -> None:
    assert ends(1e4, *[15.0] * 9) == [1e4, *[15.0] * 9]


def test_a_thread_that_comes_free_late_is_used() -> None:
    async def scenario() -> float:
        two = Threads(2, patience_s=PATIENCE_S, busy="all are held")
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(two.run(lambda: 100.0))
        return await two.run(lambda: 1.0)

    assert simulate(scenario()) == 1.0
