"""Remove a group without nodes."""

from collections.abc import Iterator

from common.errors import Conflict
from common.messages import Order
from common.model.group import Group
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import GroupArgument
from coordinator.operations.locking import wanted
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.state.config import Config


class RemoveGroupPlan(Order):
    group: Group
    now: float


@operation("OP_GROUP_REMOVE")
class RemoveGroup(Operation[None, RemoveGroupPlan], kw_only=True):
    """Remove a group that has no nodes any more."""

    group_name: GroupArgument

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(groups_exclusive=[config.group(self.group_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> RemoveGroupPlan:
        config = cluster.config
        group = config.group(self.group_name)
        if nodes := [node.name for node in config.sorted_nodes() if node.group == group.uuid]:
            raise Conflict(
                f"Group {group.name} still has nodes ({', '.join(nodes)}); give them to another "
                "with “gnt-group assign-nodes” first.",
                group=group.name,
            )
        if len(config.groups) == 1:
            raise Conflict(f"Group {group.name} is the only one; a cluster has at least one.")
        return RemoveGroupPlan(group=group, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: RemoveGroupPlan) -> Iterator[Step]:  # noqa: ARG002
        yield change(f"remove the group {plan.group.name}", (plan.group,), (), plan.now)
