"""Jobs that have ended leave: out of sight, out of memory, and in the end out of the world."""

import asyncio
import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.luxi.failures import JobLost
from common.model.job import Job, OperationRecord, Status
from common.names import JobId, NodeName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.test.delay import Delay
from coordinator.state.rows import Put
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

MINUTE_S = 60.0


def ended_job(number: int, ended: float, *, result: str = "") -> Job:
    record = OperationRecord(
        input=Delay(duration=0.0).to_input(), summary="TEST_DELAY(0)", status=Status.SUCCESS,
        result=result,
    )  # fmt: skip
    return Job(id=JobId(number), ops=(record,), received=ended, started=ended, ended=ended)


async def _fill(cluster: SimulatedCluster, count: int, *, result: str = "") -> None:
    """Have ``count`` jobs in the state, from number 1 on, that have just ended."""
    store = cluster.master.running.store
    for first in range(1, count + 1, 50):
        numbers = range(first, min(first + 50, count + 1))
        await store.commit([Put(ended_job(n, cluster.now(), result=result)) for n in numbers])
    await cluster.crash_master()
    await cluster.start_master("alpha")


def _archived(cluster: SimulatedCluster, name: str = "alpha") -> list[int]:
    """Return what a candidate has; that of the master is read when it is up to date."""
    with closing(sqlite3.connect(cluster.machines[name].paths.replica)) as db:
        return [number for (number,) in db.execute("SELECT id FROM archive ORDER BY id")]


async def _archive_all(cluster: SimulatedCluster) -> None:
    left = 2
    while left > 1:  # the newest job stays
        _, left = await cluster.master.luxi("AutoArchiveJobs", -1, 30.0)


def test_an_archived_job_is_no_part_of_the_state_and_can_still_be_seen() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await _fill(cluster, 120)
            await _archive_all(cluster)
            assert list(cluster.state.jobs) == [120]
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert list(cluster.state.jobs) == [120]
            ask = cluster.master.luxi
            assert await ask("QueryJobs", [7, 120, 121], ["id", "status", "archived"]) == [
                [7, "success", True], [120, "success", False], None,
            ]  # fmt: skip
            listed = await ask("Query", "job", ["id"], ["?", "archived"])
            assert [row[0][1] for row in listed["data"]] == list(range(1, 120))
            older = await ask("Query", "job", ["id"], ["&", ["?", "archived"], ["<", "id", 4]])
            assert [row[0][1] for row in older["data"]] == [1, 2, 3]
            assert await ask("WaitForJobChange", 7, ["status"], None, 0, 60.0) == [["success"], []]
            assert await ask("CancelJob", 7) == (False, "Job 7 has ended already (success).")
            assert await ask("ArchiveJob", 7)
            for method in ("CancelJob", "ArchiveJob"):
                with pytest.raises(JobLost):
                    await ask(method, 999)
            await cluster.settle()
            cluster.check_replicas()

    simulate(scenario())


def test_much_more_than_fits_a_commit_is_archived_and_holds_up_nobody() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await _fill(cluster, 90, result="x" * 100_000)
            await _archive_all(cluster)
            assert _archived(cluster, "alpha") == list(range(1, 90))

    simulate(scenario())


def test_archiving_goes_on_where_time_was_up() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await _fill(cluster, 1000)
            done, left = await cluster.master.luxi("AutoArchiveJobs", -1, 0.0)
            assert 0 < done < 1000
            assert left == 1000 - done
            await _archive_all(cluster)
            assert _archived(cluster, "alpha") == list(range(1, 1000))

    simulate(scenario())


