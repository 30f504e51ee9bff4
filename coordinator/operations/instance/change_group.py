"""Move an instance to another group of nodes."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Self

from msgspec.structs import replace

from common.errors import Conflict
from common.names import InstanceName
from coordinator.iallocator.document import ask_for_group
from coordinator.locks.names import Wanted
from coordinator.operations.base import Batches, Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.moving import MovesPlan, plan_of
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, hidden, option
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.moves import plan_moves
from coordinator.operations.placement.promises import Promise
from coordinator.operations.step import Step
from coordinator.state.config import Config


@operation("OP_INSTANCE_CHANGE_GROUP", command="gnt-instance change-group")
class ChangeGroup(Operation[MovesPlan], kw_only=True):
    """Move an instance to another group of nodes, by a job of its own."""

    instance_name: Annotated[InstanceName, argument("instance to move")]
    target_groups: Annotated[
        tuple[str, ...],
        option("--to", help="groups it may go to, with commas (any other)", syntax=Syntax.LIST),
    ] = ()
    iallocator: Annotated[
        str | None, option("-I", "--iallocator", help="have this allocator choose the node")
    ] = None
    early_release: Annotated[bool, hidden("has no meaning for disks without a mirror")] = False
    moves: Annotated[MovesPlan | None, hidden("what is to be done; the allocator says it")] = None

    def locks(self, config: Config) -> Wanted:
        return wanted(nodes=[config.instance(self.instance_name).primary_node])

    async def choose(self, cluster: Cluster) -> Self:
        config = cluster.config
        instance = config.instance(self.instance_name)
        home = config.nodes[instance.primary_node].group
        groups = [config.group(ref) for ref in self.target_groups]
        if any(group.uuid == home for group in groups):
            raise Conflict(
                f"Instance {instance.name} is in group {config.groups[home].name} already."
            )
        if len(config.groups) == 1:
            raise Conflict("There is one group only, so nothing can go to another.")
        allocators = allocators_for(config.cluster, RequestType.CHANGE_GROUP, self.iallocator)
        question = ask_for_group([instance.name], [group.uuid for group in groups])
        moves = await plan_moves(cluster, allocators, question)
        return replace(self, moves=plan_of(cluster, moves))

    async def prepare(self, cluster: Cluster) -> MovesPlan:  # noqa: ARG002
        if self.moves is None:
            raise Conflict(f"Nobody has said yet where {self.instance_name} goes.")
        return self.moves

    def promises(self, plan: MovesPlan) -> Iterable[Promise]:
        return plan.promises

    def recipe(self, cluster: Cluster, plan: MovesPlan) -> Iterator[Step]:  # noqa: ARG002
        yield from ()

    def jobs(self, plan: MovesPlan) -> Batches:
        return plan.jobs

    def result(self, plan: MovesPlan) -> dict[str, Any]:  # noqa: ARG002
        return {"jobs": []}

    def dry_result(
        self,
        cluster: Cluster,  # noqa: ARG002
        plan: MovesPlan,
        titles: list[str],
    ) -> list[str]:
        return [*titles, *plan.lines]
