"""Stories of groups of nodes."""

from common.model.allocation_policy import AllocationPolicy
from common.names import GroupName
from coordinator.operations.group.add import AddGroup
from coordinator.operations.group.assign_nodes import AssignNodes
from coordinator.operations.group.evacuate import EvacuateGroup
from coordinator.operations.group.modify import ModifyGroup
from coordinator.operations.group.remove import RemoveGroup
from coordinator.operations.group.rename import RenameGroup
from coordinator.operations.group.repair_storage import RepairStorageOfGroup
from tests.sim.settings import BETA, DELTA, GAMMA, create
from tests.support.cluster import SimulatedCluster
from tests.support.story import Story

OTHER = GroupName("other")


async def another_group(cluster: SimulatedCluster) -> None:
    await cluster.run(AddGroup(group_name=OTHER))


async def another_group_of_two(cluster: SimulatedCluster) -> None:
    """Have two empty nodes in a group of their own, and an instance in the first group."""
    await cluster.run(create("web1", "beta", start=False))
    await another_group(cluster)
    await cluster.run(AssignNodes(group_name=OTHER, nodes=(GAMMA, DELTA)))


STORIES = {
    "add a group": Story(
        AddGroup(
            group_name=OTHER,
            alloc_policy=AllocationPolicy.LAST_RESORT,
            ndparams={"spindle_count": 4},
            diskparams={"drbd": {"resync-rate": 1024}},
            ipolicy={"vcpu-ratio": 2.0},
        )
    ),
    "change a group": Story(
        ModifyGroup(
            group_name=GroupName("default"),
            alloc_policy=AllocationPolicy.UNALLOCABLE,
            ipolicy={"disk-templates": ["sharedfile"]},
        )
    ),
    "rename a group": Story(
        RenameGroup(group_name=GroupName("default"), new_name=GroupName("cellar"))
    ),
    "assign nodes": Story(AssignNodes(group_name=OTHER, nodes=(BETA, GAMMA)), another_group),
    "remove a group": Story(RemoveGroup(group_name=OTHER), another_group),
    "find nothing to repair": Story(RepairStorageOfGroup(group_name=GroupName("default"))),
    "evacuate a group": Story(
        EvacuateGroup(group_name=GroupName("default")), another_group_of_two, nodes=4
    ),
}
