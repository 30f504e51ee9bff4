"""Move all instances off a node."""

from typing import Annotated

from common.errors import InvalidRequest
from coordinator.iallocator.requests import EvacuationMode
from coordinator.locks.names import Wanted
from coordinator.operations.base import operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import AllocatorOption, NodeArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.moves import OffNodes, plan_moves
from coordinator.operations.planned_moves import MovesPlan, PlannedMoves, plan_of
from coordinator.state.config import Config


@operation("OP_NODE_EVACUATE")
class EvacuateNode(PlannedMoves, kw_only=True):
    """Move all instances off a node, each by a job of its own."""

    node_name: NodeArgument
    iallocator: AllocatorOption = None
    primary_only: Annotated[
        bool,
        option("-p", "--primary-only", help="only what runs there", syntax=Syntax.FLAG),
    ] = False
    secondary_only: Annotated[
        bool,
        option("-s", "--secondary-only", help="only what is mirrored there", syntax=Syntax.FLAG),
    ] = False
    ignore_soft_errors: Annotated[
        bool,
        option("--ignore-soft-errors", help="beyond limits that can bend", syntax=Syntax.FLAG),
    ] = False
    mode: Annotated[EvacuationMode | None, hidden("Ganeti's: primary-only, …, all")] = None

    def locks(self, config: Config, _: MovesPlan) -> Wanted:
        return wanted(nodes=[config.node(self.node_name).uuid])

    async def choose(self, cluster: Cluster) -> MovesPlan:
        config = cluster.config
        node = config.node(self.node_name)
        leaving = [] if self._mode is EvacuationMode.SECONDARY else config.instances_on(node.uuid)
        if not leaving:
            return MovesPlan()
        allocators = allocators_for(config.cluster, RequestType.EVACUATE, self.iallocator)
        question = OffNodes(tuple(instance.name for instance in leaving), self._mode)
        soft = self.ignore_soft_errors
        moves = await plan_moves(cluster, allocators, question, ignore_soft_errors=soft)
        return plan_of(cluster, moves)

    @property
    def _mode(self) -> EvacuationMode:
        if self.primary_only and self.secondary_only:
            raise InvalidRequest("Give --primary-only or --secondary-only, not both.")
        if self.primary_only:
            return EvacuationMode.PRIMARY
        return EvacuationMode.SECONDARY if self.secondary_only else self.mode or EvacuationMode.ALL
