"""Give nodes new certificates before the old ones expire, and programs that ask another key."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import GntError, InvalidRequest
from common.messages import Order
from common.model.node import Node
from common.model.secret import CONFD_KEY
from common.noderpc.identity import Identity
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.step import Step, act, record
from coordinator.state.config import Config
from coordinator.state.rows import Delete
from coordinator.state.state import State


class RenewPlan(Order):
    nodes: tuple[Node, ...]  # the master last: with a new certificate its coordinator restarts
    confd_hmac_key: bool = False


@operation("OP_CLUSTER_RENEW_CRYPTO")
class RenewCrypto(Operation[None, RenewPlan], kw_only=True):
    """Renew what nodes, and programs that ask confd, prove who they are with."""

    node_certificates: Annotated[
        bool,
        option("--new-node-certificates", help="for all nodes in service", syntax=Syntax.FLAG),
    ] = False
    confd_hmac_key: Annotated[
        bool,
        option("--new-confd-hmac-key", help="for programs that ask confd", syntax=Syntax.FLAG),
    ] = False

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(nodes=[node.uuid for node in config.sorted_nodes()])

    async def prepare(self, cluster: Cluster, _: None) -> RenewPlan:
        if not self.node_certificates and not self.confd_hmac_key:
            raise InvalidRequest(
                "Say what to renew: --new-node-certificates or --new-confd-hmac-key."
            )
        config = cluster.config
        nodes = [
            node for node in config.sorted_nodes() if self.node_certificates and not node.offline
        ]
        nodes.sort(key=lambda node: node.uuid == config.cluster.master)
        return RenewPlan(nodes=tuple(nodes), confd_hmac_key=self.confd_hmac_key)

    def recipe(self, cluster: Cluster, plan: RenewPlan) -> Iterator[Step]:
        if plan.confd_hmac_key:
            yield record("forget the key of confd, for the master to make another", _without_key)
        for node in plan.nodes:
            yield _renew(cluster, node)


def _without_key(state: State) -> Iterator[Delete]:
    if CONFD_KEY in state.secrets:
        yield Delete(state.secrets[CONFD_KEY])


def _renew(cluster: Cluster, node: Node) -> Step:
    """Renew one certificate; a node that does not answer keeps nobody else from theirs."""

    async def renew() -> None:
        identity = cluster.call(Identity, node)
        try:
            request = await identity.request()
            await identity.renew(certificate=cluster.authority.certificate(request.csr, node))
        except GntError as error:
            cluster.log(f"Node {node.name} keeps its old certificate: {error}")

    return act(f"renew the certificate of {node.name}", renew)
