"""Stories of jobs that want locks, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from common.errors import Bug
from coordinator.locks.manager import LockManager, LocksBusy
from coordinator.locks.names import ALL, BGL, Level, LockName, Mode, Owner, Wanted
from coordinator.locks.report import LockRow
from coordinator.locks.table import PATIENCE
from tests.support.clock import simulate

ALPHA, BETA, GAMMA = (LockName(Level.NODE, name) for name in ("alpha", "beta", "gamma"))
ALL_NODES = LockName(Level.NODE, ALL)
WEB1, WEB4 = (LockName(Level.INSTANCE, name) for name in ("web1", "web4"))
ALL_INSTANCES = LockName(Level.INSTANCE, ALL)
A, B, C, D = (Owner(f"job {number}") for number in range(1, 5))


def excl(*locks: LockName) -> Wanted:
    return Wanted(dict.fromkeys(locks, Mode.EXCLUSIVE))


def shared(*locks: LockName) -> Wanted:
    return Wanted(dict.fromkeys(locks, Mode.SHARED))


class Cluster:
    """Jobs that lock something, keep it until told, and leave a diary of who had it."""

    def __init__(self) -> None:
        self.locks = LockManager()
        self.diary: list[Owner] = []
        self.jobs: dict[Owner, asyncio.Task[None]] = {}
        self.done: dict[Owner, asyncio.Event] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Cluster"]:
        async with asyncio.TaskGroup() as self._group:
            yield self
            for job in self.jobs.values():
                job.cancel()
        assert self.locks.rows() == (), "locks leaked"

    async def start(self, owner: Owner, wanted: Wanted, *, priority: int = 0) -> None:
        self.done[owner] = asyncio.Event()
        job = self._group.create_task(self._job(owner, wanted, priority))
        self.jobs[owner] = job
        await settled()

    async def end(self, *owners: Owner) -> None:
        for owner in owners:
            self.done[owner].set()
        await settled()

    async def _job(self, owner: Owner, wanted: Wanted, priority: int) -> None:
        await self.locks.acquire(owner, wanted, priority=priority)
        try:
            self.diary.append(owner)
            await self.done[owner].wait()
        finally:
            self.locks.release(owner)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_who_waits_for_all_does_not_hold_up_the_others() -> None:
    """A works on web4; B wants all instances; C, on web1, need not wait for A."""

    async def scenario() -> None:
        async with Cluster().running() as cluster:
            await cluster.start(A, excl(WEB4))
            await cluster.start(B, excl(ALL_INSTANCES))
            await cluster.start(C, excl(WEB1))
            assert cluster.diary == [A, C]
            await cluster.end(C)
            assert cluster.locks.explain(B) == (
                "job 2 waits for instance/[lockset], held by job 1",
            )
            await cluster.end(A)
            assert cluster.diary == [A, C, B]

    simulate(scenario())


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (shared(ALPHA), shared(ALPHA), True),
        (shared(ALPHA), excl(ALPHA), False),
        (excl(ALPHA), excl(BETA), True),
        (excl(ALPHA), shared(ALL_NODES), False),
        (shared(ALPHA), shared(ALL_NODES), True),
        (shared(ALPHA), excl(ALL_NODES), False),
        (shared(ALL_NODES), shared(ALL_NODES), True),
        (shared(ALL_NODES), excl(ALL_NODES), False),
        (excl(ALL_NODES), excl(WEB1), True),
        (excl(ALPHA), excl(LockName(Level.NODE_RES, "alpha")), True),
        (Wanted({ALL_NODES: Mode.SHARED, ALPHA: Mode.EXCLUSIVE}), shared(BETA), True),
        (Wanted({ALL_NODES: Mode.SHARED, ALPHA: Mode.EXCLUSIVE}), shared(ALPHA), False),
    ],
)
def test_what_goes_together(first: Wanted, second: Wanted, together: bool) -> None:
    async def scenario() -> None:
        for one, other in ((first, second), (second, first)):
            locks = LockManager()
            await locks.acquire(A, one)
            if together:
                await locks.acquire(B, other, timeout=0)
            else:
                with pytest.raises(LocksBusy):
                    await locks.acquire(B, other, timeout=0)

    simulate(scenario())


def test_a_node_that_joins_later_is_among_all_nodes() -> None:
    async def scenario() -> None:
        locks = LockManager()
        await locks.acquire(A, shared(ALL_NODES))
        with pytest.raises(LocksBusy, match="job 2 waits for node/new, held by job 1"):
            await locks.acquire(B, excl(LockName(Level.NODE, "new")), timeout=0)

    simulate(scenario())


def test_nobody_holds_some_while_waiting_for_others() -> None:
    async def scenario() -> None:
        async with Cluster().running() as cluster:
            await cluster.start(A, excl(BETA))
            await cluster.start(B, excl(ALPHA, BETA))
            await cluster.start(C, excl(ALPHA))
            assert cluster.diary == [A, C]
            await cluster.end(A)
            assert cluster.locks.explain(B) == ("job 2 waits for node/alpha, held by job 3",)
            await cluster.end(C)
            assert cluster.diary == [A, C, B]

    simulate(scenario())


def test_priority_first_then_age() -> None:
    async def scenario() -> None:
        async with Cluster().running() as cluster:
            await cluster.start(A, excl(ALPHA))
            await cluster.start(B, excl(ALPHA), priority=5)
            await cluster.start(C, excl(ALPHA))
            await cluster.start(D, excl(ALPHA))
            await cluster.end(A, C, B, D)
            assert cluster.diary == [A, C, D, B]

    simulate(scenario())


def test_a_new_priority_counts_at_once() -> None:
    async def scenario() -> None:
        async with Cluster().running() as cluster:
            await cluster.start(A, excl(ALPHA))
            await cluster.start(B, excl(ALPHA))
            await cluster.start(C, excl(ALPHA))
            cluster.locks.change_priority(C, -1)
            cluster.locks.change_priority(A, -1)  # has its locks: nothing to change
            await cluster.end(A, B, C)
            assert cluster.diary == [A, C, B]

    simulate(scenario())


def test_readers_share_when_a_writer_leaves() -> None:
    async def scenario() -> None:
        async with Cluster().running() as cluster:
            await cluster.start(A, excl(ALPHA))
            await cluster.start(B, shared(ALPHA))
            await cluster.start(C, shared(ALPHA))
            await cluster.end(A)
            assert cluster.diary == [A, B, C]

    simulate(scenario())


@pytest.mark.parametrize(("priority", "passes"), [(0, PATIENCE), (-10, 10), (-20, 0), (19, 39)])
def test_patience_ends(priority: int, passes: int) -> None:
    """Two nodes are never free at the same time, until the one who waits for both is urgent."""

    async def scenario() -> None:
        locks = LockManager()
        worker = Owner("worker 0")
        await locks.acquire(worker, excl(ALPHA))
        async with asyncio.TaskGroup() as group:
            patient = group.create_task(locks.acquire(A, excl(ALPHA, BETA), priority=priority))
            await settled()
            for number in range(1, passes + 1):
                node = (ALPHA, BETA)[number % 2]
                await locks.acquire(after := Owner(f"worker {number}"), excl(node), timeout=0)
                locks.release(worker)
                worker = after
                await settled()
            free = (BETA, ALPHA)[passes % 2]
            late = Owner("late")
            with pytest.raises(LocksBusy, match=f"{free}, promised to job 1 next"):
                await locks.acquire(late, excl(free), timeout=0)
            await locks.acquire(Owner("elsewhere"), excl(GAMMA), timeout=0)
            assert not patient.done()
            locks.release(worker)
            await settled()
            assert patient.done()

    simulate(scenario())


def test_timeout() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        locks = LockManager()
        await locks.acquire(A, shared(ALPHA))
        with pytest.raises(LocksBusy) as caught:
            await locks.acquire(B, excl(ALPHA, BETA), timeout=5)
        assert loop.time() == pytest.approx(5)
        assert caught.value.message == (
            "job 2 could not get its locks within 5 seconds: "
            "job 2 waits for node/alpha, held by job 1."
        )
        assert caught.value.detail["reasons"] == ["job 2 waits for node/alpha, held by job 1"]
        (row,) = locks.rows()
        assert row.pending == ()

    simulate(scenario())


def test_granted_in_time() -> None:
    async def scenario() -> None:
        locks = LockManager()
        await locks.acquire(A, excl(ALPHA))
        asyncio.get_running_loop().call_later(4.9, locks.release, A)
        await locks.acquire(B, excl(ALPHA), timeout=5)

    simulate(scenario())


@pytest.mark.parametrize("release_first", [True, False])
def test_released_at_the_very_end_of_the_time(release_first: bool) -> None:
    """Whichever comes first: the locks are had, or they are free; never lost."""

    async def scenario() -> None:
        locks = LockManager()
        await locks.acquire(A, excl(ALPHA))
        loop = asyncio.get_running_loop()
        if release_first:
            loop.call_later(5, locks.release, A)
        try:
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(locks.acquire(B, excl(ALPHA), timeout=5))
                await settled()
                if not release_first:
                    loop.call_later(5, locks.release, A)
            waiting.result()
            locks.release(B)
        except* LocksBusy:
            pass
        locks.release(A)
        assert locks.rows() == ()

    simulate(scenario())


@pytest.mark.parametrize("granted", [True, False])
def test_cancelling_a_waiter_leaves_nothing(granted: bool) -> None:
    async def scenario() -> None:
        async with Cluster().running() as cluster:
            await cluster.start(A, excl(ALPHA))
            await cluster.start(B, excl(ALPHA, BETA))
            await cluster.start(C, excl(ALPHA))
            if granted:  # in the same step of the loop
                cluster.locks.release(A)
            cluster.jobs[B].cancel()
            await settled()
            await cluster.end(A)
            assert cluster.diary == [A, C]

    simulate(scenario())


def test_an_urgent_waiter_that_gives_up_makes_way() -> None:
    async def scenario() -> None:
        async with Cluster().running() as cluster:
            await cluster.start(A, excl(ALPHA))
            await cluster.start(B, excl(ALPHA, BETA), priority=-20)
            await cluster.start(C, excl(BETA))
            assert cluster.diary == [A]
            cluster.jobs[B].cancel()
            await settled()
            assert cluster.diary == [A, C]

    simulate(scenario())


def test_asking_twice_is_an_error() -> None:
    async def scenario() -> None:
        locks = LockManager()
        await locks.acquire(A, excl(ALPHA))
        with pytest.raises(Bug, match="a second time"):
            await locks.acquire(A, excl(BETA))
        assert [row.name for row in locks.rows()] == [ALPHA]

    simulate(scenario())


def test_rows() -> None:
    async def scenario() -> None:
        async with Cluster().running() as cluster:
            await cluster.start(A, Wanted({BGL: Mode.SHARED, ALPHA: Mode.EXCLUSIVE}))
            await cluster.start(B, Wanted({BGL: Mode.SHARED, ALPHA: Mode.EXCLUSIVE}), priority=3)
            await cluster.start(C, shared(BGL, ALPHA))
            await cluster.start(D, Wanted({BGL: Mode.SHARED, GAMMA: Mode.EXCLUSIVE}))
            assert cluster.locks.rows() == (
                LockRow(BGL, Mode.SHARED, (A, D), ((C, Mode.SHARED), (B, Mode.SHARED))),
                LockRow(ALPHA, Mode.EXCLUSIVE, (A,), ((C, Mode.SHARED), (B, Mode.EXCLUSIVE))),
                LockRow(GAMMA, Mode.EXCLUSIVE, (D,), ()),
            )
            assert cluster.locks.explain(A) == ()

    simulate(scenario())


def test_a_long_list_of_holders_is_cut_short() -> None:
    async def scenario() -> None:
        locks = LockManager()
        for number in range(100):
            await locks.acquire(Owner(f"job {number}"), shared(BGL))
        with pytest.raises(LocksBusy, match=r"job 0, .* job 4 and 95 more\.$"):
            await locks.acquire(Owner("job 100"), excl(BGL), timeout=0)

    simulate(scenario())
