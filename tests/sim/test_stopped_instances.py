"""What does not run is not asked to power off, and nobody waits for it."""

from typing import Any

import pytest

from common.model.job import Status
from common.names import InstanceName
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.network import Fault, Trip

WEB1 = InstanceName("web1")


class Orders(Fault):
    """Remembers what nodes were told to do."""

    def __init__(self) -> None:
        self.given: set[str] = set()

    async def going(self, trip: Trip) -> None:
        self.given.add(trip.call.name)


@pytest.mark.parametrize(
    "operation",
    [
        FailOverInstance(instance_name=WEB1, target_node="beta"),
        ShutDownInstance(instance_name=WEB1),
        RemoveInstance(instance_name=WEB1),
    ],
)
@pytest.mark.parametrize("runs", [True, False])
def test_only_a_guest_that_runs_is_given_time_to_power_off(operation: Any, runs: bool) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "alpha", start=runs))
            orders = Orders()
            cluster.network.faults.append(orders)
            job = await cluster.finished(await cluster.submit(operation))
            assert job.status is Status.SUCCESS
            assert ("instances.begin_shutdown" in orders.given) is runs
            guests = [await machine.guest_list() for machine in cluster.machines.values()]
            assert sum(map(len, guests)) == (runs and isinstance(operation, FailOverInstance))

    simulate(scenario())
