"""Give nodes new certificates before the old ones expire, and programs and clusters other keys."""

from collections.abc import Iterator
from typing import Annotated, Any

from common.errors import Conflict, GntError, InvalidRequest
from common.messages import Order
from common.model.node import Node
from common.model.secret import CONFD_KEY, DOMAIN_KEY, NEXT_KEY, Secret
from common.names import NodeName
from common.noderpc.identity import Identity
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster.new_authority import check_all_in_service, replace_authority
from coordinator.operations.cluster.rest_certificate import check_wish, show_given, show_new
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.locking import wanted
from coordinator.operations.node.renew_key import RenewKey, check_has_other_master
from coordinator.operations.parameter import LOST, Syntax, option
from coordinator.operations.step import Step, act, record
from coordinator.state.config import Config
from coordinator.state.rows import Delete, Put
from coordinator.state.state import State

SHORTEST_SECRET = 20  # characters: what is signed with it may be seen, and be tried against guesses


class RenewPlan(Order):
    nodes: tuple[Node, ...]  # the master last: with a new certificate its coordinator restarts
    confd_hmac_key: bool = False
    authority: tuple[Node, ...] = ()  # the nodes that get another one, in the same order
    is_first: bool = False  # whether that is made now, and none that an attempt before has left
    now: float = 0.0
    rest: str = ""  # what clients of REST are shown: "given" or "new"
    trust: str = ""  # what becomes of that of other clusters: "given" or "ended"
    keys: tuple[NodeName, ...] = ()  # nodes that get another key, each in a job of its own


