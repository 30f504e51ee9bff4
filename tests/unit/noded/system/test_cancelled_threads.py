"""Who waits for a thread is cancelled: nothing is given up that the thread still works with."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from noded.handlers.replica import ReplicaHandlers
from noded.replica.store import ReplicaFile
from noded.system.threads import Threads, in_thread

LONGEST_S = 10.0  # until the work ends after all, for a test that would hang


@pytest.mark.parametrize("run", [in_thread, "of its own"], ids=["any", "own"])
def test_cancelled_twice_it_still_waits_for_its_thread(
    run: Callable[[Callable[[], bool]], Coroutine[None, None, bool]] | str,
) -> None:
    let_go, told = threading.Event(), list[str]()

    async def scenario() -> None:
        asyncio.get_running_loop().call_later(LONGEST_S, let_go.set)
        pool = Threads(1, patience_s=LONGEST_S, busy="it is held")
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work() -> bool:
            loop.call_soon_threadsafe(begun.set)
            let_go.wait()
            told.append("the work has ended")
            return True

        async def hold() -> None:
            try:
                await (pool.run(work) if isinstance(run, str) else run(work))
            finally:
                told.append("its lock is given up")

        async with asyncio.TaskGroup() as group:
            holding = group.create_task(hold())
            await begun.wait()
            for _ in range(3):
                holding.cancel()
                for _ in range(5):  # as many turns as it would take to end
                    await asyncio.sleep(0)
            let_go.set()
        assert holding.cancelled()

    asyncio.run(scenario())
    assert told == ["the work has ended", "its lock is given up"]


def test_a_commit_that_is_cancelled_twice_has_ended_when_its_call_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, told = threading.Event(), list[str]()

    async def scenario() -> None:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(LONGEST_S, let_go.set)

        def append(*_: object) -> None:
            loop.call_soon_threadsafe(begun.set)
            let_go.wait()
            told.append("it is written")

        async def call() -> None:
            try:
                await replica.append(commits=())
            finally:
                told.append("a new master is told that the old one's calls have ended")

        monkeypatch.setattr(ReplicaFile, "append", append)
        replica = ReplicaHandlers(tmp_path / "replica")
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(call())
            await begun.wait()
            for _ in range(3):
                calling.cancel()
                for _ in range(5):
                    await asyncio.sleep(0)
            let_go.set()
        assert calling.cancelled()
        await replica.close()

    asyncio.run(scenario())
    assert told == ["it is written", "a new master is told that the old one's calls have ended"]
