"""Machines that lose their power in the middle of something."""

import asyncio

import pytest

from common.errors import Conflict, Deposed
from common.model.job import Status
from common.names import Epoch, JobId
from common.noderpc.disks import Disks
from coordinator.master.confirm import NotMaster
from coordinator.nodes.calls import Nodes
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.test.delay import Delay
from tests.sim.settings import WEB1, create, web1_half_moved
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.network import Line
from tests.support.seeds import seeds

MOVED_S = 6.0  # by then the memory of a small guest has been moved


async def _until_moved_unseen(cluster: SimulatedCluster) -> JobId:
    """Have the coordinator die in the middle of a migration from gamma, which then ends well."""
    await cluster.run(create("web1", "gamma"))
    number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
    await asyncio.sleep(1.0)
    await cluster.crash_master()
    await asyncio.sleep(MOVED_S)
    return number


def test_a_source_that_lost_its_power_unheard_costs_what_came_and_not_the_instance() -> None:
    """It may have gone on after all, and written to the disks: what came is of no use then."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await _until_moved_unseen(cluster)
            await cluster.lose_power("gamma")
            await cluster.machines["gamma"].boot()
            await cluster.start_master("alpha")
            job = await cluster.finished(number)
            assert job.status is Status.ERROR
            assert (await cluster.snapshot()).guests == {"alpha": {}, "beta": {}, "gamma": {}}
            assert cluster.config.instance("web1").maybe_on == ()
            await cluster.run(StartInstance(instance_name=WEB1))
            guests = (await cluster.snapshot()).guests
            assert guests == {"alpha": {}, "beta": {}, "gamma": {"web1": "running"}}

    simulate(scenario())


def test_a_target_that_lost_its_power_leaves_a_job_that_says_so() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            number = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="beta"))
            await asyncio.sleep(1.0)
            await cluster.lose_power("beta")
            await cluster.machines["beta"].boot()
            assert (await cluster.finished(number)).status is Status.ERROR
            guests = (await cluster.snapshot()).guests
            assert guests == {"alpha": {}, "beta": {}, "gamma": {"web1": "running"}}
            await cluster.run(MigrateInstance(instance_name=WEB1, target_node="beta"))

    simulate(scenario())


@pytest.mark.parametrize(
    "order",
    [
        StartInstance(instance_name=WEB1),
        RebootInstance(instance_name=WEB1),
        FailOverInstance(instance_name=WEB1, target_node="alpha"),
    ],
)
def test_what_runs_elsewhere_is_not_started_a_second_time(
    order: StartInstance | RebootInstance | FailOverInstance,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1_half_moved(cluster)  # runs on beta, and is recorded on gamma
            await cluster.lose_power("gamma")
            await cluster.machines["gamma"].boot()
            with pytest.raises(Conflict, match=r"web1 runs on beta.*--cleanup"):
                await cluster.run(order)
            await cluster.run(MigrateInstance(instance_name=WEB1, cleanup=True))
            await cluster.run(order)

    simulate(scenario())


def test_a_power_cut_of_everything_loses_no_job() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(create("web1", "gamma"))
            await asyncio.sleep(0.02)
            for name in cluster.names:
                await cluster.lose_power(name)
            for name in cluster.names:
                await cluster.machines[name].boot()
            await cluster.start_master("alpha")
            assert (await cluster.finished(number)).status is Status.SUCCESS
            assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}

    simulate(scenario())


@pytest.mark.parametrize("seed", seeds(usual=4))
def test_what_was_acknowledged_outlives_a_power_cut_of_everything(seed: int) -> None:
    """Whatever the disks did not have by then is gone: nothing of it had been promised."""

    async def scenario() -> None:
        async with simulated_cluster(seed=seed) as cluster:
            await cluster.take_over("beta")
            await cluster.run(create("web1", "gamma", start=False))
            number = await cluster.submit(Delay(duration=0.0))
            before = cluster.state
            for name in cluster.names:
                await cluster.lose_power(name)
            for name in cluster.names:
                await cluster.machines[name].boot()
            with pytest.raises(NotMaster, match="beta"):
                await cluster.start_master("alpha")
            await cluster.start_master("beta")
            assert cluster.state.stamp.serial > before.stamp.serial
            assert cluster.config.find_instance("web1")
            assert (await cluster.finished(number)).status is Status.SUCCESS

    simulate(scenario())


@pytest.mark.parametrize("seed", seeds(usual=4))
def test_a_node_that_lost_its_power_still_obeys_the_master_that_it_granted(seed: int) -> None:
    async def scenario() -> None:
        async with simulated_cluster(seed=seed, candidates=2) as cluster:
            await cluster.crash_master()
            cluster.cut("alpha", "gamma")
            await cluster.take_over("beta")
            await cluster.settle(1.0)  # two of three nodes are enough: gamma may grant last
            await cluster.lose_power("gamma")
            await cluster.machines["gamma"].boot()
            late = Nodes(Line(cluster.network, cluster.machines["alpha"]), Epoch(2), cluster.random)
            cluster.heal()
            with pytest.raises(Deposed, match="obeys beta"):
                await late.service(Disks, cluster.config.node("gamma")).find(disks=())

    simulate(scenario())
