"""Move all instances of a group to others."""

from typing import Annotated

from msgspec.structs import replace

from common.model.group import Group
from common.model.node import Node
from coordinator.locks.names import Wanted
from coordinator.operations.base import operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    AllocatorOption,
    EarlyRelease,
    GroupArgument,
    TargetGroupsOption,
)
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.moves import plan_moves, to_groups
from coordinator.operations.planned_moves import (
    MovesPlan,
    PlannedMoves,
    plan_of,
    with_release,
)
from coordinator.state.config import Config


@operation("OP_GROUP_EVACUATE")
class EvacuateGroup(PlannedMoves, kw_only=True):
    """Move all instances of a group to other groups, each by a job of its own."""

    group_name: GroupArgument
    target_groups: TargetGroupsOption = ()
    iallocator: AllocatorOption = None
    early_release: EarlyRelease = False
    sequential: Annotated[
        bool, option("--sequential", help="all in one job, one by one", syntax=Syntax.FLAG)
    ] = False
    force_failover: Annotated[
        bool, option("--force-failover", help="stop what runs, and start it", syntax=Syntax.FLAG)
    ] = False

    def locks(self, config: Config, _: MovesPlan) -> Wanted:
        group = config.group(self.group_name)
        nodes = [node.uuid for node in _nodes_of(config, group)]
        return wanted(groups=[group.uuid], nodes=nodes)

    async def choose(self, cluster: Cluster) -> MovesPlan:
        config = cluster.config
        group = config.group(self.group_name)
        leaving = [i for node in _nodes_of(config, group) for i in config.instances_on(node.uuid)]
        question = to_groups(config, leaving, self.target_groups, group)
        if not leaving:
            return MovesPlan()
        allocators = allocators_for(config.cluster, RequestType.CHANGE_GROUP, self.iallocator)
        moves = await plan_moves(cluster, allocators, question)
        planned = plan_of(cluster, moves, stopping=self.force_failover)
        plan = with_release(planned, early=self.early_release)
        if not self.sequential:
            return plan
        return replace(plan, jobs=(tuple(order for job in plan.jobs for order in job),))


def _nodes_of(config: Config, group: Group) -> list[Node]:
    return [node for node in config.sorted_nodes() if node.group == group.uuid]
