"""Move all instances off a node."""

from collections.abc import Sequence
from typing import Annotated

from common.errors import InvalidRequest
from common.model.instance import Instance
from coordinator.iallocator.requests import EvacuationMode
from coordinator.locks.names import Wanted
from coordinator.operations.base import operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import AllocatorOption, EarlyRelease, NodeArgument
from coordinator.operations.follow_up import FollowUp
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.moves import OffNodes, plan_moves
from coordinator.operations.planned_moves import (
    MovesPlan,
    PlannedMoves,
    plan_of,
    with_release,
)
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
    remote_node: Annotated[
        str | None,
        option("-n", "--new-secondary", metavar="NODE", help="where all that is mirrored goes"),
    ] = None
    early_release: EarlyRelease = False
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
        if self.remote_node and config.node(self.remote_node) == node:
            raise InvalidRequest(f"What leaves {node.name} cannot go to {node.name}.")
        running = () if self._mode is EvacuationMode.SECONDARY else config.instances_on(node.uuid)
        following = (
            ()
            if self._mode is EvacuationMode.PRIMARY
            else config.instances_with_secondary(node.uuid)
        )
        leaving = (*running, *following)
        if not leaving:
            return MovesPlan()
        if self.remote_node:
            return self._to_one(config, running, following)
        allocators = allocators_for(config.cluster, RequestType.EVACUATE, self.iallocator)
        question = OffNodes(tuple(instance.name for instance in leaving), self._mode)
        soft = self.ignore_soft_errors
        moves = await plan_moves(cluster, allocators, question, ignore_soft_errors=soft)
        return with_release(plan_of(cluster, moves), early=self.early_release)

    async def prepare(self, cluster: Cluster, moves: MovesPlan) -> MovesPlan:
        if not moves.jobs:
            cluster.log(f"There is nothing on {self.node_name} that would have to move.")
        return moves

    def _to_one(
        self, config: Config, running: Sequence[Instance], following: Sequence[Instance]
    ) -> MovesPlan:
        """Plan that one node becomes the secondary one of all instances.

        Raises:
            InvalidRequest: some run here, and would have to move first.
        """
        if self.iallocator:
            raise InvalidRequest("Name a new secondary node or an allocator, not both.")
        if running:
            raise InvalidRequest(
                "A new secondary node is for what is mirrored here: add --secondary-only, and move "
                "what runs here with “gnt-node migrate”."
            )
        target = config.node(self.remote_node or "")
        orders = [
            {
                "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
                "instance_name": instance.name,
                "remote_node": target.name,
                "early_release": self.early_release,
            }
            for instance in following
        ]
        return MovesPlan(
            jobs=tuple((FollowUp(input=order),) for order in orders),
            lines=tuple(f"mirror {each.name} to {target.name}" for each in following),
        )

    @property
    def _mode(self) -> EvacuationMode:
        if self.primary_only and self.secondary_only:
            raise InvalidRequest("Give --primary-only or --secondary-only, not both.")
        if self.primary_only:
            return EvacuationMode.PRIMARY
        return EvacuationMode.SECONDARY if self.secondary_only else self.mode or EvacuationMode.ALL
