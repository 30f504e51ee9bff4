"""Disks that are copied from node to node while something happens to one of the two."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from common.errors import Cancelled, Conflict, NoCapacity
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId, MiB
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.move import MoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from tests.sim.settings import ALPHA, BETA, GAMMA, WEB1, create, web1_with_data
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster

MOVE = MoveInstance(instance_name=WEB1, target_node=ALPHA)
DATA = ["data of web1"]
SLOW = 32  # MiB a second: a copy takes two


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 running on gamma, with data on a disk that only gamma has."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1_with_data(cluster)
            cluster.wires.mib_per_s = SLOW
            await story(cluster)

    simulate(scenario())


def contents(cluster: SimulatedCluster, node: str) -> list[str]:
    return list(cluster.machines[node].contents.values())


async def amid_copy(cluster: SimulatedCluster, operation: MoveInstance = MOVE) -> JobId:
    """Begin a move, and return when a part of the disk is copied."""
    number = await cluster.submit(operation)
    while True:
        if contents(cluster, operation.target_node) == ["a part of data of web1"]:
            return number
        await asyncio.sleep(0.1)


async def check_as_before(cluster: SimulatedCluster) -> None:
    await cluster.settle(10)
    web1 = cluster.config.instance("web1")
    assert cluster.config.nodes[web1.primary_node].name == "gamma"
    assert contents(cluster, "gamma") == DATA
    assert cluster.machines["alpha"].local_disks == []
    assert [machine.copier.known for machine in cluster.machines.values()] == [(), (), ()]


def test_data_goes_with_the_instance() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(MOVE)
        assert contents(cluster, "alpha") == DATA
        assert cluster.machines["gamma"].local_disks == []
        assert (await cluster.snapshot()).guests["alpha"] == {"web1": "running"}

    tell(story)


def test_what_is_down_stays_down_when_it_is_moved() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(MOVE)
        assert contents(cluster, "alpha") == DATA
        assert cluster.machines["gamma"].local_disks == []
        assert not any((await cluster.snapshot()).guests.values())

    tell(story)


@pytest.mark.parametrize("node", ["alpha", "gamma"])
def test_a_copy_goes_on_while_noded_is_restarted(node: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await amid_copy(cluster)
        await cluster.restart_noded(node, away_s=5.0)
        outcome(await cluster.finished(number))
        assert contents(cluster, "alpha") == DATA

    tell(story)


def test_each_time_that_noded_is_restarted_it_is_waited_for() -> None:
    """However long ago the time before was: a copy of many hours may see several."""

    async def story(cluster: SimulatedCluster) -> None:
        number = await amid_copy(cluster)
        cluster.wires.mib_per_s = 0.2
        for _ in range(3):
            await cluster.restart_noded("alpha", away_s=5.0)
            await asyncio.sleep(80)
        outcome(await cluster.finished(number))
        assert contents(cluster, "alpha") == DATA

    tell(story)


@pytest.mark.parametrize("node", ["alpha", "gamma"])
def test_a_side_that_is_killed_is_begun_again(node: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await amid_copy(cluster)
        cluster.machines[node].copier.power_off()
        outcome(await cluster.finished(number))
        assert contents(cluster, "alpha") == DATA

    tell(story)


def test_a_wire_that_is_cut_for_a_moment_does_not_end_a_copy() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await amid_copy(cluster)
        cluster.cut("alpha", "gamma")
        await asyncio.sleep(5)
        cluster.heal()
        outcome(await cluster.finished(number))
        assert contents(cluster, "alpha") == DATA

    tell(story)


def test_a_source_that_dies_leaves_nothing_on_the_target() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await amid_copy(cluster)
        await cluster.lose_power("gamma")
        await asyncio.sleep(30)
        await cluster.machines["gamma"].boot()
        await cluster.finished(number)
        await cluster.settle(120)
        assert "a part of data of web1" not in contents(cluster, "alpha")
        assert [*contents(cluster, "gamma"), *contents(cluster, "alpha")] == DATA

    tell(story)


def test_a_target_that_dies_is_given_up() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await amid_copy(cluster, MoveInstance(instance_name=WEB1, target_node=BETA))
        await cluster.lose_power("beta")
        job = await cluster.finished(number)
        failure = job.ops[0].failure
        assert job.status is Status.ERROR
        assert failure
        assert failure.code == "unreachable"
        assert contents(cluster, "gamma") == DATA
        assert cluster.config.nodes[cluster.config.instance("web1").primary_node].name == "gamma"
        assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}
        told = [entry.message for entry in job.ops[0].log]
        assert any("is left on beta, which cannot be reached" in message for message in told)

    tell(story)


def test_a_cancelled_move_leaves_the_instance_running_where_it_was() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await amid_copy(cluster)
        await cluster.master.luxi("CancelJob", number)
        with pytest.raises(Cancelled):
            outcome(await cluster.finished(number))
        await check_as_before(cluster)
        assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}

    tell(story)


def test_a_target_without_space_is_refused_beforehand() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["alpha"].files.capacity = MiB(10)
        with pytest.raises(NoCapacity, match="10 MiB left in the directory"):
            await cluster.run(MOVE)
        await check_as_before(cluster)

    tell(story)


def test_what_needs_no_copy_is_sent_elsewhere() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("db1", "gamma", template=DiskTemplate.SHAREDFILE))
        order = MoveInstance(instance_name=InstanceName("db1"), target_node=ALPHA)
        with pytest.raises(Conflict, match="“gnt-instance migrate db1”"):
            await cluster.run(order)
        with pytest.raises(Conflict, match="web1 is on gamma already"):
            await cluster.run(MoveInstance(instance_name=WEB1, target_node=GAMMA))

    tell(story)


def test_a_copy_tells_how_far_it_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        number = await cluster.submit(MOVE)
        job = await cluster.finished(number)
        told = [entry.message for entry in job.ops[0].log]
        assert any("of 64M copied" in message for message in told)

    tell(story)


def test_an_instance_on_volumes_is_moved() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        volumes = ModifyInstance(instance_name=WEB1, disk_template=DiskTemplate.PLAIN)
        await cluster.run(volumes)
        await cluster.run(MOVE)
        assert contents(cluster, "alpha") == DATA
        assert cluster.machines["gamma"].local_disks == []

    tell(story)
