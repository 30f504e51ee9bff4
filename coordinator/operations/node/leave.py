"""What leaving a node live and leaving it stopped have in common: a job for each instance."""

from collections.abc import Iterable
from typing import Any

from common.errors import Conflict
from common.messages import Order
from common.model.instance import Instance
from common.names import NodeName
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.locking import wanted
from coordinator.state.config import Config


class LeavePlan(Order):
    """One job for each instance."""

    orders: tuple[FollowUp, ...]


class LeavingNode(Operation[None, LeavePlan], kw_only=True):
    """Has each instance of a node moved by a job of its own; changes nothing itself."""

    def left(self) -> NodeName:
        """Return the name of the node."""
        raise NotImplementedError

    def order(self, instance: Instance) -> dict[str, Any]:
        """Return the operation that moves an instance."""
        raise NotImplementedError

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(nodes=[config.node(self.left()).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> LeavePlan:
        config = cluster.config
        node = config.node(self.left())
        instances = config.instances_on(node.uuid)
        check_can_leave(instances)
        return LeavePlan(orders=tuple(FollowUp(input=self.order(each)) for each in instances))

    def jobs(self, plan: LeavePlan) -> FollowUps:
        return [[order] for order in plan.orders]

    def result(self, plan: LeavePlan) -> dict[str, Any]:  # noqa: ARG002
        return {"jobs": []}

    def dry_result(
        self,
        cluster: Cluster,  # noqa: ARG002
        plan: LeavePlan,
        titles: list[str],
    ) -> list[str]:
        return [*titles, *(f"move {order.input['instance_name']}" for order in plan.orders)]


def check_can_leave(instances: Iterable[Instance]) -> None:
    """Refuse a node from which an instance can go nowhere with its disks as they are.

    Raises:
        Conflict: names them.
    """
    alone = [i for i in instances if i.disk_template.traits.holders == 1]
    if reserved := [i.name for i in alone if i.forthcoming]:
        raise Conflict(
            f"The room of {', '.join(reserved)}, which are only reserved, is kept on that node "
            "alone; “gnt-instance failover -n NODE” keeps it on another one.",
            instances=reserved,
        )
    if stuck := [i.name for i in alone]:
        raise Conflict(
            f"The disks of {', '.join(stuck)} are on that node only; “gnt-instance move” copies "
            "them to another one.",
            instances=stuck,
        )
