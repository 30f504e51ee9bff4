"""Reboot a node the hard way."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict
from common.messages import Order
from common.names import NodeName
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.step import Step, act, record
from coordinator.state.config import Config


class PowercyclePlan(Order):
    node: str  # UUID
    node_name: str


@operation("OP_NODE_POWERCYCLE", command="gnt-node powercycle")
class PowercycleNode(Operation[PowercyclePlan], kw_only=True):
    """Reboot a node at once, without a word to its guests or disks."""

    node_name: Annotated[NodeName, argument("node to reboot")]
    force: Annotated[
        bool, option("-f", "--force", help="even if it is the master", syntax=Syntax.FLAG)
    ] = False

    def locks(self, config: Config) -> Wanted:  # noqa: ARG002
        # None on the node: it may well be that a stuck job holding it is why this is done.
        return wanted()

    async def prepare(self, cluster: Cluster) -> PowercyclePlan:
        node = cluster.config.node(self.node_name)
        if node.uuid == cluster.config.cluster.master and not self.force:
            raise Conflict(f"Node {node.name} is the master; add --force if you mean it.")
        return PowercyclePlan(node=node.uuid, node_name=node.name)

    def recipe(self, cluster: Cluster, plan: PowercyclePlan) -> Iterator[Step]:
        # Done at most once: without this mark, a coordinator that resumes the job after
        # the reboot of its own node would reboot it again, and again.
        yield record(
            f"note that {plan.node_name} is being powercycled",
            lambda _: (),
            point_of_no_return=True,
        )
        yield act(f"powercycle {plan.node_name}", lambda: cluster.facts(plan.node).powercycle())
