"""A stopped instance's disks are kept in another way, with what is on them."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest
from common.model.backing import DrbdBacking, Qcow2Backing
from common.model.template import DiskTemplate
from common.names import GroupName, InstanceName, MiB
from coordinator.operations.group.modify import ModifyGroup
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.state.rows import Put
from tests.sim.settings import BETA, WEB1, added, create, web1_with_data_that_is_down
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster

DATA = ["data of web1"]


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1, down on gamma, with data on a disk that only gamma has."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1_with_data_that_is_down(cluster)
            await story(cluster)

    simulate(scenario())


def contents(cluster: SimulatedCluster, node: str) -> list[str]:
    return list(cluster.machines[node].contents.values())


def keep_as(template: DiskTemplate, **others: Any) -> ModifyInstance:
    return ModifyInstance(instance_name=WEB1, disk_template=template, **others)


def test_disks_are_kept_in_another_way_with_what_is_on_them() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(StartInstance(instance_name=WEB1))
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
        number = await cluster.submit(keep_as(DiskTemplate.SHAREDFILE, rate_limit=2))
        outcome(job := await cluster.finished(number))
        told = [entry.message for entry in job.ops[0].log]
        assert any(", 2 MiB/s, " in message for message in told), told
        assert list(cluster.shared.contents.values()) == DATA

    tell(story)


def test_what_no_rate_can_be_kept_for_is_refused() -> None:
    async def story(cluster: SimulatedCluster) -> None:
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
        await cluster.run(keep_as(DiskTemplate.PLAIN))
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        await cluster.master.running.store.commit([Put(replace(disk, size=MiB(62)))])
        await cluster.run(keep_as(DiskTemplate.DRBD, remote_node="beta"))
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert disk.size == 64  # whole extents: there may be something at their end

    tell(story)


def test_disks_are_made_as_the_parameters_of_their_group_say() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        told = {"sharedfile": {"format": "qcow2"}}
        await cluster.run(ModifyGroup(group_name=GroupName("default"), diskparams=told))
        await cluster.run(keep_as(DiskTemplate.SHAREDFILE))
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert isinstance(disk.backing, Qcow2Backing)
        assert list(cluster.shared.contents.values()) == DATA

    tell(story)


@pytest.mark.parametrize("template", [DiskTemplate.FILE, DiskTemplate.PLAIN])
def test_no_two_that_become_mirrored_at_once_are_given_the_same_numbers(
    template: DiskTemplate,
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        both = (InstanceName("db1"), InstanceName("db2"))
        for name in both:
            await cluster.run(create(name, "gamma", template=template, start=False))
        become = keep_as(DiskTemplate.DRBD, remote_node="beta")
        jobs = [await cluster.submit(replace(become, instance_name=name)) for name in both]
        for job in jobs:
            outcome(await cluster.finished(job))
        backings = [disk.backing for disk in cluster.config.disks.values()]
        taken = [(b.port, *b.minors.values()) for b in backings if isinstance(b, DrbdBacking)]
        assert sorted(taken) == [(11000, 0, 0), (11001, 1, 1)]

    tell(story)


@pytest.mark.parametrize("template", [DiskTemplate.SHAREDFILE, DiskTemplate.PLAIN])
def test_nics_may_change_with_the_disks(template: DiskTemplate) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(keep_as(DiskTemplate.DRBD, remote_node="beta"))
        await cluster.run(keep_as(template, nics=(added(-1),)))
        web1 = cluster.config.instance("web1")
        assert (web1.disk_template, len(cluster.config.nics_of(web1))) == (template, 2)

    tell(story)
