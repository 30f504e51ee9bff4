"""What is only reserved is changed and moved without any node, and only where there is room."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NoCapacity
from common.model.backing import DrbdBacking
from common.model.disk import Disk
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId, MiB
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.operations.instance.change_group import ChangeGroup
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.rename import RenameInstance
from coordinator.operations.instance.replace_disks import ReplaceDisks
from coordinator.operations.instance.reserve import ReserveInstance
from coordinator.operations.node.evacuate import EvacuateNode
from coordinator.operations.node.migrate import MigrateNode
from tests.sim.reserving import OWN_MIB, order, web1
from tests.sim.settings import DELTA, GAMMA, WEB1, added, changed, create, disk, mirrored
from tests.sim.stories.group import OTHER, another_group
from tests.sim.stories.reserved import COMMIT, reserved
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Slow
from tests.support.image import GROUP
from tests.support.network import Trip


def test_what_is_reserved_is_told_bit_by_bit_and_made_at_last() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            uuid = InstanceName(await cluster.run(ReserveInstance(forthcoming=True, pnode="gamma")))
            change = ModifyInstance(instance_name=uuid)
            with pytest.raises(InvalidRequest, match="Nothing to change"):
                await cluster.run(change)
            with pytest.raises(InvalidRequest, match="Name the node for the second copies"):
                await cluster.run(replace(change, disk_template=DiskTemplate.DRBD))
            drbd = replace(change, disk_template=DiskTemplate.DRBD, remote_node="beta")
            with pytest.raises(InvalidRequest, match="What is mirrored has disks"):
                await cluster.run(drbd)
            with pytest.raises(InvalidRequest, match="has no data to copy"):
                await cluster.run(replace(drbd, rate_limit=2))
            await cluster.run(replace(drbd, disks=(disk("add", size=64), disk("add", size=32))))
            numbers = [each.backing for each in disks_of(cluster, uuid)]
            assert all(isinstance(each, DrbdBacking) for each in numbers)
            assert len({each.port for each in numbers if isinstance(each, DrbdBacking)}) == 2
            await cluster.run(replace(change, disks=(disk("remove", 0),), beparams={"vcpus": 2}))
            await cluster.run(replace(change, nics=(added(-1),), os_name="noop", expires="never"))
            await cluster.run(replace(change, nics=(changed(0, {"ip": "192.0.2.77"}),)))
            await cluster.run(RenameInstance(instance_name=uuid, new_name=WEB1))
            made = await cluster.run(replace(COMMIT, no_install=True))
            assert made == ["gamma", "beta"]
            assert [each.size for each in disks_of(cluster, WEB1)] == [32]
            assert await cluster.run(VerifyGroup(group_name="default")) is True

    simulate(scenario())


def test_a_reservation_is_given_more_time_or_all_of_it() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1(cluster, order("web1", pnode="gamma"))
            forget = RemoveInstance(instance_name=WEB1, if_expired=True)
            for expires in ("60s", "120s", "never"):
                await cluster.run(ModifyInstance(instance_name=WEB1, expires=expires))
                with pytest.raises(Conflict):
                    await cluster.run(forget)
                await cluster.settle(70.0)
            await cluster.run(ModifyInstance(instance_name=WEB1, expires="60s"))
            await cluster.settle(61.0)
            await cluster.run(forget)

    simulate(scenario())


def disks_of(cluster: SimulatedCluster, name: str) -> tuple[Disk, ...]:
    return cluster.config.disks_of(cluster.config.instance(name))


def test_a_reservation_grows_only_where_there_is_room() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["gamma"].shrink_memory(OWN_MIB + 1024)
            await web1(cluster, order("web1", 512, pnode="gamma"))
            await cluster.run(reserved(order("web2", 256, pnode="gamma")))
            change = ModifyInstance(instance_name=WEB1)
            with pytest.raises(NoCapacity, match="gamma has 768 MiB of memory free"):
                await cluster.run(replace(change, beparams={"memory": 769}))
            await cluster.run(replace(change, beparams={"memory": 768}))
            with pytest.raises(NoCapacity, match="gamma"):
                await cluster.run(replace(change, disks=(disk("add", size=1_048_570),)))
            with pytest.raises(NoCapacity, match="gamma"):
                await cluster.run(GrowDisk(instance_name=WEB1, disk=0, amount=MiB(1_048_570 - 64)))
            await cluster.lose_power("gamma")
            await cluster.run(replace(change, beparams={"memory": 128}))  # gives back
            with pytest.raises(GntError, match="gamma"):
                await cluster.run(replace(change, beparams={"memory": 256}))

    simulate(scenario())


def test_what_a_reservation_gives_up_is_room_for_what_it_gets() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["gamma"].volumes.groups[GROUP].capacity = MiB(700)
            await web1(cluster, order("web1", pnode="gamma", disks=(DiskRequest(size=512),)))
            change = ModifyInstance(instance_name=WEB1, disk_template=DiskTemplate.DRBD)
            await cluster.run(replace(change, remote_node="beta"))  # 512 MiB, and 128 of metadata
            with pytest.raises(NoCapacity, match="gamma"):
                await cluster.run(GrowDisk(instance_name=WEB1, disk=0, amount=MiB(64)))

    simulate(scenario())


REFUSED: list[tuple[dict[str, Any], str]] = [  # and how
    ({"offline": True}, "for when it is there"),
    ({"runtime_mem": MiB(64)}, "for when it is there"),
    ({"disks": (disk("detach", 0),)}, "not attached or detached"),
    ({"disks": (disk("remove", 0),)}, "left without a disk"),
    ({"disk_template": DiskTemplate.PLAIN}, "are plain already"),
    ({"disk_template": DiskTemplate.BLOCKDEV}, "is not enabled|adopted"),
    ({"disk_template": DiskTemplate.DISKLESS}, "web1 has disks"),
    ({"disk_template": DiskTemplate.FILE, "remote_node": "beta"}, "There are no second copies"),
    ({"disk_template": DiskTemplate.DRBD, "remote_node": "gamma"}, "has to be another one"),
    ({"remote_node": "beta"}, "given with -t"),
    ({"expires": "soon"}, "no span of time"),
    ({"expires": ""}, "“” is no span of time"),
]


def test_changes_of_a_reservation_that_make_no_sense_are_refused() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1(cluster, order("web1", pnode="gamma"))
            before = cluster.config
            for fields, why in REFUSED:
                with pytest.raises(GntError, match=why):
                    await cluster.run(ModifyInstance(instance_name=WEB1, **fields))
                assert cluster.config == before, fields

    simulate(scenario())


def test_what_is_reserved_is_moved_without_any_node_and_made_where_it_is_then() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4) as cluster:
            await web1(cluster, mirrored())  # gamma, beta
            with pytest.raises(Conflict, match="is kept on gamma already"):
                await cluster.run(FailOverInstance(instance_name=WEB1, target_node="gamma"))
            with pytest.raises(Conflict, match="has no copies that could be made anew"):
                await cluster.run(ReplaceDisks(instance_name=WEB1, auto=True))
            with pytest.raises(Conflict, match="beta is the secondary node of web1 already"):
                await cluster.run(ReplaceDisks(instance_name=WEB1, remote_node="beta"))
            await cluster.run(FailOverInstance(instance_name=WEB1))
            assert nodes_of(cluster) == ["beta", "gamma"]
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node="delta"))
            assert nodes_of(cluster) == ["delta", "gamma"]
            await cluster.run(ReplaceDisks(instance_name=WEB1, iallocator="hail"))
            home, second = nodes_of(cluster)
            assert home == "delta"
            assert second != "gamma"
            assert await cluster.run(COMMIT) == [home, second]
            assert await cluster.run(VerifyGroup(group_name="default")) is True

    simulate(scenario())


def nodes_of(cluster: SimulatedCluster) -> list[str]:
    config = cluster.config
    return [config.nodes[uuid].name for uuid in config.nodes_of(config.instance(WEB1))]


def test_what_is_reserved_moves_only_where_there_is_room() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["beta"].shrink_memory(OWN_MIB + 256)
            await web1(cluster, order("web1", 512, pnode="gamma"))
            with pytest.raises(NoCapacity, match="beta has 256 MiB of memory free"):
                await cluster.run(FailOverInstance(instance_name=WEB1, target_node="beta"))
            with pytest.raises(Conflict, match="Say where the room of web1 is to be kept"):
                await cluster.run(FailOverInstance(instance_name=WEB1))

    simulate(scenario())


def test_who_empties_an_empty_node_is_told_and_nothing_goes_to_where_it_is() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            job = await cluster.finished(await cluster.submit(EvacuateNode(node_name=GAMMA)))
            assert "nothing on gamma that would have to move" in job.ops[0].log[0].message
            to_itself = EvacuateNode(node_name=GAMMA, secondary_only=True, remote_node="gamma")
            with pytest.raises(InvalidRequest, match="What leaves gamma cannot go to gamma"):
                await cluster.run(to_itself)

    simulate(scenario())


def test_a_node_and_a_group_are_evacuated_of_what_is_reserved_there() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4) as cluster:
            await web1(cluster, mirrored())
            await cluster.run(reserved(replace(create("web2", "gamma"), beparams={"memory": 128})))
            told = await cluster.run(EvacuateNode(node_name=GAMMA))
            for _, number in told["jobs"]:
                outcome(await cluster.finished(JobId(number)))
            assert "gamma" not in nodes_of(cluster)
            config = cluster.config
            assert not config.instances_on(config.node("gamma").uuid)
            assert len(config.reservations) == 2

    simulate(scenario())


def test_a_node_is_not_left_by_what_has_its_room_there_alone() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1(cluster, order("web1", pnode="gamma"))
            with pytest.raises(Conflict, match="“gnt-instance failover -n NODE” keeps it on anoth"):
                await cluster.run(MigrateNode(node_name=GAMMA))

    simulate(scenario())


def test_what_a_change_gives_back_is_given_to_others_when_it_is_recorded() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.machines["gamma"].shrink_memory(OWN_MIB + 512)
            await web1(cluster, order("web1", 512, pnode="gamma"))
            cluster.network.faults.append(
                Slow(lambda trip: trip.call.name.startswith("hooks."), 5.0)
            )
            less = ModifyInstance(instance_name=WEB1, beparams={"memory": 128})
            changing = await cluster.submit(less)
            await asyncio.sleep(2.0)
            web2 = replace(create("web2", "gamma"), beparams={"memory": 384})
            with pytest.raises(NoCapacity, match="gamma has 0 MiB"):
                await cluster.run(web2)
            outcome(await cluster.finished(changing))
            cluster.network.faults.clear()
            await cluster.run(web2)

    simulate(scenario())


def _asks_for_hooks(trip: Trip) -> bool:
    return trip.call.name.startswith("hooks.")


def test_what_is_reserved_goes_to_another_group_with_all_its_room() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4) as cluster:
            await another_group(cluster)
            await cluster.run(AssignNodes(group_name=OTHER, nodes=(GAMMA, DELTA)))
            await web1(cluster, mirrored("web1", "alpha", "beta"))
            told = await cluster.run(ChangeGroup(instance_name=WEB1, target_groups=("other",)))
            for _, number in told["jobs"]:
                outcome(await cluster.finished(JobId(number)))
            assert sorted(nodes_of(cluster)) == ["delta", "gamma"]
            assert cluster.config.instance(WEB1).forthcoming

    simulate(scenario())
