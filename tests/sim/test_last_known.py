"""Lists show at once what a silent node told before, and how old that is, until it is back."""

import asyncio
from typing import Any

from common.names import InstanceName, NodeName
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.node.remove import RemoveNode
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

WEB1 = InstanceName("web1")


async def show(cluster: SimulatedCluster, what: str, name: str, *fields: str) -> list[Any]:
    """Return the row of one object; what has no value is its status."""
    answer = await cluster.master.luxi("Query", what, list(fields), ["==", "name", name])
    (row,) = answer["data"]
    return [status or value for status, value in row]


NO_DATA, UNAVAILABLE = 2, 3


def test_a_node_falls_silent_and_its_last_values_are_shown_until_it_is_back() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await cluster.run(create("web1", "gamma"))
            memory, known = await show(cluster, "node", "gamma", "mfree", "last_known")
            assert known == UNAVAILABLE
            assert await show(cluster, "instance", "web1", "status", "oper_ram") == ["running", 128]
            told_s = asyncio.get_running_loop().time()
            cluster.network.isolate("gamma")
            await show(cluster, "node", "gamma", "mfree")  # whoever looks first waits in full
            await asyncio.sleep(60)

            asked_s = asyncio.get_running_loop().time()
            now, known = await show(cluster, "node", "gamma", "mfree", "last_known")
            assert asyncio.get_running_loop().time() - asked_s < 1
            assert (now, known["values"]["mfree"]) == (NO_DATA, memory)
            assert 75 <= known["age"] <= asyncio.get_running_loop().time() - told_s + 0.1
            assert known["why"].startswith("Node gamma has not answered for ")
            status, now, known = await show(
                cluster, "instance", "web1", "status", "oper_state", "last_known"
            )
            assert (status, now) == ("ERROR_nodedown", NO_DATA)
            assert known["values"]["oper_state"] is True
            assert known["values"]["guest_state"] == "running"

            cluster.heal()
            await asyncio.sleep(10)
            await cluster.run(ShutDownInstance(instance_name=WEB1))
            assert (await show(cluster, "node", "gamma", "mfree", "last_known"))[1] == UNAVAILABLE
            row = await show(cluster, "instance", "web1", "oper_state", "last_known")
            assert row == [False, UNAVAILABLE]

    simulate(scenario())


def test_what_jobs_were_told_is_known_to_lists_too() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await cluster.run(create("web1", "gamma"))
            await cluster.run(VerifyGroup(group_name="default"))
            cluster.network.isolate("gamma")
            known = (await show(cluster, "instance", "web1", "oper_ram", "last_known"))[1]
            assert known["values"]["oper_state"] is True
            known = (await show(cluster, "node", "gamma", "mfree", "last_known"))[1]
            assert known["values"]["mfree"] > 0

    simulate(scenario())


def test_what_a_node_told_is_forgotten_when_it_has_left() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await show(cluster, "node", "gamma", "mfree")
            heard, gamma = cluster.master.running._nodes.heard, cluster.config.node("gamma").uuid
            assert heard.facts(gamma) is not None
            await cluster.run(RemoveNode(node_name=NodeName("gamma")))
            await show(cluster, "node", "beta", "mfree")
            assert heard.facts(gamma) is None
            assert heard.facts(cluster.config.node("beta").uuid) is not None

    simulate(scenario())


def test_a_new_master_knows_nothing_of_a_silent_node_and_says_so() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=2) as cluster:
            await cluster.run(create("web1", "gamma"))
            await show(cluster, "instance", "web1", "oper_state")
            cluster.network.isolate("gamma")
            await cluster.crash_master()
            await cluster.take_over("beta")
            now, known = await show(cluster, "instance", "web1", "oper_state", "last_known")
            assert (now, known["age"], known["values"]) == (NO_DATA, None, {})
            assert known["why"]

    simulate(scenario())