def test_jobs_are_archived_and_deleted_when_the_operator_says() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(archive_jobs_after="1m", delete_jobs_after="3m"))
            await cluster.run(Delay(duration=0.0))
            await asyncio.sleep(2 * MINUTE_S)
            last = await cluster.submit(Delay(duration=0.0))
            await cluster.finished(last)
            assert (await cluster.master.luxi("AutoArchiveJobs", None, 30.0))[0] == 2
            assert _archived(cluster) == [1, 2]
            await asyncio.sleep(2 * MINUTE_S)
            await cluster.run(ModifyCluster(delete_jobs_after="never"))
            await cluster.master.luxi("AutoArchiveJobs", None, 30.0)
            assert _archived(cluster) == [1, 2, 3]
            await cluster.run(ModifyCluster(delete_jobs_after="3m"))
            await cluster.master.luxi("AutoArchiveJobs", None, 30.0)
            assert _archived(cluster) == [3]
            with pytest.raises(InvalidRequest, match="no span of time"):
                await cluster.run(ModifyCluster(delete_jobs_after="soon"))

    simulate(scenario())


def test_numbers_are_not_given_again_when_all_jobs_are_gone() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(archive_jobs_after="1m", delete_jobs_after="1m"))
            last = JobId(0)
            for _ in range(3):
                last = await cluster.submit(Delay(duration=0.0))
                await cluster.finished(last)
            await cluster.master.luxi("ArchiveJob", last)
            await asyncio.sleep(3 * MINUTE_S)
            await cluster.master.luxi("AutoArchiveJobs", None, 30.0)
            assert _archived(cluster, "alpha") == []
            await cluster.crash_master()
            await cluster.take_over("gamma")
            assert await cluster.submit(Delay(duration=0.0)) == last + 1

    simulate(scenario())


def test_a_job_may_depend_on_an_archived_one() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await _fill(cluster, 10)
            await _archive_all(cluster)
            number = await cluster.submit(Delay(duration=0.0), depends=[[3, ["success"]]])
            assert (await cluster.finished(number)).status is Status.SUCCESS
            with pytest.raises(Conflict, match="depends on job 3, which ended otherwise: success"):
                await cluster.submit(Delay(duration=0.0), depends=[[3, ["error"]]])

    simulate(scenario())


def test_what_others_depend_on_stays() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            first = await cluster.submit(Delay(duration=0.0))
            await cluster.finished(first)
            long = await cluster.submit(Delay(duration=100.0))
            after = await cluster.submit(
                Delay(duration=0.0), depends=[[first, ["success"]], [long, ["success"]]]
            )
            await cluster.master.luxi("AutoArchiveJobs", -1, 30.0)
            await cluster.master.luxi("ArchiveJob", first)
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert (await cluster.finished(after)).status is Status.SUCCESS

    simulate(scenario())


def test_a_candidate_that_was_copied_to_gets_the_archive_too() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await _fill(cluster, 500)
            await _archive_all(cluster)
            gamma = NodeName("gamma")
            await cluster.run(ModifyNode(node_name=gamma, master_candidate=False))
            await cluster.run(ModifyNode(node_name=gamma, master_candidate=True))
            await cluster.settle(30.0)
            assert _archived(cluster, "gamma") == _archived(cluster, "alpha")

    simulate(scenario())


def test_a_master_whose_archive_is_incomplete_gets_the_rest_from_the_others() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await _fill(cluster, 100)
            await _archive_all(cluster)
            await cluster.crash_master()
            await cluster.machines["gamma"].kill_noded()
            with closing(sqlite3.connect(cluster.machines["gamma"].paths.replica)) as db:
                db.execute("DELETE FROM archive WHERE id % 2")
                db.commit()
            await cluster.machines["gamma"].start_noded()
            await cluster.take_over("gamma")
            await cluster.settle(30.0)
            assert _archived(cluster, "gamma") == list(range(1, 100))
            rows = await cluster.master.luxi("QueryJobs", [51], ["status"])
            assert rows == [["success"]]

    simulate(scenario())


def test_jobs_that_were_archived_in_place_move_by_themselves() -> None:
    """As versions before this one left them, and as the newest one is."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            store = cluster.master.running.store
            job = replace(ended_job(1, cluster.now()), archived=True)
            await store.commit([Put(job), Put(ended_job(2, cluster.now()))])
            assert await cluster.master.luxi("AutoArchiveJobs", 6 * MINUTE_S, 30.0) == (1, 1)
            assert _archived(cluster, "alpha") == [1]

    simulate(scenario())
