"""Take a node out of the cluster."""

from collections.abc import Iterable, Iterator

from common.errors import Conflict, GntError
from common.messages import Order
from common.model.node import Node
from common.noderpc.identity import Identity
from common.noderpc.instances import Instances
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NodeArgument
from coordinator.operations.locking import wanted
from coordinator.operations.node.pool import check_master_stays, promote, some, successors
from coordinator.operations.node.revoking import check_room, revoke
from coordinator.operations.node.roster import tell_roster
from coordinator.operations.step import Step, act, record
from coordinator.state.config import Config
from coordinator.state.rows import Delete, Update
from coordinator.state.state import State


class RemovePlan(Order):
    node: Node
    before: tuple[Node, ...] = ()  # those promoted for it
    after: tuple[Node, ...] = ()


@operation("OP_NODE_REMOVE")
class RemoveNode(Operation[None, RemovePlan], kw_only=True):
    """Take a node without instances out of the cluster; it forgets all about it."""

    node_name: NodeArgument

    def is_for_root(self) -> bool:
        return True  # it may make another node a candidate

    def locks(self, config: Config, _: None) -> Wanted:
        node = config.node(self.node_name)
        others = [n.uuid for n in config.sorted_nodes()] if node.master_candidate else []
        return wanted(nodes_exclusive=[node.uuid, *others])

    async def prepare(self, cluster: Cluster, _: None) -> RemovePlan:
        config = cluster.config
        node = config.node(self.node_name)
        check_room(config, is_removal=True)
        if node.uuid == config.cluster.master:
            raise Conflict(
                f"Node {node.name} is the master; move the mastership first, or destroy the "
                "cluster with “gnt-cluster destroy”."
            )
        instances = (*config.instances_on(node.uuid), *config.instances_with_secondary(node.uuid))
        if instances:
            raise Conflict(
                f"Node {node.name} still has instances ({some(instances)}); move or remove them "
                "first."
            )
        if disks := [d.uuid for d in config.detached_disks() if node.uuid in d.nodes]:
            raise Conflict(
                f"Node {node.name} still has the disk {disks[0]}, which belongs to no instance; "
                "“gnt-instance modify --disk attach:uuid=…” gives it to one that is there, and "
                f"“gnt-cluster remove-disk {disks[0]}” deletes it."
            )
        if not node.offline and await cluster.call(Instances, node).guests():
            raise Conflict(
                f"Guests run on {node.name} that are not in the configuration; "
                "“gnt-cluster verify” names them."
            )
        after = successors(config, node, cluster.now())
        before = tuple(config.nodes[each.uuid] for each in after)
        return RemovePlan(node=node, before=before, after=after)

    def recipe(self, cluster: Cluster, plan: RemovePlan) -> Iterator[Step]:
        # The pool changes by one node a commit, and is filled up before it loses a node.
        for before, after in zip(plan.before, plan.after, strict=True):
            yield from promote(cluster, before, after)
        name = plan.node.name
        yield remove_node(plan.node)
        yield tell_roster(cluster, f"tell all nodes that {name} is out")
        if not plan.node.offline:
            yield act(f"have {name} forget the cluster", lambda: _forget(cluster, plan.node))


def remove_node(node: Node) -> Step:
    """Record that a node has left the cluster, and that its certificate is worth nothing."""

    def edit(state: State) -> Iterable[Update]:
        check_master_stays(state.config, node, None)
        return [Delete(node), *revoke(state.config, node.key, node.next_key)]

    return record(f"remove {node.name} from the configuration", edit, point_of_no_return=True)


async def _forget(cluster: Cluster, node: Node) -> None:
    """Tell a node that it is out; one that cannot be told is out all the same."""
    try:
        await cluster.call(Identity, node).leave()
    except GntError as error:
        cluster.log(
            f"Node {node.name} could not be told that it has been removed ({error}). Its "
            "certificate is worth nothing any more; before it joins a cluster again, stop "
            "gantry-noded there, delete /var/lib/gantry and start it."
        )
