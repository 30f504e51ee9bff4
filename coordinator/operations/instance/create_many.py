"""Have many new instances placed in one go, and make each in a job of its own."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from common.errors import InvalidRequest
from common.messages import Order
from common.names import InstanceName
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation, read_operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.place import Place, place_of
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
    """Where those instances go for which nobody has named a node."""

    of: dict[InstanceName, Place]


@operation("OP_INSTANCE_MULTI_ALLOC")
class CreateInstances(Operation[Places, CreateManyPlan], kw_only=True):
    """Create many instances: all are placed in one go, then each is made by a job of its own."""

    version = 2  # its choice has places; it had primary nodes

    instances: Annotated[
        tuple[dict[str, Any], ...], hidden("each the parameters of an OP_INSTANCE_CREATE")
    ] = ()
    iallocator: Annotated[str | None, hidden("name of the allocator")] = None

    @classmethod
    def understood(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Refuse what must not be stored, before it is: this list is, as a whole."""
        instances = given.get("instances")
        for told in instances if isinstance(instances, list | tuple) else ():
            confidential = ("osparams_private", "osparams_secret")
            if isinstance(told, dict) and any(told.get(name) for name in confidential):
                raise InvalidRequest(
                    "Instances with private or secret parameters are made one by one, with "
                    "gnt-instance add: a list of them would be stored with the job.",
                    instance=str(told.get("instance_name")),
                )
        return given

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
        node = cluster.config.node
        return Places(
            of={
                InstanceName(name): place_of([node(each).ref for each in nodes])
                for name, nodes in chosen.items()
            }
        )

    async def prepare(self, cluster: Cluster, places: Places) -> CreateManyPlan:
        orders: list[FollowUp] = []
        failed: list[str] = []
        promises: list[Promise] = []
        for order in self._orders(cluster.config):
            if place := places.of.get(order.instance_name):
                there = order.on(place)
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
            f"create {order['instance_name']} on {_nodes_of(order)}"
            for order in (each.input for each in plan.orders)
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
            if not order.instance_name:
                raise InvalidRequest(
                    f"Instance {number + 1} of the list has no name; what is reserved without one "
                    "is reserved by itself, with gnt-instance add --forthcoming."
                )
            if order.iallocator:
                raise InvalidRequest(
                    f"{order.instance_name} names an allocator of its own; name one for all."
                )
            order.check_words(config)
            if any(order.instance_name == other.instance_name for other in orders):
                raise InvalidRequest(f"The instance {order.instance_name} comes twice.")
            orders.append(order)
        return orders


def _nodes_of(order: Mapping[str, Any]) -> str:
    return ", ".join(filter(None, (order["pnode"], order["snode"])))


def _read(told: Mapping[str, Any], number: int) -> CreateInstance:
    try:
        order = read_operation({"mode": "create", **told, "OP_ID": CreateInstance.opcode})
    except InvalidRequest as error:
        raise InvalidRequest(f"Instance {number + 1} of the list: {error.message}") from error
    assert isinstance(order, CreateInstance)
    return order
