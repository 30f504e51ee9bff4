"""Give a node another key, while its guests run and everybody goes on knowing it.

The node makes the key, which never leaves it. Both keys count before the node shows the other one,
and until that is written down, so at each moment whoever it answers, or orders something, knows it.
Connections that are open go on.
"""

from collections.abc import Iterator
from dataclasses import replace as replaced

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.messages import Order
from common.model.node import Node
from common.names import KeyId
from common.noderpc.identity import Identity
from common.tls.certificate import read_pem
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NodeArgument
from coordinator.operations.locking import wanted
from coordinator.operations.node.revoking import check_room, revoke
from coordinator.operations.node.roster import tell_roster
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.checks import check_online
from coordinator.state.config import Config
from coordinator.state.rows import Put, Update
from coordinator.state.state import State


class RenewKeyPlan(Order):
    """``node`` has the key that is to be replaced."""

    node: Node


@operation("OP_NODE_RENEW_KEY")
class RenewKey(Operation[None, RenewKeyPlan], kw_only=True):
    """Give a node another key and a certificate for it; the former ones are revoked."""

    node_name: NodeArgument

    def locks(self, config: Config, _: None) -> Wanted:
        # Who copies disks from node to node compares the key that was known when that began.
        return wanted(nodes_exclusive=[config.node(self.node_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> RenewKeyPlan:
        node = cluster.config.node(self.node_name)
        check_has_other_master(cluster.config, node)
        check_online(node)
        check_room(cluster.config)
        if not node.key:
            raise Conflict(
                f"The key that {node.name} has now is not known yet, so nobody could be told that "
                "it is out; it is learnt as soon as the node answers.",
                node=node.name,
            )
        await cluster.call(Identity, node).who()
        return RenewKeyPlan(node=node)

    def recipe(self, cluster: Cluster, plan: RenewKeyPlan) -> Iterator[Step]:
        node = plan.node
        yield _make_key(cluster, node)
        # From here on both count, which harms nobody, whatever becomes of the node.
        both = tell_roster(cluster, f"have all nodes know {node.name} by either key")
        yield replaced(both, point_of_no_return=True)
        yield act(f"have {node.name} use its other key", lambda: _use_key(cluster, node))
        yield record(
            f"revoke the former key of {node.name}", lambda state: _without_former(state, node)
        )
        yield tell_roster(cluster, f"tell all nodes that the former key of {node.name} is out")


def check_has_other_master(config: Config, node: Node) -> None:
    """Refuse to give the master another key.

    Raises:
        Conflict: it is the master.
    """
    if node.uuid == config.cluster.master:
        raise Conflict(
            f"Node {node.name} is the master, whose coordinator goes on with the key that it was "
            "started with; move the mastership first, with “gnt-cluster master-failover” on "
            "another candidate.",
            node=node.name,
        )


def _make_key(cluster: Cluster, node: Node) -> Step:
    made: list[KeyId] = []

    async def make() -> None:
        made[:] = [read_pem(await _certificate(cluster, node)).key]
        if made[0] == node.key:
            raise NodeFailure(f"Node {node.name} was asked for another key, and has its former.")

    def edit(state: State) -> Iterator[Put]:
        yield Put(replace(state.config.nodes[node.uuid], next_key=made[0]))

    def unedit(state: State) -> Iterator[Put]:
        yield Put(replace(state.config.nodes[node.uuid], next_key=node.next_key))

    return Step(f"have {node.name} make another key", do=make, edit=edit, unedit=unedit)


async def _use_key(cluster: Cluster, node: Node) -> None:
    check_has_other_master(cluster.config, node)  # it may have taken over since this was planned
    certificate = await _certificate(cluster, node)
    await cluster.call(Identity, node).renew(
        certificate=certificate, authority=cluster.authority.trusted
    )


async def _certificate(cluster: Cluster, node: Node) -> str:
    """Issue a certificate for the key that takes the place of the one in the plan."""
    request = await cluster.call(Identity, node).request(instead_of=node.key)
    return cluster.authority.certificate(request.csr, node)


def _without_former(state: State, node: Node) -> Iterator[Update]:
    present = state.config.nodes[node.uuid]
    if present.next_key:
        serial_no = present.serial_no + 1
        yield Put(replace(present, key=present.next_key, next_key=KeyId(""), serial_no=serial_no))
        yield from revoke(state.config, node.key)
