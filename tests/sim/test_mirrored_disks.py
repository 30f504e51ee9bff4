"""Instances whose disks are on two nodes: making them, using the other node, and deleting them."""

from typing import Any

import pytest

from common.errors import Conflict, Unreachable
from common.model.backing import DrbdBacking
from coordinator.operations.base import Operation
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.reboot import RebootInstance, RebootType
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from noded.storage.drbd.module import ModuleState
from tests.sim.mirrored_pair import attached, guests, homes, tell
from tests.sim.settings import BETA, WEB1, disk, mirrored
from tests.sim.stories.disks import without_mirrored_disks
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Slow
from tests.support.image import GROUP


def test_both_copies_are_made_at_the_same_time() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            makes = Slow(lambda trip: trip.call.name == "disks.ensure_present", 10.0)
            cluster.network.faults.append(makes)
            began = cluster.now()
            await cluster.run(mirrored(start=False))
            assert 20 <= cluster.now() - began < 30, "there and back, once"

    simulate(scenario())


def test_new_disks_are_not_mirrored_between_nodes_with_another_drbd() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            cluster.machines["beta"].drbd.module = ModuleState(version="9.2.16")
            words = "gamma has DRBD 8.4.11 and beta has DRBD 9.2.16"
            with pytest.raises(Conflict, match=words):
                await cluster.run(mirrored(start=False))
            assert attached(cluster) == {}
            cluster.machines["gamma"].drbd.module = ModuleState(version="9.1.23")
            await cluster.run(mirrored(start=False))

    simulate(scenario())


@pytest.mark.parametrize(
    "order",
    [
        ModifyInstance(instance_name=WEB1, disks=(disk("add", size=32),)),
        RecreateDisks(instance_name=WEB1),
        RecreateDisks(instance_name=WEB1, nodes=("alpha", "beta")),
    ],
    ids=["added", "made anew", "made anew elsewhere"],
)
def test_nor_are_new_disks_of_an_instance_that_is_there(order: Operation[Any, Any]) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await without_mirrored_disks(cluster)
            cluster.machines["beta"].drbd.module = ModuleState(version="9.2.16")
            with pytest.raises(Conflict, match=r"beta has DRBD 9\.2\.16"):
                await cluster.run(order)
            assert not cluster.machines["beta"].volumes.groups[GROUP].volumes
            for name in cluster.names:
                cluster.machines[name].drbd.module = ModuleState(version="9.1.23")
            await cluster.run(order)

    simulate(scenario())


def test_a_disk_goes_on_when_its_nodes_get_drbd_9_one_after_the_other() -> None:
    """As an upgrade of kernels goes: each node is emptied first, and is the secondary one."""

    async def story(cluster: SimulatedCluster) -> None:
        for _ in range(2):
            name = homes(cluster)[1]
            secondary = cluster.machines[name]
            await cluster.lose_power(name)
            secondary.drbd.module = ModuleState(version="9.2.16")
            await secondary.boot()
            await cluster.run(ActivateDisks(instance_name=WEB1, wait_for_sync=True))
            await cluster.run(MigrateInstance(instance_name=WEB1))
        assert not cluster.pairs.lost

    tell(story)


def test_it_moves_to_its_secondary_node_and_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert homes(cluster) == ["gamma", "beta"]
        assert attached(cluster) == {"gamma": ["sole"], "beta": ["standby"]}
        await cluster.run(MigrateInstance(instance_name=WEB1))
        assert homes(cluster) == ["beta", "gamma"]
        assert attached(cluster) == {"gamma": ["standby"], "beta": ["sole"]}
        assert not any(end.allows_two for end in cluster.pairs.ends)
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert homes(cluster) == ["gamma", "beta"]
        assert attached(cluster) == {"gamma": ["sole"], "beta": ["standby"]}

    tell(story)


def test_a_reset_has_nothing_to_do_with_the_second_copy() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        reset = RebootInstance(instance_name=WEB1, reboot_type=RebootType.SOFT)
        job = await cluster.finished(await cluster.submit(reset))
        outcome(job)
        assert not any("second copy" in entry.message for entry in job.ops[0].log)

    tell(story)


def test_two_made_at_once_have_devices_of_their_own() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        jobs = [await cluster.submit(mirrored(name, "gamma", "beta")) for name in ("a", "b", "c")]
        for job in jobs:
            outcome(await cluster.finished(job))
        backings = [disk.backing for disk in cluster.config.disks.values()]
        for node in cluster.config.nodes.values():
            numbers = [b.minors.get(node.uuid) for b in backings if isinstance(b, DrbdBacking)]
            taken = [number for number in numbers if number is not None]
            assert len(set(taken)) == len(taken)
        ports = [backing.port for backing in backings if isinstance(backing, DrbdBacking)]
        assert sorted(ports) == [11000, 11001, 11002, 11003]

    tell(story)


def test_both_copies_are_deleted_with_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(RemoveInstance(instance_name=WEB1))
        assert [machine.local_disks for machine in cluster.machines.values()] == [[], [], []]
        assert attached(cluster) == {}

    tell(story)


def test_nothing_is_deleted_while_one_of_its_nodes_does_not_answer() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        before = cluster.machines["gamma"].local_disks
        with pytest.raises(Unreachable, match="beta"):
            await cluster.run(RemoveInstance(instance_name=WEB1))
        assert before == cluster.machines["gamma"].local_disks != []
        assert (await guests(cluster))["gamma"] == {"web1": "running"}
        await cluster.run(RemoveInstance(instance_name=WEB1, ignore_failures=True))
        assert cluster.machines["gamma"].local_disks == []

    tell(story)


def test_a_node_with_a_copy_stays() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match=r"beta still has instances \(web1\)"):
            await cluster.run(RemoveNode(node_name=BETA))

    tell(story)


def test_a_node_with_a_copy_stays_one_for_instances() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match=r"copies of their disks \(web1\)"):
            await cluster.run(ModifyNode(node_name=BETA, vm_capable=False))

    tell(story)


def test_a_missing_copy_is_found() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["beta"].volumes.groups["gantry"].volumes.clear()
        found = await cluster.run(VerifyGroup(group_name="default", findings=True))
        missing = [each for each in found if each["code"] == "EINSTANCEMISSINGDISK"]
        assert {each["name"] for each in missing} == {"web1"}
        remedy = "“gnt-instance replace-disks --on-secondary web1” makes it of the other copy"
        assert all(each["message"].endswith(remedy) for each in missing)

    tell(story)
