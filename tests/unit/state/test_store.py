"""Committing: what is promised to the caller, in good times and bad."""

import asyncio
from random import Random

import msgspec
import pytest

from common.errors import Bug, Conflict, InvalidRequest
from common.names import Epoch, JobId
from coordinator.state.rows import Delete, Put, Update
from coordinator.state.state import State
from coordinator.state.store import Store
from tests.support.candidates import (
    GROUP,
    Candidates,
    cluster,
    initialise,
    instance,
    job,
    node,
    running,
    stored_rows,
)
from tests.support.clock import simulate

THREE = ("alpha", "beta", "gamma")


async def open_store(candidates: Candidates, *names: str, epoch: int = 2) -> Store:
    state = await initialise(candidates, names or THREE)
    return Store(state, Epoch(epoch), candidates.dial(epoch))


def test_the_first_commit_makes_the_cluster() -> None:
    async def story() -> None:
        candidates = Candidates("alpha")
        store = Store(State(), Epoch(1), candidates.dial(1))
        async with running(store):
            state = await store.commit([Put(cluster("alpha")), Put(GROUP), Put(node("alpha"))])
        assert state is store.state
        assert state.config.cluster.master == "alpha"
        assert candidates.rows("alpha") == stored_rows(state)
        assert candidates.replicas[node("alpha").name].at == state.stamp

    simulate(story())


def test_a_commit_is_on_a_majority_when_it_returns() -> None:
    async def story() -> None:
        candidates = Candidates(*THREE)
        candidates.latency_s["gamma"] = 3.0
        store = await open_store(candidates)
        async with running(store):
            began = asyncio.get_running_loop().time()
            state = await store.commit([Put(job(1))])
            assert asyncio.get_running_loop().time() - began < 0.1
            assert candidates.rows("alpha") == candidates.rows("beta") == stored_rows(state)
            assert candidates.rows("gamma") != stored_rows(state)
            await asyncio.sleep(20)
            assert candidates.rows("gamma") == stored_rows(state)

    simulate(story())


def test_transactions_that_wait_share_a_round() -> None:
    async def story() -> None:
        candidates = Candidates(*THREE)
        store = await open_store(candidates)
        async with running(store):
            await store.commit([Put(job(1))])
            before, calls = store.state.stamp.serial, candidates.calls
            async with asyncio.TaskGroup() as group:
                for number in range(2, 302):
                    group.create_task(store.commit([Put(job(number))]))
            assert store.state.stamp.serial - before <= 2
            assert candidates.calls - calls <= 6
            assert store.state.newest_job == 301

    simulate(story())


def test_a_transaction_sees_those_before_it() -> None:
    async def story() -> None:
        store = await open_store(Candidates(*THREE))

        def submit(state: State) -> list[Update]:
            return [Put(job(state.newest_job + 1))]

        async with running(store):
            async with asyncio.TaskGroup() as group:
                for _ in range(50):
                    group.create_task(store.commit(submit))
            assert sorted(store.state.jobs) == list(range(1, 51))

    simulate(story())


def test_what_a_transaction_raises_is_its_own() -> None:
    async def story() -> None:
        store = await open_store(Candidates(*THREE))
        async with running(store), asyncio.TaskGroup() as group:
            good = group.create_task(store.commit([Put(instance("web1", "alpha"))]))
            await asyncio.sleep(0)
            twin = msgspec.structs.replace(instance("web1", "beta"), uuid="another")
            with pytest.raises(Conflict, match="already an instance named web1"):
                await store.commit([Put(job(1)), Put(twin)])
            await good
        assert not store.state.jobs
        assert store.state.config.instance("web1").primary_node == "alpha"

    simulate(story())


def test_an_empty_transaction_waits_for_what_it_saw() -> None:
    async def story() -> None:
        store = await open_store(Candidates(*THREE))
        async with running(store), asyncio.TaskGroup() as group:
            group.create_task(store.commit([Put(job(1))]))
            await asyncio.sleep(0)
            assert not store.state.jobs
            seen = await store.commit(lambda state: [] if state.jobs else [Put(job(9))])
            assert list(seen.jobs) == [1]

    simulate(story())


def test_a_cancelled_caller_does_not_disturb_the_others() -> None:
    async def story() -> None:
        store = await open_store(Candidates(*THREE))
        async with running(store), asyncio.TaskGroup() as group:
            tasks = [group.create_task(store.commit([Put(job(n))])) for n in (1, 2, 3)]
            await asyncio.sleep(0)
            tasks[1].cancel()
            await asyncio.wait(tasks)
        assert sorted(store.state.jobs) == [1, 2, 3]

    simulate(story())


def test_what_cannot_be_read_back_is_refused() -> None:
    async def story() -> None:
        store = await open_store(Candidates(*THREE))
        deep: list[object] = []
        for _ in range(300):
            deep = [deep]
        async with running(store):
            with pytest.raises(InvalidRequest, match="job 1 cannot be stored"):
                await store.commit([Put(job(1, deep))])
            with pytest.raises(Bug, match="instance uuid of web1 cannot be stored"):
                await store.commit([Put(instance("web1", None))])  # type: ignore[arg-type]
            with pytest.raises(Bug, match="cannot be stored"):
                await store.commit([Put(job(1, object()))])
            with pytest.raises(InvalidRequest, match="has 9 MiB"):
                await store.commit([Put(job(1, "x" * (9 * 2**20)))])
            value = {"brackets": ['"[{\\"' * 500] * 300, "fine": [[[]]] * 300}
            state = await store.commit([Put(job(1, value))])
            assert state.jobs[JobId(1)].ops[0].result == value

    simulate(story())


def test_later_changes_to_the_callers_object_do_not_count() -> None:
    async def story() -> None:
        store = await open_store(Candidates(*THREE))
        result = {"a": 1}
        async with running(store):
            state = await store.commit([Put(job(1, result))])
            result["a"] = 2
            assert state.jobs[JobId(1)].ops[0].result == {"a": 1}

    simulate(story())


def test_the_newest_job_is_kept() -> None:
    async def story() -> None:
        store = await open_store(Candidates(*THREE))
        async with running(store):
            await store.commit([Put(job(1)), Put(job(2))])
            await store.commit([Delete(job(1))])
            with pytest.raises(Bug, match="newest"):
                await store.commit([Delete(job(2))])

    simulate(story())


def test_whoever_waits_for_a_change_gets_the_newest_state() -> None:
    async def story() -> None:
        store = await open_store(Candidates(*THREE))
        async with running(store), asyncio.TaskGroup() as group:
            waiting = group.create_task(store.changed(store.state))
            await asyncio.sleep(1)
            assert not waiting.done()
            await store.commit([Put(job(1))])
            assert (await waiting) is store.state
            assert JobId(1) in store.state.jobs

    simulate(story())


def test_a_large_round_is_cut_into_several() -> None:
    async def story() -> None:
        store = await open_store(Candidates(*THREE, random=Random(3)))
        large = "x" * 1_000_000
        async with running(store):
            before = store.state.stamp.serial
            async with asyncio.TaskGroup() as group:
                for number in range(1, 11):
                    group.create_task(store.commit([Put(job(number, large))]))
            assert 4 <= store.state.stamp.serial - before <= 6

    simulate(story())
