"""Take a node out of the cluster."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict, GntError
from common.messages import Order
from common.model.node import Node
from common.names import NodeName
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step, act, record
from coordinator.state.config import Config
from coordinator.state.rows import Delete


class RemovePlan(Order):
    node: Node


@operation("OP_NODE_REMOVE", command="gnt-node remove")
class RemoveNode(Operation[RemovePlan], kw_only=True):
    """Take a node without instances out of the cluster; it forgets all about it."""

    node_name: Annotated[NodeName, argument("node to remove")]

    def locks(self, config: Config) -> Wanted:
        return wanted(nodes_exclusive=[config.node(self.node_name).uuid])

    async def prepare(self, cluster: Cluster) -> RemovePlan:
        config = cluster.config
        node = config.node(self.node_name)
        if node.uuid == config.cluster.master:
            raise Conflict(
                f"Node {node.name} is the master; move the mastership first, or destroy the "
                "cluster with “gnt-cluster destroy”."
            )
        instances = config.instances_on(node.uuid)
        if instances:
            raise Conflict(
                f"Node {node.name} still has instances ({instances[0].name}"
                f"{f' and {len(instances) - 1} more' if len(instances) > 1 else ''}); "
                "move or remove them first."
            )
        if not node.offline and await cluster.instances(node.uuid).guests():
            raise Conflict(
                f"Guests run on {node.name} that are not in the configuration; "
                "“gnt-cluster verify” names them."
            )
        return RemovePlan(node=node)

    def recipe(self, cluster: Cluster, plan: RemovePlan) -> Iterator[Step]:
        name = plan.node.name
        yield record(
            f"remove {name} from the configuration",
            lambda _: [Delete(plan.node)],
            point_of_no_return=True,
        )
        if not plan.node.offline:
            yield act(f"have {name} forget the cluster", lambda: _forget(cluster, plan.node))


async def _forget(cluster: Cluster, node: Node) -> None:
    """Tell a node that it is out; one that cannot be told is out all the same."""
    try:
        await cluster.identity(node).leave()
    except GntError as error:
        cluster.log(
            f"Node {node.name} could not be told that it has been removed ({error}); before it "
            "joins a cluster again, stop gantry-noded there and delete /var/lib/gantry."
        )
