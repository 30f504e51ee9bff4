"""Jobs that another version of Gantry wrote: they end, and the cluster has a master."""

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from common.errors import GntError, InvalidRequest, Stuck
from common.model.job import Job, OperationRecord, Status
from common.names import JobId
from coordinator.operations.test.delay import Delay
from coordinator.state.rows import Put
from tests.sim.foreign import BEGUN, HALF_DONE, QUEUED, half_done
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster


async def _taken_over(cluster: SimulatedCluster, record: OperationRecord) -> Job:
    """Leave such a job to the next master, and return how it ends."""
    store = cluster.master.running.store
    await store.commit([Put(Job(id=JobId(7), ops=(record,), received=cluster.now()))])
    await cluster.crash_master()
    await cluster.take_over("beta")
    return await cluster.finished(JobId(7))


@pytest.mark.parametrize("what", QUEUED)
def test_a_queued_job_that_cannot_be_read_ends_as_an_error(what: str) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            job = await _taken_over(cluster, QUEUED[what])
            with pytest.raises(InvalidRequest, match="Nothing was done; give the command again"):
                outcome(job)
            await cluster.run(Delay(duration=0.0))

    simulate(scenario())


@pytest.mark.parametrize("what", HALF_DONE)
def test_a_half_done_job_that_cannot_be_read_is_stuck_and_says_what_it_did(what: str) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            job = await _taken_over(cluster, await half_done(what))
            with pytest.raises(Stuck, match=r"“polish the disk”\. Nothing was undone") as caught:
                outcome(job)
            assert "was begun by another version" in caught.value.message
            assert job.ops[0].journal == BEGUN
            assert not cluster.master.running.locks.rows()
            await cluster.run(Delay(duration=0.0))

    simulate(scenario())


def test_a_plan_that_means_something_else_is_refused_though_it_looks_the_same() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            record = replace(await half_done("steps with other titles"), journal=())
            job = await _taken_over(cluster, replace(record, version=Delay.version + 1))
            with pytest.raises(Stuck, match=r"Its plan is of version 2, .* knows 1\. None of its"):
                outcome(job)

    simulate(scenario())


def test_a_job_that_depends_on_one_that_cannot_be_read_ends_too() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            store = cluster.master.running.store
            record = QUEUED["an unknown operation"]
            await store.commit([Put(Job(id=JobId(7), ops=(record,), received=cluster.now()))])
            after = await cluster.submit(Delay(duration=0.0), depends=[[7, ["success"]]])
            await cluster.crash_master()
            await cluster.take_over("beta")
            with pytest.raises(GntError, match="Job 7, which this one depends on"):
                outcome(await cluster.finished(after))

    simulate(scenario())


def test_a_row_with_fields_of_a_newer_version_does_not_keep_a_node_from_being_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(Delay(duration=1000.0))
            await asyncio.sleep(1)
            await cluster.crash_master()
            for machine in cluster.machines.values():
                await machine.kill_noded()
                with closing(sqlite3.connect(machine.paths.replica)) as db:
                    ((body,),) = db.execute("SELECT body FROM rows WHERE kind = 'job'").fetchall()
                    job = json.loads(body) | {"colour": "red"}
                    job["ops"][0] |= {"mood": "fine"}
                    db.execute("UPDATE rows SET body = ? WHERE kind = 'job'", (json.dumps(job),))
                    db.commit()
                await machine.start_noded()
            await cluster.take_over("beta")
            assert (await cluster.finished(number)).status is Status.SUCCESS

    simulate(scenario())
