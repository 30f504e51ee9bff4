"""Give a group another name."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.group import Group
from common.names import GroupName, check_name
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import GroupArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.state.config import Config


class RenameGroupPlan(Order):
    before: Group
    after: Group
    now: float


@operation("OP_GROUP_RENAME")
class RenameGroup(Operation[None, RenameGroupPlan], kw_only=True):
    """Give a group another name."""

    group_name: GroupArgument
    new_name: Annotated[GroupName, argument("its name from then on")]

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(groups_exclusive=[config.group(self.group_name).uuid, self.new_name])

    async def prepare(self, cluster: Cluster, _: None) -> RenameGroupPlan:
        check_name(self.new_name, "group")
        before = cluster.config.group(self.group_name)
        if cluster.config.find_group(self.new_name):
            raise Conflict(f"There is a group {self.new_name} already.", group=self.new_name)
        after = replace(before, name=self.new_name)
        return RenameGroupPlan(before=before, after=after, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: RenameGroupPlan) -> Iterator[Step]:  # noqa: ARG002
        title = f"rename the group {plan.before.name} to {plan.after.name}"
        yield change(title, (plan.before,), (plan.after,), plan.now)

    def result(self, plan: RenameGroupPlan) -> str:
        return plan.after.name
