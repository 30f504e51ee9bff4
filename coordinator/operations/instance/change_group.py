"""Move an instance to another group of nodes."""

from typing import Annotated

from common.errors import Conflict
from coordinator.locks.names import Wanted
from coordinator.operations.base import operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import AllocatorOption, InstanceArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.moves import ToGroups, plan_moves
from coordinator.operations.planned_moves import MovesPlan, PlannedMoves, plan_of
from coordinator.state.config import Config


@operation("OP_INSTANCE_CHANGE_GROUP")
class ChangeGroup(PlannedMoves, kw_only=True):
    """Move an instance to another group of nodes, by a job of its own."""

    instance_name: InstanceArgument
    target_groups: Annotated[
        tuple[str, ...],
        option("--to", help="groups it may go to, with commas (any other)", syntax=Syntax.LIST),
    ] = ()
    iallocator: AllocatorOption = None

    def locks(self, config: Config, _: MovesPlan) -> Wanted:
        return wanted(nodes=[config.instance(self.instance_name).primary_node])

    async def choose(self, cluster: Cluster) -> MovesPlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        home = config.nodes[instance.primary_node].group
        if len(config.groups) == 1:
            raise Conflict(
                f"There is one group of nodes only, {config.groups[home].name}, and no way yet to "
                f"make another: {instance.name} stays in it."
            )
        groups = [config.group(ref) for ref in self.target_groups]
        if any(group.uuid == home for group in groups):
            raise Conflict(
                f"Instance {instance.name} is in group {config.groups[home].name} already."
            )
        allocators = allocators_for(config.cluster, RequestType.CHANGE_GROUP, self.iallocator)
        question = ToGroups((instance.name,), tuple(group.uuid for group in groups))
        moves = await plan_moves(cluster, allocators, question)
        return plan_of(cluster, moves)
