"""Candidates that join, leave, fall behind and diverge."""

import asyncio
from random import Random

import pytest

from common.errors import Bug, Conflict, NodeFailure, Unreachable
from common.names import Epoch, NodeName
from coordinator.state.rows import Delete, Put
from coordinator.state.store import Store
from tests.support.candidates import (
    Candidates,
    initialise,
    instance,
    job,
    node,
    running,
    stored_rows,
)
from tests.support.clock import simulate
from tests.support.replicas import history

FOUR = ("alpha", "beta", "gamma", "delta")


async def open_store(candidates: Candidates, *names: str, epoch: int = 2) -> Store:
    state = await initialise(candidates, names)
    return Store(state, Epoch(epoch), candidates.dial(epoch))


def test_a_new_candidate_has_everything_before_it_counts() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha", "beta", "gamma")
        async with running(store):
            await store.commit([Put(instance(f"web{n}", "alpha")) for n in range(50)])
            state = await store.commit([Put(node("delta"))])
            assert store.state.config.candidate_names == set(FOUR)
            candidates.silent |= {"beta"}
            state = await store.commit([Put(job(1))])
            assert candidates.rows("delta") == stored_rows(state)

    simulate(story())


def test_others_go_on_while_a_new_candidate_gets_its_copy() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        candidates.latency_s["delta"] = 5.0
        store = await open_store(candidates, "alpha", "beta", "gamma")
        async with running(store), asyncio.TaskGroup() as group:
            joining = group.create_task(store.commit([Put(node("delta"))]))
            for number in range(1, 100):
                await store.commit([Put(job(number))])
            assert asyncio.get_running_loop().time() < 5
            assert not joining.done()
            await joining

    simulate(story())


@pytest.mark.parametrize(("fault", "error"), [("silent", Unreachable), ("full", NodeFailure)])
def test_a_node_that_cannot_be_copied_to_does_not_join(fault: str, error: type[Exception]) -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha")
        getattr(candidates, fault).add("delta")
        async with running(store):
            # Larger than one part, and the node may take in some of them before it fails.
            await store.commit([Put(job(n, "x" * 400_000)) for n in range(1, 6)])
            with pytest.raises(error, match="delta cannot become a master candidate"):
                await store.commit([Put(node("delta"))])
            assert store.state.config.find_node("delta") is None
            await store.commit([Put(job(6))])
            getattr(candidates, fault).clear()
            await store.commit([Put(node("delta"))])
            assert candidates.rows("delta") == candidates.rows("alpha")

    simulate(story())


def test_a_candidate_that_left_gets_nothing_more() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha", "beta", "gamma")
        async with running(store):
            await store.commit([Put(node("gamma", candidate=False))])
            await store.commit([Delete(node("gamma"))])
            await store.commit([Put(job(1))])
            assert ("job", "1") not in candidates.rows("gamma")
            await store.commit([Put(node("gamma"))])  # back again
            assert candidates.rows("gamma") == stored_rows(store.state)

    simulate(story())


def test_a_dead_candidate_can_be_removed() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha", "beta", "gamma")
        async with running(store):
            candidates.silent |= {"gamma"}
            await store.commit([Put(node("gamma", candidate=False))])
            await asyncio.sleep(60)
            assert not store.troubles

    simulate(story())


def test_a_change_of_the_pool_needs_both_majorities() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha", "beta")
        async with running(store), asyncio.TaskGroup() as group:
            candidates.silent |= {"beta"}
            # Of the pool after, alpha alone would be the majority; of the one before it is not.
            leaving = group.create_task(store.commit([Put(node("beta", candidate=False))]))
            await asyncio.sleep(60)
            assert not leaving.done()
            candidates.silent.clear()

    simulate(story())


def test_the_pool_changes_by_one_node_at_a_time() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha", "beta", "gamma")
        async with running(store):
            with pytest.raises(Bug, match="by one node at a time"):
                await store.commit([Put(node("gamma", candidate=False)), Put(node("delta"))])
            before = store.state.stamp.serial
            async with asyncio.TaskGroup() as group:
                for change in (node("delta"), node("gamma", candidate=False)):
                    group.create_task(store.commit([Put(change)]))
            assert store.state.stamp.serial == before + 2
            assert store.state.config.candidate_names == {"alpha", "beta", "delta"}

    simulate(story())


def test_the_last_candidate_stays() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha")
        async with running(store):
            with pytest.raises(Conflict, match="last master candidate"):
                await store.commit([Delete(node("alpha"))])
            await store.commit([Put(job(1))])

    simulate(story())


def test_a_candidate_that_missed_a_little_gets_only_that() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha", "beta", "gamma")
        async with running(store):
            candidates.silent |= {"gamma"}
            for number in range(1, 100):
                await store.commit([Put(job(number))])
            kept = candidates.replicas[NodeName("gamma")]
            candidates.silent.clear()
            await asyncio.sleep(30)
            assert kept.at == store.state.stamp
            assert kept.commits  # a whole copy would have emptied this

    simulate(story())


@pytest.mark.parametrize("longer", [0, 3])
def test_a_candidate_with_another_history_gets_a_whole_copy(longer: int) -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        state = await initialise(candidates, ("alpha", "beta", "gamma"))
        strange = candidates.replicas[NodeName("gamma")]
        # It stored what the master before this one never got acknowledged.
        lost = history(1 + longer, Random(1), after=strange.at)
        await strange.append(commits=lost)
        store = Store(state, Epoch(2), candidates.dial(2))
        async with running(store):
            await store.commit([Put(job(1))])
            await asyncio.sleep(10)
            assert strange.at == store.state.stamp
            assert strange.rows == stored_rows(store.state)

    simulate(story())


def test_a_candidate_that_lost_its_disk_gets_a_whole_copy() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha", "beta", "gamma")
        async with running(store):
            for number in range(1, 10):
                await store.commit([Put(job(number))])
            await candidates.replicas[NodeName("beta")].erase()
            await store.commit([Put(job(10))])
            await asyncio.sleep(20)
            assert candidates.rows("beta") == stored_rows(store.state)

    simulate(story())


def test_a_large_state_is_copied_in_parts() -> None:
    async def story() -> None:
        candidates = Candidates(*FOUR)
        store = await open_store(candidates, "alpha")
        async with running(store):
            for number in range(1, 11):
                await store.commit([Put(job(number, "x" * 400_000))])
            calls = candidates.calls
            await store.commit([Put(node("delta"))])
            assert candidates.calls - calls >= 5
            assert candidates.rows("delta") == stored_rows(store.state)

    simulate(story())
