"""Have many new instances placed in one go, and make each in a job of its own."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order
from common.model.node import NodeRef
from common.names import InstanceName
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation, read_operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.place import Place
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.many import place_many
from coordinator.operations.placement.promises import Promise
from coordinator.state.config import Config


class CreateManyPlan(Order, kw_only=True):
    """Orders for the instances that have a node, and the names of those that have none."""

    orders: tuple[FollowUp, ...]
    failed: tuple[str, ...]
    promises: tuple[Promise, ...]


class Places(Order):
    """The nodes that were chosen for those instances for which nobody has named one."""

    of: dict[InstanceName, NodeRef]


@operation("OP_INSTANCE_MULTI_ALLOC")
class CreateInstances(Operation[Places, CreateManyPlan], kw_only=True):
    """Create many instances: all are placed in one go, then each is made by a job of its own."""

    instances: Annotated[
        tuple[dict[str, Any], ...], hidden("each the parameters of an OP_INSTANCE_CREATE")
    ] = ()
    iallocator: Annotated[str | None, hidden("name of the allocator")] = None

    def locks(self, config: Config, _: Places) -> Wanted:  # noqa: ARG002
        return wanted()  # the promises keep the room; each job takes its own locks

    async def choose(self, cluster: Cluster) -> Places:
        orders = self._orders(cluster.config)
        wanted = [order.placement_request(cluster) for order in orders if not order.pnode]
        if not wanted:
            return Places(of={})
        allocators = allocators_for(
            cluster.config.cluster, RequestType.MULTI_ALLOCATE, self.iallocator
        )
        chosen = await place_many(cluster, allocators, wanted)
        config = cluster.config
        return Places(of={InstanceName(k): config.node(node).ref for k, node in chosen.items()})

    async def prepare(self, cluster: Cluster, places: Places) -> CreateManyPlan:
        orders: list[FollowUp] = []
        failed: list[str] = []
        promises: list[Promise] = []
        for order in self._orders(cluster.config):
            if node := places.of.get(order.instance_name):
                place = Place(node=node)
                there = replace(order, pnode=node.name)
                orders.append(FollowUp(input=there.to_input(), choice=place))
                promises += there.intends(cluster, place)
            elif order.pnode:
                orders.append(FollowUp(input=order.to_input()))
            else:
                failed.append(order.instance_name)
        return CreateManyPlan(orders=tuple(orders), failed=tuple(failed), promises=tuple(promises))

    def promises(self, plan: CreateManyPlan) -> Iterable[Promise]:
        return plan.promises

    def jobs(self, plan: CreateManyPlan) -> FollowUps:
        return [[order] for order in plan.orders]

    def result(self, plan: CreateManyPlan) -> dict[str, Any]:
        allocatable = [order.input["instance_name"] for order in plan.orders]
        return {"jobs": [], "allocatable": allocatable, "failed": list(plan.failed)}

    def dry_result(
        self,
        cluster: Cluster,  # noqa: ARG002
        plan: CreateManyPlan,
        titles: list[str],
    ) -> list[str]:
        made = [
            f"create {each.input['instance_name']} on {each.input['pnode']}" for each in plan.orders
        ]
        return [*titles, *made, *(f"find no node for {name}" for name in plan.failed)]

    def _orders(self, config: Config) -> list[CreateInstance]:
        """Read the instances and check what can be checked without asking a node.

        Raises:
            InvalidRequest: one makes no sense, or comes twice; says which.
        """
        if not self.instances:
            raise InvalidRequest("Say which instances are to be created.")
        orders: list[CreateInstance] = []
        for number, told in enumerate(self.instances):
            order = _read(told, number)
            order.check_words(config)
            if order.iallocator:
                raise InvalidRequest(
                    f"{order.instance_name} names an allocator of its own; name one for all."
                )
            if any(order.instance_name == other.instance_name for other in orders):
                raise InvalidRequest(f"The instance {order.instance_name} comes twice.")
            orders.append(order)
        return orders


def _read(told: Mapping[str, Any], number: int) -> CreateInstance:
    try:
        order = read_operation({"mode": "create", **told, "OP_ID": CreateInstance.opcode})
    except InvalidRequest as error:
        raise InvalidRequest(f"Instance {number + 1} of the list: {error.message}") from error
    assert isinstance(order, CreateInstance)
    return order
