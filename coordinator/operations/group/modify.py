"""Change a group's parameters."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order, to_builtins
from common.model.group import Group
from common.model.parameters import edited_layers, edited_of_nodes
from common.model.policy import edited_layer
from coordinator.checks.parameters import bad_parameters, check_parameters
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    AllocationPolicyOption,
    DiskParametersOption,
    GroupArgument,
    NodeParametersOption,
    PolicyOption,
)
from coordinator.operations.locking import wanted
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change, differing
from coordinator.state.config import Config
from coordinator.state.rows import Put


class ModifyGroupPlan(Order):
    before: Group
    after: Group
    now: float


@operation("OP_GROUP_SET_PARAMS")
class ModifyGroup(Operation[None, ModifyGroupPlan], kw_only=True):
    """Change whether instances go to a group, and the parameters of what is in it."""

    group_name: GroupArgument
    alloc_policy: AllocationPolicyOption = None
    ndparams: NodeParametersOption = None
    diskparams: DiskParametersOption = None
    ipolicy: PolicyOption = None

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(groups_exclusive=[config.group(self.group_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> ModifyGroupPlan:
        config = cluster.config
        before = config.group(self.group_name)
        after = replace(
            before,
            alloc_policy=self.alloc_policy or before.alloc_policy,
            ndparams=edited_of_nodes(before.ndparams, self.ndparams or {}),
            diskparams=edited_layers(before.diskparams, self.diskparams or {}),
            ipolicy=edited_layer(before.ipolicy, self.ipolicy or {}),
        )
        if not differing(before, after):
            raise InvalidRequest(f"Nothing to change on group {before.name}.")
        known = bad_parameters(config)
        check_parameters(bad_parameters(config.apply([Put(after)])), known=known)
        return ModifyGroupPlan(before=before, after=after, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: ModifyGroupPlan) -> Iterator[Step]:  # noqa: ARG002
        title = f"record the change of the group {plan.before.name}"
        yield change(title, (plan.before,), (plan.after,), plan.now)

    def result(self, plan: ModifyGroupPlan) -> list[list[Any]]:
        changes: dict[str, Any] = to_builtins(differing(plan.before, plan.after))
        return [[name, str(value)] for name, value in changes.items()]
