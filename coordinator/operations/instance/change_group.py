"""Move an instance to another group of nodes."""

from typing import ClassVar

from coordinator.locks.names import Wanted
from coordinator.operations.base import operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    AllocatorOption,
    EarlyRelease,
    InstanceArgument,
    TargetGroupsOption,
)
from coordinator.operations.locking import wanted
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.moves import plan_moves, to_groups
from coordinator.operations.planned_moves import (
    MovesPlan,
    PlannedMoves,
    plan_of,
    with_release,
)
from coordinator.state.config import Config


@operation("OP_INSTANCE_CHANGE_GROUP")
class ChangeGroup(PlannedMoves, kw_only=True):
    """Move an instance to another group of nodes, by a job of its own."""

    takes_reservations: ClassVar[bool] = True

    instance_name: InstanceArgument
    target_groups: TargetGroupsOption = ()
    iallocator: AllocatorOption = None
    early_release: EarlyRelease = False

    def locks(self, config: Config, _: MovesPlan) -> Wanted:
        return wanted(nodes=[config.instance(self.instance_name).primary_node])

    async def choose(self, cluster: Cluster) -> MovesPlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        home = config.groups[config.nodes[instance.primary_node].group]
        question = to_groups(config, [instance], self.target_groups, home)
        allocators = allocators_for(config.cluster, RequestType.CHANGE_GROUP, self.iallocator)
        moves = await plan_moves(cluster, allocators, question)
        return with_release(plan_of(cluster, moves), early=self.early_release)
