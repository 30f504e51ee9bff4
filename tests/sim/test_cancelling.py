"""What an operator was told about a cancelled job stays true."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from common.errors import Cancelled, Unreachable
from common.model.job import OperationRecord, Status
from common.names import JobId
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.test.delay import Delay
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.seeds import seeds


async def _cancel(cluster: SimulatedCluster, number: JobId) -> tuple[bool, str]:
    done, told = await cluster.master.luxi("CancelJob", number)
    return done, told


async def _status(cluster: SimulatedCluster, number: JobId) -> list[object]:
    """A job's status, and those of its operations, as commands show them."""
    (shown,) = await cluster.master.luxi("QueryJobs", [number], ["status", "opstatus"])
    return list(shown)


async def _begun(cluster: SimulatedCluster, number: JobId) -> None:
    """Wait until a job has begun with its first step."""
    await _until(cluster, number, lambda op: bool(op.journal))


async def _until(
    cluster: SimulatedCluster, number: JobId, holds: Callable[[OperationRecord], bool]
) -> None:
    """Return when something holds of a job's operation, as the coordinator shows it."""
    queue = cluster.master.running.queue
    await queue.wait_for_change(number, lambda job: holds(job.ops[0]), 100.0)


def test_a_cancellation_that_was_acknowledged_holds_after_a_take_over() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = await cluster.snapshot()
            number = await cluster.submit(create("web1", "gamma"))
            cluster.network.cut("alpha", "gamma")  # the step under way does not end for a while
            await asyncio.sleep(1)
            assert (await _cancel(cluster, number))[0]
            await cluster.crash_master()
            cluster.heal()
            await cluster.take_over("beta")
            with pytest.raises(Cancelled):
                outcome(await cluster.finished(number))
            await cluster.settle()
            assert before.differences(await cluster.snapshot()) == []

    simulate(scenario())


def test_a_job_that_waits_for_locks_is_still_cancelled_after_a_take_over() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.submit(create("web1", "gamma"))
            waiting = await cluster.submit(create("web1", "gamma"))
            await asyncio.sleep(0)
            assert (await _cancel(cluster, waiting))[0]
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert (await cluster.finished(waiting)).status is Status.CANCELED

    simulate(scenario())


def test_a_cancellation_that_cannot_be_stored_is_not_acknowledged() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(Delay(duration=1000.0))
            await asyncio.sleep(1)
            for other in ("beta", "gamma"):
                cluster.network.cut("alpha", other)
            with pytest.raises(Unreachable, match="may not know of it"):
                await _cancel(cluster, number)
            cluster.heal()
            assert (await cluster.finished(number)).status is Status.CANCELED

    simulate(scenario())


def test_a_job_whose_work_is_undone_for_an_operator_is_canceling_until_then() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(create("web1", "gamma"))
            await _begun(cluster, number)
            assert await _status(cluster, number) == ["running", ["running"]]
            asked = asyncio.ensure_future(_cancel(cluster, number))
            await _until(cluster, number, lambda op: op.status is Status.CANCELING)
            assert await _status(cluster, number) == ["canceling", ["canceling"]]
            cluster.cut("beta", "gamma")  # so that undoing takes its time
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert await _status(cluster, number) == ["canceling", ["canceling"]]
            cluster.heal()
            assert (await cluster.finished(number)).status is Status.CANCELED
            with suppress(ConnectionError):  # whoever asked may have been left without an answer
                await asked

    simulate(scenario())


def test_a_job_that_fails_by_itself_is_not_canceling() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(create("web1", "gamma"))
            await _begun(cluster, number)
            cluster.network.cut("alpha", "gamma")
            seen = set()
            while not (job := cluster.state.jobs[number]).status.is_final:
                seen.add(job.status)
                await asyncio.sleep(1)
            assert Status.RUNNING in seen
            assert Status.CANCELING not in seen

    simulate(scenario())


def test_a_job_that_waits_is_canceling_until_its_end_is_stored() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.submit(create("web1", "gamma"))
            waiting = await cluster.submit(create("web1", "gamma"))
            await asyncio.sleep(0.1)
            assert await _status(cluster, waiting) == ["waiting", ["waiting"]]
            for other in ("beta", "gamma"):
                cluster.network.cut("alpha", other)
            with pytest.raises(Unreachable):
                await _cancel(cluster, waiting)
            assert await _status(cluster, waiting) == ["canceling", ["canceling"]]
            cluster.heal()
            assert (await cluster.finished(waiting)).status is Status.CANCELED

    simulate(scenario())


async def _cancel_at_some_moment(seed: int) -> None:
    """Cancel a migration anywhere, perhaps lose the master then; what was said has to hold."""
    random = Random(seed)
    async with simulated_cluster(seed=seed) as cluster:
        await cluster.run(create("web1", "gamma"))
        number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        await asyncio.sleep(random.uniform(0.0, 3.0))
        done, told = await _cancel(cluster, number)
        if random.random() < 0.5:
            await cluster.crash_master()
            await cluster.take_over("beta")
        job = await cluster.finished(number)
        assert (job.status is Status.CANCELED) == done, f"{told} But it is {job.status}."


def test_a_migration_that_is_cancelled_at_any_moment_ends_as_was_said() -> None:
    for seed in seeds(25):
        simulate(_cancel_at_some_moment(seed))
