"""What chaos watches, where it was once not so."""

import asyncio
from collections.abc import Callable

import pytest

from common.model.job import Status
from coordinator.operations.base import Operation
from coordinator.operations.test.delay import Delay
from tests.sim.invariants import Invariants
from tests.sim.stories import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Failing, Slow
from tests.support.network import Trip


def _starts(trip: Trip) -> bool:
    return trip.call.name == "instances.ensure_running"


@pytest.mark.parametrize("order", [lambda: create("web1", "gamma"), lambda: Delay(duration=5.0)])
def test_a_job_keeps_its_locks_until_its_end_is_durable(
    order: Callable[[], Operation[object]],
) -> None:
    """Else another job could change what a successor, who knows of no end, then undoes again."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(order())
            cluster.network.faults += [Slow(lambda trip: trip.is_commit, 0.5), Failing(_starts)]
            await asyncio.sleep(0.1)
            if isinstance(order(), Delay):
                await cluster.master.luxi("CancelJob", number)
            await _watched_to_its_end(cluster, number)

    simulate(scenario())


async def _watched_to_its_end(cluster: SimulatedCluster, number: int) -> None:
    invariants = Invariants(cluster)
    while not (job := cluster.state.jobs[number]).status.is_final:  # type: ignore[index]
        await invariants.check()
        await asyncio.sleep(0.01)
    assert job.status in (Status.ERROR, Status.CANCELED)
