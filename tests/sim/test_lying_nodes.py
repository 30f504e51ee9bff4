"""A regular node that answers anything: nothing of it ends, stalls or misleads the coordinator."""

from random import Random
from typing import Any

import pytest

from common.errors import GntError
from common.names import InstanceName
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.quorum.question import Mode
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.lying import Lying
from tests.support.seeds import seeds

LIAR = "gamma"


@pytest.mark.parametrize("seed", seeds())
def test_nothing_that_a_regular_node_answers_harms_the_others(seed: int) -> None:
    async def scenario() -> None:
        async with simulated_cluster(seed=seed, candidates=2) as cluster:
            lying = Lying(Random(seed), lambda trip: trip.target == LIAR)
            cluster.network.faults.append(lying)
            for number in range(6):
                await cluster.run(create(f"web{number}", "alpha" if number % 2 else "beta"))
                await _try(cluster, VerifyGroup(group_name="default"))
                # By its own words the liar may be the best place, or none at all.
                await _try(cluster, create(f"anywhere{number}"))
            assert lying.lies > 5
            await cluster.crash_master()
            await cluster.start_master("alpha", Mode.START)
            await cluster.take_over("beta")
            await cluster.run(create("last", "alpha"))
            await cluster.run(RemoveInstance(instance_name=InstanceName("last")))
            assert cluster.master.is_alive

    simulate(scenario())


async def _try(cluster: SimulatedCluster, operation: Any) -> None:
    failure = None
    try:
        await cluster.run(operation)
    except GntError as error:
        failure = error
    if failure:
        assert failure.code != "bug", failure
        assert len(failure.message) < 20_000
