"""Give nodes new certificates before the old ones expire."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import GntError, InvalidRequest
from common.messages import Order
from common.model.node import Node
from common.noderpc.identity import Identity
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.step import Step, act
from coordinator.state.config import Config


class RenewPlan(Order):
    nodes: tuple[Node, ...]  # the master last: with a new certificate its coordinator restarts


@operation("OP_CLUSTER_RENEW_CRYPTO")
class RenewCrypto(Operation[None, RenewPlan], kw_only=True):
    """Renew what nodes prove to each other with who they are; nothing is interrupted."""

    node_certificates: Annotated[
        bool,
        option("--new-node-certificates", help="for all nodes in service", syntax=Syntax.FLAG),
    ] = False

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(nodes=[node.uuid for node in config.sorted_nodes()])

    async def prepare(self, cluster: Cluster, _: None) -> RenewPlan:
        if not self.node_certificates:
            raise InvalidRequest("Say what to renew: --new-node-certificates.")
        config = cluster.config
        nodes = [node for node in config.sorted_nodes() if not node.offline]
        nodes.sort(key=lambda node: node.uuid == config.cluster.master)
        return RenewPlan(nodes=tuple(nodes))

    def recipe(self, cluster: Cluster, plan: RenewPlan) -> Iterator[Step]:
        for node in plan.nodes:
            yield _renew(cluster, node)


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
