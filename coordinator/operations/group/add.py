"""Make a group of nodes."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict
from common.messages import Order
from common.model.allocation_policy import AllocationPolicy
from common.model.group import Group
from common.model.parameters import edited_layers, edited_of_nodes
from common.model.policy import edited_layer
from common.names import GroupId, GroupName, check_name
from coordinator.checks.parameters import bad_parameters, check_parameters
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    AllocationPolicyOption,
    DiskParametersOption,
    NodeParametersOption,
    PolicyOption,
)
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.state.config import Config
from coordinator.state.rows import Put


class AddGroupPlan(Order):
    group: Group
    now: float


@operation("OP_GROUP_ADD")
class AddGroup(Operation[None, AddGroupPlan], kw_only=True):
    """Make a group of nodes, without any at first."""

    group_name: Annotated[GroupName, argument("name of the new group")]
    alloc_policy: AllocationPolicyOption = None
    ndparams: NodeParametersOption = None
    diskparams: DiskParametersOption = None
    ipolicy: PolicyOption = None

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- it is not there yet
        return wanted(groups_exclusive=[self.group_name])

    async def prepare(self, cluster: Cluster, _: None) -> AddGroupPlan:
        config, now = cluster.config, cluster.now()
        check_name(self.group_name, "group")
        if config.find_group(self.group_name):
            raise Conflict(f"There is a group {self.group_name} already.", group=self.group_name)
        group = Group(
            uuid=GroupId(cluster.new_uuid()),
            ctime=now,
            mtime=now,
            name=self.group_name,
            alloc_policy=self.alloc_policy or AllocationPolicy.PREFERRED,
            ndparams=edited_of_nodes({}, self.ndparams or {}),
            diskparams=edited_layers({}, self.diskparams or {}),
            ipolicy=edited_layer(None, self.ipolicy or {}),
        )
        known = bad_parameters(config)
        check_parameters(bad_parameters(config.apply([Put(group)])), known=known)
        return AddGroupPlan(group=group, now=now)

    def recipe(self, cluster: Cluster, plan: AddGroupPlan) -> Iterator[Step]:  # noqa: ARG002
        yield change(f"make the group {plan.group.name}", (), (plan.group,), plan.now)

    def result(self, plan: AddGroupPlan) -> str:
        return plan.group.uuid
