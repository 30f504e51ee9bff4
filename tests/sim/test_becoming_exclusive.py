"""Storage that becomes exclusive, with what was there before, and in some groups only."""

import dataclasses

import pytest

from common.errors import Conflict, InvalidRequest
from common.model.backing import LvmBacking
from common.model.template import DiskTemplate
from common.names import InstanceName, MiB, NodeName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.repair_disk_sizes import RepairDiskSizes
from coordinator.operations.group.add import AddGroup
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.move import MoveInstance
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.instance.snapshot import TakeSnapshot
from coordinator.operations.node.modify import ModifyNode
from noded.storage.lvm.volumes import VolumeReport
from tests.sim.exclusive import OTHER, WEB2, devices, exclusive, findings, tell
from tests.sim.settings import ALPHA, DELTA, GAMMA, WEB1, apart, create, disk
from tests.sim.stories.adopted import ADOPT, OLD, a_volume
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import GROUP


def test_what_was_there_before_goes_on_as_it_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await exclusive(cluster, value=False)
        await cluster.run(create("web1", "gamma", "beta", template=DiskTemplate.DRBD))
        await cluster.run(create("web2", "gamma", template=DiskTemplate.PLAIN, start=False))
        await exclusive(cluster, value=True)
        assert ("EINSTANCEUNSUITABLENODE", "web1") in await findings(cluster)
        add = ModifyInstance(instance_name=WEB1, disks=(disk("add", size=32),))
        renew = ReplaceDisks(instance_name=WEB1, on_secondary=True)
        convert = ModifyInstance(
            instance_name=WEB2, disk_template=DiskTemplate.DRBD, remote_node="beta"
        )
        for new_volumes in (add, renew, convert):
            with pytest.raises(Conflict, match="where disks are plain ones, not drbd"):
                await cluster.run(new_volumes)
        for name in (WEB1, WEB2):
            await cluster.run(GrowDisk(instance_name=name, disk=0, amount=MiB(32)))
            await cluster.run(TakeSnapshot(instance_name=name, name="s", room=MiB(32)))
        (kept,) = [disk.snapshots for disk in cluster.config.disks_of(
            cluster.config.instance("web2")
        )]  # fmt: skip
        volumes = cluster.machines["gamma"].volumes.groups[GROUP].volumes
        web2 = cluster.config.instance("web2").uuid
        its = {each.devices for each in volumes.values() if each.instance == web2}
        assert len(kept) == len(its) == 1

    tell(story)


def test_spindles_are_for_exclusive_storage_alone() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for node in ("gamma", None):
                with pytest.raises(InvalidRequest, match="is not exclusive, so its disks have no"):
                    await cluster.run(apart("web1", node))

    simulate(scenario())


def test_instances_that_were_there_before_are_named_and_told_how_many_they_have() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await exclusive(cluster, value=False)
        for number in range(1, 5):
            await cluster.run(create(f"web{number}", "gamma", template=DiskTemplate.PLAIN))
        await exclusive(cluster, value=True)
        assert sorted({code for code, _ in await findings(cluster)}) == [
            "EINSTANCEMISSINGCFGPARAMETER", "ENODELVM",
        ]  # fmt: skip
        assert await cluster.run(RepairDiskSizes()) == [
            [f"web{number}", 0, "spindles", 1] for number in range(1, 5)
        ]
        assert await findings(cluster) == [("ENODELVM", "gamma")]  # two share one
        web4 = InstanceName("web4")
        await cluster.run(MoveInstance(instance_name=web4, target_node=NodeName("alpha")))
        assert await findings(cluster) == []

    tell(story)


def test_space_is_told_in_whole_ones_of_the_standard_size() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(enabled_disk_templates=("plain",)))
        await cluster.run(apart("web1", "gamma"))
        told = await cluster.master.luxi("QueryNodes", ("gamma",), ["dtotal", "dfree"])
        assert told == [[2 * 970 + 64, 2 * 970]]

    tell(story)


def test_nodes_are_chosen_by_what_their_group_is_for() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(AddGroup(group_name=OTHER, ndparams={"exclusive_storage": False}))
        await cluster.run(AssignNodes(group_name=OTHER, nodes=(GAMMA, DELTA)))
        shared = create("web1", template=DiskTemplate.PLAIN)
        assert set(await cluster.run(shared)) < {"gamma", "delta"}
        assert set(await cluster.run(apart("web2"))) < {"alpha", "beta"}
        with pytest.raises(InvalidRequest, match="The storage of gamma is not exclusive"):
            await cluster.run(apart("web3", "gamma"))
        await cluster.run(MoveInstance(instance_name=WEB2, target_node=GAMMA))
        with pytest.raises(Conflict, match="alpha has exclusive storage, so say how many spindles"):
            await cluster.run(MoveInstance(instance_name=WEB1, target_node=ALPHA))
        await cluster.run(MoveInstance(instance_name=WEB2, target_node=ALPHA))
        assert len(devices(cluster, "alpha")) == 1

    tell(story, nodes=4)


def test_what_is_adopted_is_alone_already_or_stays_as_it_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await a_volume(cluster)
        volumes = cluster.machines["gamma"].volumes.groups[GROUP].volumes
        volumes[OLD] = dataclasses.replace(volumes[OLD], devices=("/dev/gantry", "/dev/gantry2"))
        place = LvmBacking(group=GROUP, name="other")
        volumes["other"] = VolumeReport(place, MiB(8), "other", devices=("/dev/gantry2",))
        with pytest.raises(Conflict, match="old-server shares /dev/gantry2 with gantry/other, and"):
            await cluster.run(ADOPT)
        del volumes["other"]
        await cluster.run(ADOPT)
        (made,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert made.spindles == 2
        assert await findings(cluster) == []

    tell(story)


def test_it_is_set_for_groups_and_not_for_single_nodes() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for value in (True, False):
            order = ModifyNode(node_name=GAMMA, ndparams={"exclusive_storage": value})
            with pytest.raises(InvalidRequest, match="for the cluster or for a group, not for"):
                await cluster.run(order)

    tell(story)
