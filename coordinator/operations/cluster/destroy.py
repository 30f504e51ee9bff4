"""Dissolve the cluster, up to its last node."""

from collections.abc import Iterator

from common.errors import Conflict, GntError
from common.messages import Order
from common.model.node import Node
from coordinator.locks.names import Mode, Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.step import Step, act, record
from coordinator.state.config import Config
from coordinator.state.rows import Delete


class DestroyPlan(Order):
    nodes: tuple[Node, ...]  # all but the master
    master: str  # its name


@operation("OP_CLUSTER_DESTROY")
class DestroyCluster(Operation[DestroyPlan], kw_only=True):
    """Remove every node but the master; ``gnt-cluster destroy`` then ends that one, too."""

    def locks(self, config: Config) -> Wanted:  # noqa: ARG002
        return wanted(cluster=Mode.EXCLUSIVE)

    async def prepare(self, cluster: Cluster) -> DestroyPlan:
        config = cluster.config
        instances = config.sorted_instances()
        if instances:
            raise Conflict(
                f"The cluster still has {len(instances)} instances, such as "
                f"{instances[0].name}; remove them first."
            )
        others = [n for n in config.sorted_nodes() if n.uuid != config.cluster.master]
        for node in others:
            if not node.offline and await cluster.instances(node.uuid).guests():
                raise Conflict(f"Guests still run on {node.name}; stop them first.")
        return DestroyPlan(nodes=tuple(others), master=config.master().name)

    def recipe(self, cluster: Cluster, plan: DestroyPlan) -> Iterator[Step]:
        # All with one commit: removing them one by one could get stuck half-way, on a pool
        # whose majority is dead.
        yield record(
            "remove the other nodes from the configuration",
            lambda _: [Delete(node) for node in plan.nodes],
            point_of_no_return=True,
        )
        for node in plan.nodes:
            if not node.offline:
                yield _have_forget(cluster, node)

    def result(self, plan: DestroyPlan) -> str:
        return plan.master


def _have_forget(cluster: Cluster, node: Node) -> Step:
    async def forget() -> None:
        try:
            await cluster.identity(node).leave()
        except GntError as error:
            cluster.log(f"Node {node.name} could not be told: {error}")

    return act(f"have {node.name} forget the cluster", forget)
