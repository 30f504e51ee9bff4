"""Stories of instances that go from node to node."""

from coordinator.operations.instance.change_group import ChangeGroup
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.node.evacuate import EvacuateNode
from tests.sim.settings import GAMMA, WEB1, web1_half_moved, web1_on, web1_on_dead_gamma
from tests.sim.stories.group import another_group_of_two
from tests.support.story import Story

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
        ChangeGroup(instance_name=WEB1, target_groups=("other",)), another_group_of_two, nodes=4
    ),
}  # fmt: skip
