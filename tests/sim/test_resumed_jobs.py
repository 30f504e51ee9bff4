"""What a job holds when the next master goes on with it."""

import asyncio

from common.errors import GntError
from common.model.job import Status
from common.names import JobId
from coordinator.operations.cluster.destroy import DestroyCluster
from coordinator.operations.locking import from_rows
from coordinator.operations.test.delay import Delay
from tests.sim.settings import create
from tests.sim.stories import STORIES
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Trap
from tests.support.story import is_crossing, undisturbed


def _held(cluster: SimulatedCluster, number: JobId) -> dict[object, object]:
    rows = cluster.master.running.locks.rows()
    return {row.name: row.mode for row in rows if f"job {number}" in row.owners}


def test_a_resumed_job_holds_exactly_the_locks_in_its_journal() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(create("web1", "gamma"))
            while cluster.state.jobs[number].status is not Status.RUNNING:
                await cluster.master.running.store.changed(cluster.state)
            cluster.cut("alpha", "gamma")  # the step under way does not end for a while
            cluster.cut("beta", "gamma")
            journalled = dict(from_rows(cluster.state.jobs[number].ops[0].locks).locks)
            assert journalled
            assert _held(cluster, number) == journalled
            behind = await cluster.submit(create("web1", "gamma"))
            await cluster.crash_master()
            await cluster.take_over("beta")
            await asyncio.sleep(0.1)
            assert _held(cluster, number) == journalled
            assert _held(cluster, behind) == {}
            cluster.heal()
            await cluster.finished(number)
            await cluster.finished(behind)

    simulate(scenario())


def test_the_end_of_a_job_is_the_same_for_every_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            good = await cluster.submit(Delay(duration=0.0))
            bad = await cluster.submit(create("web1", "nowhere"))
            cancelled = await cluster.submit(Delay(duration=100.0))
            await asyncio.sleep(1.0)
            await cluster.master.luxi("CancelJob", cancelled)
            ends = {number: await cluster.finished(number) for number in (good, bad, cancelled)}
            assert [job.status for job in ends.values()] == [
                Status.SUCCESS, Status.ERROR, Status.CANCELED,
            ]  # fmt: skip
            for successor in ("beta", "gamma"):
                await cluster.crash_master()
                await cluster.take_over(successor)
                for number, job in ends.items():
                    assert cluster.state.jobs[number] == job
                assert await cluster.submit(Delay(duration=0.0)) > cancelled

    simulate(scenario())


async def _destroyed_by_another(at: int) -> None:
    """Lose the master amid the destruction; one that is to be removed goes on, if it may."""
    async with STORIES["destroy"].told() as cluster:
        trap = Trap(is_crossing, at, cluster.master.die)
        number = await cluster.submit(DestroyCluster())
        cluster.network.faults.append(trap)
        await trap.sprung.wait()
        cluster.network.faults.clear()
        await cluster.crash_master()
        try:
            await cluster.take_over("beta")
        except GntError:  # it is none of the cluster any more
            await cluster.take_over("alpha")
        await cluster.finished(number)
        await cluster.run(DestroyCluster())
        await cluster.settle()
        left = cluster.config.sorted_nodes()
        assert [node.name for node in left] == [cluster.config.master().name]
        assert left[0].master_candidate
        assert not cluster.master.running.store.troubles


def test_a_cluster_is_destroyed_by_whoever_is_its_master_in_the_end() -> None:
    crossings = len(undisturbed("destroy", STORIES["destroy"]).crossings)
    for at in range(crossings):
        simulate(_destroyed_by_another(at))
