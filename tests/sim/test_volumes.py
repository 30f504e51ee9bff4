"""Instances whose disks are logical volumes of their node."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NoCapacity
from common.model.backing import LvmBacking
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import GroupName, InstanceName, MiB, NodeName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.devices import DiskRequest
from coordinator.operations.group.modify import ModifyGroup
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.query_volumes import QueryVolumes
from noded.storage.lvm.fake_group import FakeGroup
from noded.storage.lvm.volumes import VolumeReport
from tests.sim.settings import GAMMA, WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.image import GROUP

PLAIN = DiskTemplate.PLAIN


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 running on gamma, its disk on a volume there."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", template=PLAIN))
            await story(cluster)

    simulate(scenario())


def volumes(cluster: SimulatedCluster, name: str = "gamma") -> dict[str, VolumeReport]:
    return cluster.machines[name].volumes.groups[GROUP].volumes


def test_a_guest_waits_for_zeros_and_is_told_how_many_there_are() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["gamma"].volumes.delays = 3
            job = await cluster.finished(
                await cluster.submit(create("web1", "gamma", template=PLAIN))
            )
            told = [entry.message for entry in job.ops[0].log]
            assert any("50 % of 64M" in message for message in told), told
            assert [each.is_unfinished for each in volumes(cluster).values()] == [False]

    simulate(scenario())


def test_a_job_that_waits_for_zeros_can_be_cancelled() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["gamma"].volumes.delays = 1000
            number = await cluster.submit(create("web1", "gamma", template=PLAIN))
            await asyncio.sleep(60.0)
            assert (await cluster.master.luxi("CancelJob", number))[0]
            assert (await cluster.finished(number)).status is Status.CANCELED
            assert volumes(cluster) == {}

    simulate(scenario())


def test_it_stays_on_its_node() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for operation in (MigrateInstance, FailOverInstance):
            with pytest.raises(Conflict, match="which are on its node only"):
                await cluster.run(operation(instance_name=WEB1))
        assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}

    tell(story)


def test_with_its_node_it_is_gone_until_the_node_is_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("gamma")
        await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
        with pytest.raises(Conflict, match="which are on its node only"):
            await cluster.run(FailOverInstance(instance_name=WEB1))
        await cluster.machines["gamma"].boot()
        await cluster.run(ModifyNode(node_name=GAMMA, offline=False))
        assert [each.is_active for each in volumes(cluster).values()] == [False]
        await cluster.run(StartInstance(instance_name=WEB1))
        assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}

    tell(story)


def test_a_full_group_takes_no_more() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for machine in cluster.machines.values():
            machine.volumes.groups[GROUP].capacity = MiB(100)
        with pytest.raises(NoCapacity, match="36 MiB left in the volume group gantry"):
            await cluster.run(create("web2", "gamma", template=PLAIN))
        await cluster.run(create("web2", template=PLAIN))  # on another node
        assert len(volumes(cluster)) == 1

    tell(story)


def test_the_cluster_takes_a_group_that_all_nodes_have() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["beta"].volumes.groups["fast"] = FakeGroup()
        with pytest.raises(InvalidRequest, match="alpha: The volume group fast does not exist"):
            await cluster.run(ModifyCluster(vg_name="fast"))
        for machine in cluster.machines.values():
            machine.volumes.groups["fast"] = FakeGroup()
        with pytest.raises(Conflict, match="has the disk template plain; it has to stay enabled"):
            await cluster.run(ModifyCluster(vg_name="", enabled_disk_templates=("diskless",)))
        await cluster.run(ModifyCluster(vg_name="fast"))
        await cluster.run(create("web2", "gamma", template=PLAIN))
        assert len(cluster.machines["gamma"].volumes.groups["fast"].volumes) == 1
        assert len(volumes(cluster)) == 1

    tell(story)


def test_a_disk_that_is_made_anew_elsewhere_is_in_its_group_there() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for machine in cluster.machines.values():
            machine.volumes.groups["fast"] = FakeGroup()
        disks = (DiskRequest(size="64M", vg="fast"),)
        await cluster.run(
            replace(create("web2", "gamma", template=PLAIN, start=False), disks=disks)
        )
        cluster.machines["gamma"].volumes.groups["fast"].volumes.clear()
        anew = RecreateDisks(instance_name=InstanceName("web2"), nodes=("beta",))
        await cluster.run(anew)
        assert len(cluster.machines["beta"].volumes.groups["fast"].volumes) == 1

    tell(story)


def test_an_instance_for_a_group_of_nodes_is_placed_as_the_disk_parameters_there_say() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for machine in cluster.machines.values():
            machine.volumes.groups["fast"] = FakeGroup()
        cluster.machines["beta"].volumes.groups["fast"].capacity = MiB(127)
        told = {"drbd": {"metavg": "fast"}}
        await cluster.run(ModifyGroup(group_name=GroupName("default"), diskparams=told))
        question = {
            "type": "capacity", "disk_template": "drbd", "disks": [{"size": "64M"}],
            "group": "default", "beparams": {"memory": "64M"},
        }  # fmt: skip
        answer = await cluster.master.luxi("AskAllocator", question)
        assert {name for nodes in answer["placements"] for name in nodes} == {"alpha", "gamma"}
        order = replace(create("web2", template=DiskTemplate.DRBD), group_name="default")
        job = await cluster.finished(await cluster.submit(order))
        assert set(outcome(job)) == {"alpha", "gamma"}
        messages = [entry.message for entry in job.ops[0].log]
        assert not any("Another node is looked for" in message for message in messages)

    tell(story)


def test_what_fits_is_told_of_a_volume_group_that_no_disk_has_named_yet() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["alpha"].volumes.groups["fast"] = FakeGroup()
        cluster.machines["beta"].volumes.groups["fast"] = FakeGroup(capacity=MiB(63))
        wish = {"disk_template": "plain", "disks": [{"size": "64M", "vg": "fast"}]}
        for question in ({"type": "capacity"}, {"type": "allocate"}):
            told = await cluster.master.luxi("AskAllocator", question | wish)
            assert told["refused"]["beta"].startswith("has 63 MiB left in the volume group fast")
            assert told["refused"]["gamma"].startswith("cannot use the volume group fast")

    tell(story)


def test_a_group_that_no_disk_has_named_yet_is_looked_at_before_a_node_is_chosen() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for machine in cluster.machines.values():
            machine.volumes.groups["fast"] = FakeGroup()
        cluster.machines["beta"].volumes.groups["fast"].capacity = MiB(63)
        disks = (DiskRequest(size="64M", vg="fast"),)
        order = replace(create("web2", template=PLAIN), disks=disks)
        job = await cluster.finished(await cluster.submit(order))
        assert outcome(job) == ["alpha"]  # else it would have been beta
        told = [entry.message for entry in job.ops[0].log]
        assert "beta has 63 MiB left in the volume group fast, and 64 MiB are needed" in told
        assert not any("Another node is looked for" in message for message in told)

    tell(story)


def test_volumes_are_told_with_their_instances() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        ((name, there),) = volumes(cluster).items()
        foreign = dataclasses.replace(
            there, place=LvmBacking(group=GROUP, name="root"), disk=None, instance=None
        )
        volumes(cluster)["root"] = foreign
        fields = ("node", "phys", "vg", "name", "size", "instance")
        device = f"/dev/{GROUP}"
        assert await cluster.run(QueryVolumes(output_fields=fields)) == [
            ["gamma", device, GROUP, name, 64, "web1"], ["gamma", device, GROUP, "root", 64, "-"],
        ]  # fmt: skip
        only = QueryVolumes(output_fields=("name",), nodes=(NodeName("alpha"),))
        assert await cluster.run(only) == []
        with pytest.raises(InvalidRequest, match="no field “colour”"):
            await cluster.run(QueryVolumes(output_fields=("colour",)))

    tell(story)
