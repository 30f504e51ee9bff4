"""Random lives of a cluster: masters come and go, calls are lost, the pool changes.

Whatever happens, a change that was acknowledged is in the state of every later master, and in
the end all candidates hold the same.
"""

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import GntError
from common.names import Epoch, JobId, NodeName
from coordinator.quorum.majority import is_majority
from coordinator.state.loading import Loaded, load
from coordinator.state.replication import pool_of
from coordinator.state.rows import Put, Update
from coordinator.state.state import State
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
from tests.support.seeds import examples

NODES = tuple(NodeName(name) for name in ("alpha", "beta", "gamma", "delta", "epsilon"))


class Life:
    """One cluster's life, all of which follows from its seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.candidates = Candidates(*NODES, random=self.random)
        self.acknowledged: set[int] = set()
        self.masters = 0
        self._next_job = 1

    async def live(self) -> None:
        network, chance = self.candidates, self.random
        state = await initialise(network, NODES[:3])
        for name in NODES[3:]:
            state = await self._join(state, name)
        network.granted = dict.fromkeys(NODES, 1)
        network.latency_s = {name: chance.choice((0.001, 0.01, 1.0)) for name in NODES}
        network.loss = chance.choice((0.0, 0.0, 0.02))
        async with asyncio.TaskGroup() as group:
            reigns = [group.create_task(self._reign(Store(state, Epoch(1), network.dial(1))))]
            for _ in range(8):
                await asyncio.sleep(chance.uniform(0, 40))
                network.silent = set(chance.sample(NODES, chance.choice((0, 0, 1, 1, 2, 3))))
                taken = await self._take_over(chance.choice(NODES))
                if taken is not None:
                    # The master before may be dead or not; it is up to the fence.
                    if chance.random() < 0.5:
                        reigns[-1].cancel()
                    reigns.append(group.create_task(self._reign(taken)))
            network.silent.clear()
            network.loss = 0.0
            last = None
            while last is None:
                last = await self._take_over(chance.choice(NODES))
            async with running(last):
                await self._begin(last)
                await asyncio.sleep(120)
                self._check_equal(last)
            for reign in reigns:
                reign.cancel()

    async def _join(self, state: State, name: NodeName) -> State:
        store = Store(state, Epoch(1), self.candidates.dial(1))
        async with running(store):
            return await store.commit([Put(node(name, candidate=False))])

    async def _take_over(self, me: NodeName) -> Store | None:
        """Do what coordinator.quorum says, in the simplest way; None if there is no quorum."""
        network = self.candidates
        heard = [name for name in NODES if name not in network.silent]
        if me not in heard:
            return None
        epoch = Epoch(max(network.granted[name] for name in heard) + 1)
        loaded = await self._read(me)
        while True:
            pool = pool_of(loaded.state)
            stamps = {n: network.replicas[n].at for n in heard if n in pool}
            stamps = {name: stamp for name, stamp in stamps.items() if stamp.serial}
            if (
                me not in pool
                or not is_majority(len(heard), len(NODES))
                or not is_majority(len(stamps), len(pool))
            ):
                return None
            network.granted |= dict.fromkeys(heard, epoch)
            newest = max(stamps, key=lambda name: stamps[name].age)
            if stamps[newest].age <= loaded.state.stamp.age:
                break
            loaded = await self._read(newest)
        self.masters += 1
        return Store(loaded.state, epoch, network.dial(epoch), recent=loaded.recent)

    async def _read(self, name: NodeName) -> Loaded:
        return await load(self.candidates.replicas[name])

    async def _reign(self, store: Store) -> None:
        async with running(store), asyncio.TaskGroup() as group:
            try:
                await self._begin(store)
                for _ in range(6):
                    group.create_task(self._submit(store))
                while True:
                    await asyncio.sleep(self.random.uniform(0, 20))
                    await self._change_pool(store)
            except GntError:
                return  # deposed, or stopped

    async def _begin(self, store: Store) -> None:
        """Commit something of this epoch, as a new master has to before it believes its state."""
        state = await store.commit([Put(instance(f"epoch{store._epoch}", "alpha"))])
        missing = self.acknowledged - set(state.jobs)
        assert not missing, f"acknowledged, but lost: {missing}"

    async def _submit(self, store: Store) -> None:
        while True:
            number, self._next_job = self._next_job, self._next_job + 1
            try:
                state = await store.commit([Put(job(number))])
            except GntError:
                return
            assert JobId(number) in state.jobs
            self._check_durable(store, number)
            self.acknowledged.add(number)
            await asyncio.sleep(self.random.uniform(0, 10))

    async def _change_pool(self, store: Store) -> None:
        def toggle(state: State) -> list[Update]:
            name = self.random.choice(NODES)
            pool = pool_of(state)
            if name in pool and len(pool) == 1:
                return []
            return [Put(node(name, candidate=name not in pool))]

        try:
            await store.commit(toggle)
        except GntError as error:
            if "cannot become" not in error.message:
                raise

    def _check_durable(self, store: Store, number: int) -> None:
        pool = pool_of(store.state)
        key = "job", str(number)
        holding = [name for name in pool if key in self.candidates.rows(name)]
        assert is_majority(len(holding), len(pool))

    def _check_equal(self, store: Store) -> None:
        assert store.writable
        for name in pool_of(store.state):
            assert self.candidates.replicas[name].at == store.state.stamp
            assert self.candidates.rows(name) == stored_rows(store.state)


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_no_acknowledged_change_is_ever_lost(start: int) -> None:
    masters = 0
    for seed in range(start, start + 10):
        life = Life(seed)
        try:
            simulate(life.live())
        except BaseException:
            print(f"seed {seed}")  # noqa: T201 -- shown when the test fails
            raise
        assert life.acknowledged
        masters += life.masters
    assert masters > 10


_changes = st.one_of(
    st.builds(lambda n, v: Put(job(n, v)), st.integers(1, 9), st.integers() | st.text()),
    st.builds(lambda n: Put(instance(f"web{n}", "alpha")), st.integers(1, 9)),
)
_transactions = st.lists(
    st.tuples(st.floats(0, 0.01), st.lists(_changes, max_size=4)), min_size=1, max_size=25
)


@settings(max_examples=examples(60))
@given(_transactions, st.integers(0, 2**32))
def test_any_interleaving_gives_one_state(
    transactions: list[tuple[float, list[Update]]], seed: int
) -> None:
    async def submit(store: Store, delay_s: float, updates: list[Update]) -> None:
        await asyncio.sleep(delay_s)
        state = await store.commit(updates)
        assert state.stamp.serial <= store.state.stamp.serial

    async def story() -> None:
        network = Candidates("alpha", "beta", "gamma", random=Random(seed))
        store = Store(await initialise(network, NODES[:3]), Epoch(2), network.dial(2))
        network.latency_s |= {"beta": 0.01, "gamma": 0.03}
        network.loss = 0.05
        async with running(store):
            async with asyncio.TaskGroup() as group:
                for delay_s, updates in transactions:
                    group.create_task(submit(store, delay_s, updates))
            network.loss = 0.0
            await asyncio.sleep(60)
            assert store.tip == store.state
            for name in NODES[:3]:
                assert network.replicas[name].at == store.state.stamp
                assert network.rows(name) == stored_rows(store.state)
                assert (await load(network.replicas[name])).state == store.state

    simulate(story())
