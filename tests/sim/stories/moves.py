"""Stories of instances that go from node to node."""

from coordinator.operations.instance.change_group import ChangeGroup
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.move import MoveInstance
from coordinator.operations.node.evacuate import EvacuateNode
from tests.sim.settings import (
    ALPHA,
    GAMMA,
    WEB1,
    web1_by_post_copy,
    web1_half_moved,
    web1_on,
    web1_on_dead_gamma,
    web1_with_data,
)  # fmt: skip
from tests.sim.stories.group import another_group_of_two
from tests.support.seeds import is_thorough
from tests.support.story import Story

# A node that fails to delete a disk that is needed no more is left with it, and told so.
LEFT = frozenset({"disks gamma", "contents gamma", "sizes gamma"})

STORIES = {
    "fail over": Story(
        FailOverInstance(instance_name=WEB1, target_node="alpha"), web1_on("gamma")
    ),
    "fail over from a dead node": Story(FailOverInstance(instance_name=WEB1), web1_on_dead_gamma),
    "migrate by post-copy": Story(
        MigrateInstance(instance_name=WEB1, target_node="alpha"), web1_by_post_copy,
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "fail over what was to migrate": Story(
        MigrateInstance(instance_name=WEB1, target_node="alpha", allow_failover=True),
        web1_on("gamma", start=False),
    ),
    "clean up after a migration": Story(
        MigrateInstance(instance_name=WEB1, cleanup=True), web1_half_moved,
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "migrate where the allocator says": Story(
        MigrateInstance(instance_name=WEB1, iallocator="hail"), web1_on("beta"),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "move": Story(
        MoveInstance(instance_name=WEB1, target_node=ALPHA), web1_with_data, uncertain=LEFT
    ),
    "evacuate": Story(
        EvacuateNode(node_name=GAMMA), web1_on("gamma", start=False), concerned="gamma"
    ),
    "change the group": Story(
        ChangeGroup(instance_name=WEB1, target_groups=("other",)), another_group_of_two, nodes=4
    ),
}  # fmt: skip

# As "migrate where the allocator says", but for how it is chosen.
if is_thorough():
    STORIES["migrate"] = Story(
        MigrateInstance(instance_name=WEB1, target_node="alpha"), web1_on("gamma"),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    )  # fmt: skip
