"""A job that waits until a node is back holds no locks: much can happen to that node meanwhile."""

import asyncio

from common.model.job import Status
from common.names import NodeName
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.powercycle import BOOT_S, PowercycleNode
from coordinator.operations.node.remove import RemoveNode
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.seeds import seeds

DELTA = NodeName("delta")


def test_a_node_that_is_removed_while_it_boots_is_not_waited_for() -> None:
    async def scenario() -> None:
        async with simulated_cluster(4, seed=seeds()[0]) as cluster:
            begun = cluster.now()
            number = await cluster.submit(PowercycleNode(node_name=DELTA, wait=True))
            while cluster.machines["delta"].has_power:  # noqa: ASYNC110 -- a machine tells nobody
                await asyncio.sleep(0.01)
            await cluster.lose_power("delta")  # it does not come up by itself
            await cluster.run(ModifyNode(node_name=DELTA, offline=True))
            await cluster.run(RemoveNode(node_name=DELTA))
            job = await cluster.finished(number)
            assert job.status is Status.ERROR
            failure = job.ops[-1].failure
            assert failure is not None
            assert "was removed meanwhile" in failure.message
            assert cluster.now() - begun < BOOT_S

    simulate(scenario())
