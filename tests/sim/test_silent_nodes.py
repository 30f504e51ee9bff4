"""A node that is silent, and not marked offline, is waited for once and not for ever."""

import asyncio
from typing import Any

from common.names import InstanceName
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import GAMMA, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

WEB1 = InstanceName("web1")


async def took_s(cluster: SimulatedCluster, operation: Any) -> float:
    begun_s = asyncio.get_running_loop().time()
    await cluster.run(operation)
    return asyncio.get_running_loop().time() - begun_s


def test_a_silent_node_costs_its_time_once() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await cluster.run(create("web1", "alpha"))
            cluster.network.isolate("gamma")
            assert await took_s(cluster, VerifyGroup(group_name="default")) > 5
            for operation in (
                VerifyGroup(group_name="default"),
                create("web2"),
                ShutDownInstance(instance_name=WEB1),
                StartInstance(instance_name=WEB1),
                VerifyGroup(group_name="default"),
            ):
                assert await took_s(cluster, operation) < 2.5, operation
            cluster.heal()
            await asyncio.sleep(10)
            await cluster.run(create("web3", "gamma"))
            assert await took_s(cluster, VerifyGroup(group_name="default")) < 1

    simulate(scenario())


def test_a_dead_node_is_not_waited_for_when_it_is_marked_offline() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            cluster.network.isolate("gamma")
            offline = ModifyNode(node_name=GAMMA, offline=True, force=True)
            assert await took_s(cluster, offline) < 2.5

    simulate(scenario())
