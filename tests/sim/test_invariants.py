"""What chaos watches, where it was once not so."""

import asyncio

import pytest

from common.model.job import Status
from common.names import JobId
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.test.delay import Delay
from tests.sim.invariants import Invariants
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Failing, Gate, Slow
from tests.support.network import Trip


def _starts(trip: Trip) -> bool:
    return trip.call.name == "instances.ensure_running"


async def _watched_to_its_end(cluster: SimulatedCluster, number: JobId) -> Status:
    """Look all the time whether everything holds; return how the job ended."""
    invariants = Invariants(cluster)
    while not (job := cluster.state.jobs[number]).status.is_final:
        await invariants.check()
        await asyncio.sleep(0.01)
    await invariants.check()
    return job.status


@pytest.mark.parametrize("end", [Status.SUCCESS, Status.ERROR, Status.CANCELED])
def test_a_job_keeps_its_locks_until_its_end_is_durable(end: Status) -> None:
    """Else another job could change what a successor, who knows of no end, then undoes again."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            order = Delay(duration=5.0) if end is Status.CANCELED else create("web1", "gamma")
            number = await cluster.submit(order)
            cluster.network.faults.append(Slow(lambda trip: trip.is_commit, 0.5))
            if end is Status.ERROR:
                cluster.network.faults.append(Failing(_starts))
            await asyncio.sleep(0.1)
            if end is Status.CANCELED:
                await cluster.master.luxi("CancelJob", number)
            assert await _watched_to_its_end(cluster, number) is end

    simulate(scenario())


def test_a_resumed_job_holds_the_locks_of_its_row() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.faults.append(Slow(_starts, 2.0))
            number = await cluster.submit(create("web1", "gamma"))
            await asyncio.sleep(1.0)
            await cluster.crash_master()
            await cluster.start_master("alpha")
            assert await _watched_to_its_end(cluster, number) is Status.SUCCESS

    simulate(scenario())


def test_a_successor_knows_that_a_job_has_failed_before_anything_is_undone() -> None:
    """Else it would go forward from a step whose undoing has begun."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            undoing = Gate(lambda trip: trip.call.name == "disks.ensure_absent")
            cluster.network.faults += [Failing(_starts), undoing]
            number = await cluster.submit(create("web1", "gamma"))
            # Starting it is undone first; of that, nothing is stored but what the failure stored.
            undoing.which = lambda trip: trip.call.name == "instances.ensure_gone"
            await undoing.until_held()
            await cluster.crash_master()
            undoing.opened.set()
            cluster.network.faults.clear()
            await cluster.take_over("beta")
            assert (await cluster.finished(number)).status is Status.ERROR
            assert not cluster.shared.disks
            assert (await cluster.snapshot()).guests["gamma"] == {}

    simulate(scenario())


def test_a_cancellation_that_was_promised_is_kept_by_a_successor() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            starting = Gate(_starts, answers=True)
            cluster.network.faults.append(starting)
            number = await cluster.submit(create("web1", "gamma"))
            await starting.until_held()
            done, _ = await cluster.master.luxi("CancelJob", number)
            assert done
            await cluster.crash_master()
            starting.opened.set()
            await cluster.take_over("beta")
            assert (await cluster.finished(number)).status is Status.CANCELED
            assert (await cluster.snapshot()).guests["gamma"] == {}

    simulate(scenario())


def test_a_move_that_is_undone_has_its_source_stop_sending() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            cluster.network.faults.append(Failing(lambda trip: trip.call.name == "tasks.watch"))
            order = MigrateInstance(instance_name=WEB1, target_node="alpha")
            number = await cluster.submit(order)
            assert (await cluster.finished(number)).status is Status.ERROR
            machine = cluster.machines["gamma"]
            assert machine.noded is not None
            assert not machine.noded._tasks.running  # at once, not when it finds out by itself
            assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}

    simulate(scenario())
