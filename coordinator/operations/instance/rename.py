"""Give an instance another name."""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.instance import Instance
from common.names import InstanceName, check_name
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.operations.steps.checks import find_guest, may_run
from coordinator.state.config import Config


class RenamePlan(Order):
    before: Instance
    after: Instance
    now: float


@operation("OP_INSTANCE_RENAME")
class RenameInstance(Operation[None, RenamePlan], kw_only=True):
    """Give an instance another name, also while it runs; nothing within it is changed."""

    instance_name: InstanceArgument
    new_name: Annotated[InstanceName, argument("its name from then on")]

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, new_name=self.new_name, nodes=[instance.primary_node])

    async def prepare(self, cluster: Cluster, _: None) -> RenamePlan:
        config = cluster.config
        check_name(self.new_name, "instance")
        before = config.instance(self.instance_name)
        if config.find_instance(self.new_name):
            raise Conflict(f"There is an instance {self.new_name} already.", instance=self.new_name)
        node = config.nodes[before.primary_node]
        # Guests, disks and taps go by UUID. What a node has written down is only said.
        if not node.offline and may_run(await find_guest(cluster, before, node)):
            cluster.log(
                f"{before.name} runs, and goes on: what {node.name} itself says of it, in its log "
                "and in the process list, has the old name until it is next started."
            )
        after = replace(before, name=self.new_name)
        return RenamePlan(before=before, after=after, now=cluster.now())

    def recipe(self, cluster: Cluster, plan: RenamePlan) -> Iterator[Step]:  # noqa: ARG002
        title = f"rename {plan.before.name} to {plan.after.name}"
        yield change(title, (plan.before,), (plan.after,), plan.now)

    def result(self, plan: RenamePlan) -> str:
        return plan.after.name
