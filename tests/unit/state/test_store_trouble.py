"""Committing while candidates fail, and the end of a mastership."""

import asyncio
import itertools

import pytest

from common.errors import Conflict, Deposed, NodeFailure, Unreachable
from common.names import Epoch
from coordinator.state import follower, ring
from coordinator.state.rows import Put
from coordinator.state.store import Store
from tests.support.candidates import Candidates, initialise, job, node, running, stored_rows
from tests.support.clock import simulate
from tests.support.replicas import MemoryReplica

THREE = ("alpha", "beta", "gamma")


async def open_store(candidates: Candidates) -> Store:
    return Store(await initialise(candidates, THREE), Epoch(2), candidates.dial(2))


def test_without_a_majority_nothing_is_acknowledged_and_nothing_lost() -> None:
    async def story() -> None:
        candidates = Candidates(*THREE)
        store = await open_store(candidates)
        async with running(store):
            candidates.silent |= {"beta", "gamma"}
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(store.commit([Put(job(1))]))
                await asyncio.sleep(40)
                assert not waiting.done()
                assert not store.state.jobs
                assert not store.writable
                with pytest.raises(Conflict, match=r"read-only.*beta: Node beta did not.*gamma:"):
                    store.check_writable()
                candidates.silent.clear()
                assert list((await waiting).jobs) == [1]
            store.check_writable()

    simulate(story())


def test_a_full_disk_is_told_and_overcome() -> None:
    async def story() -> None:
        candidates = Candidates(*THREE)
        store = await open_store(candidates)
        async with running(store):
            candidates.full |= {"beta"}
            await store.commit([Put(job(1))])
            await asyncio.sleep(1)
            calls = candidates.calls
            await asyncio.sleep(60)
            assert candidates.calls - calls < 80  # it is asked less and less often
            assert isinstance(store.troubles[node("beta").name], NodeFailure)
            assert store.writable
            candidates.full.clear()
            await asyncio.sleep(10)
            assert not store.troubles
            assert candidates.rows("beta") == stored_rows(store.state)

    simulate(story())


def test_the_operators_word_excuses_a_candidate_until_it_is_back() -> None:
    async def story() -> None:
        candidates = Candidates("alpha", "beta")
        state = await initialise(candidates, ("alpha", "beta"))
        candidates.silent |= {"beta"}
        store = Store(state, Epoch(2), candidates.dial(2), excused={node("beta").name})
        async with running(store):
            await store.commit([Put(job(1))])
            candidates.silent.clear()
            await asyncio.sleep(30)
            assert candidates.rows("beta") == stored_rows(store.state)
            candidates.silent |= {"beta"}
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(store.commit([Put(job(2))]))
                await asyncio.sleep(30)
                assert not waiting.done()
                candidates.silent.clear()

    simulate(story())


def test_a_deposed_master_fails_everything_and_says_so_once() -> None:
    async def story() -> None:
        candidates = Candidates(*THREE)
        told: list[Deposed] = []
        state = await initialise(candidates, THREE)
        store = Store(state, Epoch(2), candidates.dial(2), on_deposed=told.append)
        async with asyncio.TaskGroup() as group:
            running_store = group.create_task(store.run())
            await store.commit([Put(job(1))])
            candidates.granted = dict.fromkeys(candidates.granted, 3)
            watcher = group.create_task(expect_deposed(store.changed(store.state)))
            for number in (2, 3):
                group.create_task(expect_deposed(store.commit([Put(job(number))])))
            await running_store  # it ends by itself
            await watcher
            await expect_deposed(store.commit([Put(job(4))]))
            with pytest.raises(Deposed):
                store.check_writable()
        assert len(told) == 1
        assert list(store.state.jobs) == [1]

    simulate(story())


def test_a_whole_copy_ends_although_more_is_written_meanwhile_than_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ring, "KEPT_BYTES", 4_000)
    monkeypatch.setattr(follower, "PART_BYTES", 2_000)

    async def story() -> None:
        candidates = Candidates(*THREE)
        store = await open_store(candidates)
        async with running(store):
            for number in range(1, 101):
                await store.commit([Put(job(number, "x" * 500))])
            candidates.replicas[node("gamma").name] = MemoryReplica(kept=5)  # a new disk
            candidates.latency_s["gamma"] = 0.2

            async def write() -> None:
                for number in itertools.cycle(range(1, 11)):
                    await store.commit([Put(job(number, "y" * 400))])
                    await asyncio.sleep(0.05)

            writing = asyncio.ensure_future(write())
            await asyncio.sleep(60)
            assert not store.troubles
            behind = store.state.stamp.serial - candidates.replicas[node("gamma").name].at.serial
            assert behind < 20
            writing.cancel()
            await asyncio.sleep(10)
            assert candidates.rows("gamma") == stored_rows(store.state)

    simulate(story())


async def expect_deposed(call: object) -> None:
    with pytest.raises(Deposed, match="granted epoch 3"):
        await call  # type: ignore[misc]


def test_an_idle_master_learns_that_it_was_deposed() -> None:
    async def story() -> None:
        candidates = Candidates(*THREE)
        store = await open_store(candidates)
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            group.create_task(store.run())
            await asyncio.sleep(1)
            candidates.granted[node("gamma").name] = 3

    simulate(story())


def test_a_store_that_stops_does_not_leave_callers_waiting() -> None:
    async def story() -> None:
        candidates = Candidates(*THREE)
        store = await open_store(candidates)
        candidates.silent |= set(THREE)
        async with asyncio.TaskGroup() as group:
            run = group.create_task(store.run())

            async def expect_unknown() -> None:
                with pytest.raises(Unreachable, match="not known"):
                    await store.commit([Put(job(1))])

            group.create_task(expect_unknown())
            await asyncio.sleep(1)
            run.cancel()

    simulate(story())