@operation("OP_CLUSTER_RENEW_CRYPTO")
class RenewCrypto(Operation[None, RenewPlan], kw_only=True):
    """Renew what nodes, programs that ask confd, and other clusters prove who they are with."""

    node_certificates: Annotated[
        bool,
        option("--new-node-certificates", help="for all nodes in service", syntax=Syntax.FLAG),
    ] = False
    new_cluster_certificate: Annotated[
        bool,
        option(
            "--new-cluster-certificate",
            help="another authority for all nodes, which have to be in service",
            syntax=Syntax.FLAG,
        ),
    ] = False
    node_keys: Annotated[
        bool,
        option(
            "--new-node-keys",
            help="for all nodes in service but the master: other keys, too, and the former ones "
            "are revoked",
            syntax=Syntax.FLAG,
        ),
    ] = False
    nodes: Annotated[
        tuple[str, ...],
        option(
            "--nodes",
            metavar="NODE,…",
            help="with --new-node-certificates or --new-node-keys: for these alone",
            syntax=Syntax.LIST,
        ),
    ] = ()
    confd_hmac_key: Annotated[
        bool,
        option("--new-confd-hmac-key", help="for programs that ask confd", syntax=Syntax.FLAG),
    ] = False
    cluster_domain_secret: Annotated[
        str,
        option(
            "--cluster-domain-secret",
            help="file with what clusters know that move instances to one another; “-” reads "
            "standard input",
            syntax=Syntax.SECRET_FILE,
            secret=True,
        ),
    ] = ""
    new_cluster_domain_secret: Annotated[
        bool,
        option(
            "--new-cluster-domain-secret",
            help="share it with no other cluster any more",
            syntax=Syntax.FLAG,
        ),
    ] = False

    new_rapi_certificate: Annotated[
        bool,
        option(
            "--new-rapi-certificate",
            help="have REST interfaces of all candidates show a new one",
            syntax=Syntax.FLAG,
        ),
    ] = False
    rapi_certificate: Annotated[
        str,
        option(
            "--rapi-certificate",
            help="PEM file of a key and its certificate, for REST interfaces of all candidates",
            syntax=Syntax.PEM_FILE,
            secret=True,
        ),
    ] = ""

    def is_for_root(self) -> bool:
        return bool(
            self.new_cluster_certificate or self.new_rapi_certificate or self.rapi_certificate
        )

    def locks(self, config: Config, _: None) -> Wanted:
        nodes = [node.uuid for node in config.sorted_nodes()]
        if self.new_cluster_certificate:
            return wanted(nodes_exclusive=nodes)
        return wanted(nodes=nodes)

    async def prepare(self, cluster: Cluster, _: None) -> RenewPlan:
        given, ended = self.cluster_domain_secret, self.new_cluster_domain_secret
        if self.new_cluster_certificate:
            check_all_in_service(cluster.config)
            if self.node_certificates or self.node_keys:
                raise InvalidRequest(
                    "With --new-cluster-certificate all nodes get certificates anyway; leave "
                    "--new-node-certificates out, and give --new-node-keys afterwards."
                )
        if self.node_certificates and self.node_keys:
            raise InvalidRequest(
                "With another key a node gets a certificate anyway: give --new-node-keys alone."
            )
        check_wish(self.rapi_certificate, cluster.now(), new=self.new_rapi_certificate)
        rest = "given" if self.rapi_certificate else "new" if self.new_rapi_certificate else ""
        of_nodes = self.node_certificates or self.node_keys
        wishes = (self.new_cluster_certificate, of_nodes, self.confd_hmac_key)
        if not (any(wishes) or given or ended or rest):
            raise InvalidRequest(
                "Say what to renew: --new-cluster-certificate, --new-node-certificates, "
                "--new-node-keys, --new-confd-hmac-key, --new-rapi-certificate, "
                "--rapi-certificate, --cluster-domain-secret or --new-cluster-domain-secret."
            )
        if given and ended:
            raise InvalidRequest("Share the secret that is in the file, or none: not both.")
        if given and len(given) < SHORTEST_SECRET:
            raise InvalidRequest(
                f"A secret that clusters share has at least {SHORTEST_SECRET} characters; "
                "“openssl rand -hex 32” makes one."
            )
        if self.nodes and not of_nodes:
            raise InvalidRequest("--nodes needs --new-node-certificates or --new-node-keys.")
        config = cluster.config
        named = {config.node(name).uuid for name in self.nodes}
        if away := [config.nodes[uuid].name for uuid in named if config.nodes[uuid].offline]:
            raise Conflict(f"Nodes that are offline cannot be asked: {', '.join(sorted(away))}.")
        nodes = [
            node
            for node in config.sorted_nodes()
            if of_nodes and not node.offline and (not named or node.uuid in named)
        ]
        nodes.sort(key=lambda node: node.uuid == config.cluster.master)
        every = sorted(config.sorted_nodes(), key=lambda node: node.uuid == config.cluster.master)
        if self.node_keys:
            nodes = _but_master(cluster, nodes, is_named=bool(named))
        return RenewPlan(
            nodes=() if self.node_keys else tuple(nodes),
            keys=tuple(node.name for node in nodes) if self.node_keys else (),
            authority=tuple(every) if self.new_cluster_certificate else (),
            is_first=NEXT_KEY not in cluster.state.secrets,
            now=cluster.now(),
            confd_hmac_key=self.confd_hmac_key,
            rest=rest,
            trust="given" if given else "ended" if ended else "",
        )

    def recipe(self, cluster: Cluster, plan: RenewPlan) -> Iterator[Step]:
        if plan.confd_hmac_key:
            title = "forget the key of confd, for the master to make another"
            yield _forget(title, CONFD_KEY)
        if plan.rest == "given":
            yield show_given(lambda: self.rapi_certificate)
        elif plan.rest == "new":
            yield show_new(plan.now)
        if plan.trust == "given":
            title = "keep the secret that other clusters know"
            yield record(title, self._with_domain_secret, point_of_no_return=True)
        elif plan.trust == "ended":
            title = "forget the secret that other clusters know"
            yield _forget(title, DOMAIN_KEY)
        if plan.authority:
            yield from replace_authority(cluster, plan.authority, plan.now, is_first=plan.is_first)
        for node in plan.nodes:
            yield _renew(cluster, node)

    def jobs(self, plan: RenewPlan) -> FollowUps:
        return tuple((FollowUp(input=RenewKey(node_name=n).to_input()),) for n in plan.keys)

    def result(self, plan: RenewPlan) -> dict[str, Any] | None:
        return {"jobs": []} if plan.keys else None

    def _with_domain_secret(self, _: State) -> Iterator[Put]:
        if self.cluster_domain_secret == LOST:
            raise Conflict(
                "The secret was never stored, and the coordinator that was told it has ended. "
                "Give the command again."
            )
        yield Put(Secret(id=DOMAIN_KEY, value=self.cluster_domain_secret))


def _but_master(cluster: Cluster, nodes: list[Node], *, is_named: bool) -> list[Node]:
    """Leave out the master, if nobody has named it.

    Raises:
        Conflict: it was named, or is the only node.
    """
    others = [node for node in nodes if node.uuid != cluster.config.cluster.master]
    if is_named or not others:
        for node in nodes:
            check_has_other_master(cluster.config, node)
    elif len(others) < len(nodes):
        cluster.log(
            f"Node {cluster.config.master().name} is the master and keeps its key; when another "
            "candidate is the master, give the command again with --nodes."
        )
    return others


def _forget(title: str, secret: str) -> Step:
    """Forget a secret for good: no journal has it."""

    def edit(state: State) -> list[Delete]:
        return [Delete(state.secrets[secret])] if secret in state.secrets else []

    return record(title, edit, point_of_no_return=True)


def _renew(cluster: Cluster, node: Node) -> Step:
    """Renew one certificate; a node that does not answer keeps nobody else from theirs."""

    async def renew() -> None:
        identity = cluster.call(Identity, node)
        try:
            request = await identity.request()
            authority = cluster.authority
            await identity.renew(
                certificate=authority.certificate(request.csr, node), authority=authority.trusted
            )
        except GntError as error:
            cluster.log(f"Node {node.name} keeps its old certificate: {error}")

    return act(f"renew the certificate of {node.name}", renew)
