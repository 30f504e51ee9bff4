"""Disks that are copied from node to node while something happens to one of the two."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Cancelled, Conflict, GntError, InvalidRequest, NoCapacity
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId, MiB
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.move import MoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.state.rows import Put
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


def keep_as(template: DiskTemplate, **others: Any) -> ModifyInstance:
    return ModifyInstance(instance_name=WEB1, disk_template=template, **others)


def test_disks_are_kept_in_another_way_with_what_is_on_them() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match="“gnt-instance shutdown web1”"):
            await cluster.run(keep_as(DiskTemplate.SHAREDFILE))
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        before = cluster.config.instance("web1").disks
        result = await cluster.run(keep_as(DiskTemplate.SHAREDFILE))
        assert result == [["disk_template", "sharedfile"]]
        assert list(cluster.shared.contents.values()) == DATA
        assert cluster.machines["gamma"].local_disks == []
        assert cluster.config.instance("web1").disks != before
        assert not set(before) & set(cluster.config.disks)
        await cluster.run(FailOverInstance(instance_name=WEB1, target_node="alpha"))
        await cluster.run(keep_as(DiskTemplate.FILE))
        assert contents(cluster, "alpha") == DATA
        assert cluster.shared.disks == {}

    tell(story)


def test_a_conversion_copies_as_fast_as_it_may() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        number = await cluster.submit(keep_as(DiskTemplate.SHAREDFILE, rate_limit=2))
        outcome(job := await cluster.finished(number))
        told = [entry.message for entry in job.ops[0].log]
        assert any(", 2 MiB/s, " in message for message in told), told
        assert list(cluster.shared.contents.values()) == DATA

    tell(story)


def test_what_no_rate_can_be_kept_for_is_refused() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        with pytest.raises(InvalidRequest, match="--rate-limit goes with -t"):
            await cluster.run(ModifyInstance(instance_name=WEB1, rate_limit=2))
        await cluster.run(keep_as(DiskTemplate.PLAIN, rate_limit=2))
        with pytest.raises(InvalidRequest, match="by the disk parameter resync-rate"):
            await cluster.run(keep_as(DiskTemplate.DRBD, remote_node="beta", rate_limit=2))
        await cluster.run(keep_as(DiskTemplate.DRBD, remote_node="beta"))
        await cluster.run(keep_as(DiskTemplate.PLAIN, rate_limit=2))  # nothing is copied

    tell(story)


def test_disks_are_not_made_of_nothing() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        with pytest.raises(Conflict, match="has file disks already"):
            await cluster.run(keep_as(DiskTemplate.FILE))
        with pytest.raises(InvalidRequest, match="diskless are not made by Gantry"):
            await cluster.run(keep_as(DiskTemplate.DISKLESS))
        with pytest.raises(InvalidRequest, match="no secondary node"):
            await cluster.run(keep_as(DiskTemplate.SHAREDFILE, remote_node="beta"))
        with pytest.raises(InvalidRequest, match="made with -t"):
            await cluster.run(ModifyInstance(instance_name=WEB1, remote_node="beta"))

    tell(story)


def test_disks_become_volumes_and_mirrored_ones_and_files_again() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        with pytest.raises(InvalidRequest, match="second copy of drbd disks with -n"):
            await cluster.run(keep_as(DiskTemplate.DRBD))
        for template, others, holders in (
            (DiskTemplate.PLAIN, {}, ["gamma"]),
            (DiskTemplate.DRBD, {"remote_node": "beta"}, ["beta", "gamma"]),
            (DiskTemplate.PLAIN, {}, ["gamma"]),
            (DiskTemplate.DRBD, {"remote_node": "alpha"}, ["alpha", "gamma"]),
            (DiskTemplate.FILE, {}, ["gamma"]),
        ):
            await cluster.run(keep_as(template, **others))
            there = [name for name in cluster.machines if contents(cluster, name)]
            assert there == holders, template
            assert all(contents(cluster, name) == DATA for name in there)
            assert [n for n, m in cluster.machines.items() if m.local_disks] == holders
        assert [machine.attached for machine in cluster.machines.values()] == [{}, {}, {}]

    tell(story)


def test_a_second_copy_is_made_and_given_up_while_the_data_stays_where_it_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(keep_as(DiskTemplate.PLAIN))
        before = cluster.machines["gamma"].local_disks
        (disk,) = cluster.config.instance("web1").disks
        await cluster.run(keep_as(DiskTemplate.DRBD, remote_node="beta"))
        assert set(before) < set(cluster.machines["gamma"].local_disks)
        assert cluster.config.instance("web1").disks == (disk,)
        assert cluster.config.disks[disk].behind == ()
        await cluster.run(FailOverInstance(instance_name=WEB1))
        await cluster.run(StartInstance(instance_name=WEB1))
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(keep_as(DiskTemplate.PLAIN))
        assert cluster.config.instance("web1").disks == (disk,)
        assert {n: m.local_disks for n, m in cluster.machines.items() if m.local_disks} == {
            "beta": before
        }
        assert contents(cluster, "beta") == DATA

    tell(story)


def test_a_second_copy_that_nobody_waits_for_is_noted_as_behind_until_it_is_made() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(keep_as(DiskTemplate.PLAIN))
        await cluster.run(keep_as(DiskTemplate.DRBD, remote_node="beta", wait_for_sync=False))
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert disk.behind == (cluster.config.node("beta").uuid,)
        with pytest.raises(Conflict, match="behind"):
            await cluster.run(FailOverInstance(instance_name=WEB1))
        await cluster.run(StartInstance(instance_name=WEB1))
        await cluster.run(ActivateDisks(instance_name=WEB1, wait_for_sync=True))
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert disk.behind == ()

    tell(story)


def test_the_better_copy_is_not_given_up() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(keep_as(DiskTemplate.PLAIN))
        await cluster.run(keep_as(DiskTemplate.DRBD, remote_node="beta"))
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        gamma = cluster.config.node("gamma").uuid
        await cluster.master.running.store.commit([Put(replace(disk, behind=(gamma,)))])
        with pytest.raises(Conflict, match="on gamma is behind the other copy"):
            await cluster.run(keep_as(DiskTemplate.PLAIN))
        await cluster.master.running.store.commit([Put(replace(disk, behind=()))])
        await cluster.lose_power("beta")
        with pytest.raises(GntError, match="beta"):  # nobody says that it is dead
            await cluster.run(keep_as(DiskTemplate.PLAIN))
        await cluster.run(ModifyNode(node_name=BETA, offline=True, force=True))
        await cluster.run(keep_as(DiskTemplate.PLAIN))
        assert contents(cluster, "gamma") == DATA

    tell(story)


def test_as_much_is_mirrored_as_a_guest_could_use_before() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(keep_as(DiskTemplate.PLAIN))
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        await cluster.master.running.store.commit([Put(replace(disk, size=MiB(62)))])
        await cluster.run(keep_as(DiskTemplate.DRBD, remote_node="beta"))
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert disk.size == 64  # whole extents: there may be something at their end

    tell(story)


def test_an_instance_on_volumes_is_moved() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(keep_as(DiskTemplate.PLAIN))
        await cluster.run(MOVE)
        assert contents(cluster, "alpha") == DATA
        assert cluster.machines["gamma"].local_disks == []

    tell(story)
