"""A group whose nodes are silent or slow does not hold up the watcher's work for another one."""

import asyncio
from functools import partial

import pytest

from common.errors import NotFound
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.watcher.conversation import Round
from coordinator.watcher.one_group import within
from coordinator.watcher.round import one_round
from tests.sim.settings import DELTA, GAMMA, create
from tests.sim.stories.group import OTHER, another_group
from tests.sim.test_watcher import at_rest, attempts, reboot, running, watch
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Slow

MOST_S = 30.0  # of a round, in virtual time: after that the timer begins the next


async def with_two_groups(cluster: SimulatedCluster) -> None:
    """Have web1 be down on beta, and others run in a group of gamma and delta."""
    await another_group(cluster)
    await cluster.run(AssignNodes(group_name=OTHER, nodes=(GAMMA, DELTA)))
    await cluster.run(create("web1", "beta"))
    await cluster.run(create("web2", "gamma"))
    await cluster.run(create("web3", "delta"))


def of_group(group: str, now: float) -> Round:
    return within(group, one_round(now, of_cluster=False))


async def check_started_in_time(cluster: SimulatedCluster) -> None:
    began = asyncio.get_running_loop().time()
    await watch(cluster)
    took = asyncio.get_running_loop().time() - began
    assert took < MOST_S
    assert [job.ops[0].input["instance_name"] for job in attempts(cluster)] == ["web1"]
    await at_rest(cluster)
    assert (await running(cluster))["beta"] == {"web1": "running"}


def test_a_group_that_is_silent_holds_up_no_other() -> None:
    async def story() -> None:
        async with simulated_cluster(nodes=4, candidates=1) as cluster:
            await with_two_groups(cluster)
            for name in ("gamma", "delta"):
                await cluster.lose_power(name)
            await reboot(cluster, "beta")
            await check_started_in_time(cluster)

    simulate(story())


def test_a_round_for_one_group_leaves_the_instances_of_others_alone() -> None:
    async def story() -> None:
        async with simulated_cluster(nodes=4, candidates=1) as cluster:
            await with_two_groups(cluster)
            await reboot(cluster, "beta")
            await reboot(cluster, "gamma")
            for group, name in ((OTHER, "web2"), ("default", "web1")):
                await watch(cluster, partial(of_group, group))
                assert attempts(cluster)[-1].ops[0].input["instance_name"] == name
                await at_rest(cluster)
            assert len(attempts(cluster)) == 2
            with pytest.raises(NotFound, match="There is no group “nosuch”"):
                await watch(cluster, partial(of_group, "nosuch"))

    simulate(story())


@pytest.mark.parametrize("delay_s", [5.0, 20.0, 60.0])
def test_a_group_that_is_slow_holds_up_no_other(delay_s: float) -> None:
    async def story() -> None:
        async with simulated_cluster(nodes=4, candidates=1) as cluster:
            await with_two_groups(cluster)
            await reboot(cluster, "beta")
            slow = Slow(lambda trip: trip.target in ("gamma", "delta"), delay_s)
            cluster.network.faults.append(slow)
            await check_started_in_time(cluster)

    simulate(story())
