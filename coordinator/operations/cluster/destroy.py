"""Dissolve the cluster, up to its last node."""

from collections.abc import Iterator

from common.errors import Conflict, GntError
from common.messages import Order
from common.model.node import Node
from common.noderpc.identity import Identity
from common.noderpc.instances import Instances
from coordinator.locks.names import Mode, Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.node.remove import remove_node
from coordinator.operations.step import Step, act
from coordinator.state.config import Config


class DestroyPlan(Order):
    nodes: tuple[Node, ...]  # all but the master
    master: str  # its name


@operation("OP_CLUSTER_DESTROY")
class DestroyCluster(Operation[None, DestroyPlan], kw_only=True):
    """Remove every node but the master; ``gnt-cluster destroy`` then ends that one, too."""

    def is_for_root(self) -> bool:
        return True

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002
        return wanted(cluster=Mode.EXCLUSIVE)

    async def prepare(self, cluster: Cluster, _: None) -> DestroyPlan:
        config = cluster.config
        instances = config.sorted_instances()
        if instances:
            raise Conflict(
                f"The cluster still has instances ({len(instances)}), such as "
                f"{instances[0].name}; remove them first."
            )
        if disk := next(iter(config.detached_disks()), None):
            raise Conflict(
                f"The cluster still has the disk {disk.uuid}, which belongs to no instance; "
                f"“gnt-cluster remove-disk {disk.uuid}” deletes it.",
                disk=disk.uuid,
            )
        others = [n for n in config.sorted_nodes() if n.uuid != config.cluster.master]
        guests = await cluster.each(
            {n.uuid: cluster.call(Instances, n).guests() for n in others if not n.offline}
        )
        for node in others:
            if isinstance(found := guests.get(node.uuid), tuple) and found:
                raise Conflict(f"Guests still run on {node.name}; stop them first.")
        # Who does not answer leaves first: the pool of candidates shrinks by one a commit, and
        # must not come down to a majority of dead ones on the way.
        silent = [node for node in others if not isinstance(guests.get(node.uuid), tuple)]
        rest = [node for node in others if node not in silent]
        return DestroyPlan(nodes=(*silent, *rest), master=config.master().name)

    def recipe(self, cluster: Cluster, plan: DestroyPlan) -> Iterator[Step]:
        for node in plan.nodes:
            yield remove_node(node)
        for node in plan.nodes:
            if not node.offline:
                yield _have_forget(cluster, node)

    def result(self, plan: DestroyPlan) -> str:
        return plan.master


def _have_forget(cluster: Cluster, node: Node) -> Step:
    async def forget() -> None:
        try:
            await cluster.call(Identity, node).leave()
        except GntError as error:
            cluster.log(f"Node {node.name} could not be told: {error}")

    return act(f"have {node.name} forget the cluster", forget)
