"""Give a node another name.

Nodes are known by UUID and key; a name is what certificates, and the list of who may give orders,
have besides. So the node is good for both names first, then it is recorded under the new one, and
then it forgets the old one: at each moment it can be reached by the name that is recorded.
"""

from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.node import Node
from common.names import NodeName, check_name
from common.noderpc.identity import Identity
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NodeArgument
from coordinator.operations.locking import wanted
from coordinator.operations.node.pool import change_node
from coordinator.operations.node.roster import tell_roster
from coordinator.operations.parameter import argument
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import check_online
from coordinator.state.config import Config


class RenameNodePlan(Order):
    before: Node
    after: Node


@operation("OP_NODE_RENAME")
class RenameNode(Operation[None, RenameNodePlan], kw_only=True):
    """Give a node another name, while its instances run."""

    node_name: NodeArgument
    new_name: Annotated[NodeName, argument("its name from then on")]

    def is_for_root(self) -> bool:
        return True  # who takes orders goes by names

    def locks(self, config: Config, _: None) -> Wanted:
        node = config.node(self.node_name)
        others = [n.uuid for n in config.sorted_nodes()] if node.master_candidate else []
        return wanted(nodes_exclusive=[node.uuid, self.new_name, *others])

    async def prepare(self, cluster: Cluster, _: None) -> RenameNodePlan:
        config = cluster.config
        check_name(self.new_name, "node")
        node = config.node(self.node_name)
        if config.find_node(self.new_name):
            raise Conflict(f"There is a node {self.new_name} already.", node=self.new_name)
        if node.uuid == config.cluster.master:
            raise Conflict(
                f"Node {node.name} is the master, which all nodes obey by its name; move the "
                "mastership first, with “gnt-cluster master-failover” on another candidate.",
                node=node.name,
            )
        check_online(node)
        await cluster.call(Identity, node).who()
        after = replace(node, name=self.new_name, mtime=cluster.now(), serial_no=node.serial_no + 1)
        return RenameNodePlan(before=node, after=after)

    def recipe(self, cluster: Cluster, plan: RenameNodePlan) -> Iterator[Step]:
        before, after = plan.before, plan.after
        is_candidate = before.master_candidate
        # A candidate is none meanwhile: nobody is to count its vote under two names. It stays
        # announced, so that going back is to make it one again.
        old = replace(before, master_candidate=False, announced=is_candidate)
        new = replace(after, master_candidate=False, announced=is_candidate)
        if is_candidate:
            yield change_node(before, old, f"count {old.name} among the candidates no more")
        yield act(
            f"have {old.name} be known as {new.name}, too",
            lambda: _certify(cluster, old, also=new.name),
            undo=lambda: _certify(cluster, old),
        )
        yield change_node(old, new, f"record that {old.name} is {new.name}")
        yield act(
            f"have {new.name} go by this name alone",
            lambda: _go_by(cluster, new),
            undo=lambda: _go_by_both(cluster, old, new),
        )
        if is_candidate:
            yield tell_roster(cluster, f"have all nodes listen to {new.name}")
            yield change_node(new, after, f"make {new.name} a master candidate again")

    def result(self, plan: RenameNodePlan) -> str:
        return plan.after.name


async def _go_by(cluster: Cluster, node: Node) -> None:
    await cluster.call(Identity, node).rename(node=node.name)
    await _certify(cluster, node)


async def _go_by_both(cluster: Cluster, old: Node, new: Node) -> None:
    await _certify(cluster, new, also=old.name)
    await cluster.call(Identity, new).rename(node=old.name)


async def _certify(cluster: Cluster, node: Node, *, also: NodeName | None = None) -> None:
    """Have a node use a certificate for its name, and for another one if that is given."""
    identity = cluster.call(Identity, node)
    request = await identity.request()
    certificate = cluster.authority.certificate(request.csr, node, also=also)
    await identity.renew(certificate=certificate)
