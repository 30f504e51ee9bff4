"""Stories of instances that go from node to node."""

from msgspec.structs import replace

from common.model.group import Group
from common.names import GroupId, GroupName
from coordinator.operations.instance.change_group import ChangeGroup
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.node.evacuate import EvacuateNode
from coordinator.state.rows import Put
from tests.sim.settings import GAMMA, WEB1, create, web1_half_moved, web1_on, web1_on_dead_gamma
from tests.support.cluster import SimulatedCluster
from tests.support.story import Story


async def web1_and_another_group(cluster: SimulatedCluster) -> None:
    """Have two empty nodes in a group of their own."""
    await cluster.run(create("web1", "beta", start=False))
    group = Group(uuid=GroupId("00000000-0000-4000-8000-0000000000a1"), name=GroupName("other"))
    nodes = [cluster.config.node(name) for name in ("gamma", "delta")]
    moved = [Put(replace(node, group=group.uuid)) for node in nodes]
    await cluster.master.running.store.commit([Put(group), *moved])


STORIES = {
    "fail over": Story(
        FailOverInstance(instance_name=WEB1, target_node="alpha"), web1_on("gamma")
    ),
    "fail over from a dead node": Story(FailOverInstance(instance_name=WEB1), web1_on_dead_gamma),
    "migrate": Story(
        MigrateInstance(instance_name=WEB1, target_node="alpha"), web1_on("gamma"),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "clean up after a migration": Story(
        MigrateInstance(instance_name=WEB1, cleanup=True), web1_half_moved,
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "migrate where the allocator says": Story(
        MigrateInstance(instance_name=WEB1, iallocator="hail"), web1_on("beta"),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "evacuate": Story(
        EvacuateNode(node_name=GAMMA), web1_on("gamma", start=False), concerned="gamma"
    ),
    "change the group": Story(
        ChangeGroup(instance_name=WEB1, target_groups=("other",)), web1_and_another_group, nodes=4
    ),
}  # fmt: skip
