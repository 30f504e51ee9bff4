"""Take a new node into the cluster."""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.addresses import check_reachable_ip
from common.errors import Conflict, InvalidRequest, Unreachable
from common.messages import Order, to_builtins
from common.model.group import Group
from common.model.node import Node
from common.model.parameters import edited
from common.names import Epoch, GroupId, KeyId, NodeId, NodeName, check_name
from common.noderpc.identity import Identity, Membership
from common.noderpc.mastership import Mastership
from common.tls.token import read_token
from coordinator.checks.parameters import bad_of_node, check_parameters
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import MasterCapable, SecondaryAddress, VmCapable
from coordinator.operations.locking import wanted
from coordinator.operations.node.pool import promote
from coordinator.operations.node.roster import roster_of
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.operations.parameter import LOST, Syntax, argument, option
from coordinator.operations.step import Step, act
from coordinator.state.config import Config
from coordinator.state.rows import Delete, Put


class AddPlan(Order, kw_only=True):
    node: Node


@operation("OP_NODE_ADD")
class AddNode(Operation[None, AddPlan], kw_only=True):
    """Take a node into the cluster, by the token that it shows (“gantry join-token”)."""

    node_name: Annotated[NodeName, argument("name of the new node")]
    primary_ip: Annotated[
        str,
        option(
            "--address",
            "--primary-ip",
            help="its address; it must be reachable now",
            syntax=Syntax.ADDRESS,
        ),
    ]
    token: Annotated[
        str,
        option(
            "--token-file",
            help="file with its join token; “-” reads standard input",
            syntax=Syntax.JOIN_TOKEN,
            secret=True,
        ),
    ]
    port: Annotated[int, option("--port", help="of its noded")] = 1811
    secondary_ip: SecondaryAddress = None
    group: Annotated[
        str | None, option("-g", "--node-group", help="needed where there are several")
    ] = None
    master_capable: MasterCapable = None
    vm_capable: VmCapable = None
    ndparams: Annotated[
        dict[str, Any] | None,
        option("--node-parameters", help="NAME=VALUE,…", syntax=Syntax.KEYVAL),
    ] = None

    def is_for_root(self) -> bool:
        return True

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(nodes_exclusive=[self.node_name], groups=[self._group(config).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> AddPlan:
        config = cluster.config
        check_name(self.node_name, "node")
        check_reachable_ip(self.primary_ip, f"the address of {self.node_name}")
        if self.secondary_ip:
            check_reachable_ip(self.secondary_ip, f"the secondary address of {self.node_name}")
        read_token(self.token)
        if config.find_node(self.node_name):
            raise Conflict(f"There is a node {self.node_name} already.", node=self.node_name)
        for other in config.sorted_nodes():
            if (other.primary_ip, other.port) == (self.primary_ip, self.port):
                raise Conflict(f"Node {other.name} has the address {self.primary_ip} already.")
        now = cluster.now()
        capable = self.master_capable is not False
        room_in_pool = len(config.candidates()) < config.cluster.candidate_pool_size
        group = self._group(config)
        node = Node(
            uuid=NodeId(cluster.new_uuid()),
            ctime=now,
            mtime=now,
            name=self.node_name,
            primary_ip=self.primary_ip,
            port=self.port,
            secondary_ip=self.secondary_ip or "",
            group=group.uuid,
            master_candidate=capable and room_in_pool,
            master_capable=capable,
            vm_capable=self.vm_capable is not False,
            ndparams=edited({}, self.ndparams or {}),
        )
        check_parameters(bad_of_node(config, node))
        await self._check_joinable(cluster)
        return AddPlan(node=node)

    def recipe(self, cluster: Cluster, plan: AddPlan) -> Iterator[Step]:
        name = plan.node.name
        yield act(
            f"have {name} join",
            lambda: _join(cluster, plan.node, self.token),
            undo=lambda: _leave(cluster, plan.node),
        )
        yield act(f"have {name} obey this master", lambda: _bind(cluster, plan.node))
        regular = replace(plan.node, master_candidate=False)
        yield _record(cluster, regular)
        if plan.node.master_candidate:
            yield from promote(cluster, regular, plan.node)

    def result(self, plan: AddPlan) -> str:
        return plan.node.uuid

    def _group(self, config: Config) -> Group:
        if self.group:
            return config.group(self.group)
        first, *others = config.sorted_groups()
        if others:
            names = ", ".join(group.name for group in (first, *others))
            raise InvalidRequest(f"Say with -g to which group {self.node_name} comes: {names}.")
        return first

    async def _check_joinable(self, cluster: Cluster) -> None:
        """See whether the node is there and has this token, before anything is done to it."""
        token = read_token(self.token)
        there = Node(
            uuid=NodeId(""),
            name=self.node_name,
            primary_ip=self.primary_ip,
            port=self.port,
            group=GroupId(""),
        )
        proof = token.prove("join.check", {"node": self.node_name})
        try:
            await cluster.stranger(there, token.fingerprint).check(node=self.node_name, proof=proof)
        except Unreachable as error:
            raise Unreachable(f"{error} Nothing was done to it.", **error.detail) from error


def _record(cluster: Cluster, node: Node) -> Step:
    """Put the node into the configuration, with the key that it made when it joined."""
    learnt: list[KeyId] = []

    async def learn() -> None:
        who = await cluster.call(Identity, node).who()
        if who.node_uuid != node.uuid:  # told to it alone when it joined
            raise Conflict(
                f"Who answers as {node.name} is not the node that has just joined. Look who has "
                f"the address {node.primary_ip}, and whether somebody has the authority's key.",
                node=node.name,
            )
        learnt[:] = [who.key]

    return Step(
        f"add {node.name} to the configuration",
        do=learn,
        edit=lambda _: [Put(replace(node, key=learnt[0]))],
        unedit=lambda _: [Delete(node)],
    )


async def _join(cluster: Cluster, node: Node, text: str) -> None:
    """Have the node join; ``text`` is its token, lost if another coordinator was told it."""
    if await cluster.is_member(node):
        return  # it joined, and the coordinator died before it could write that down
    if text == LOST:
        raise Conflict(
            f"The join token of {node.name} is never stored, and the coordinator that was told it "
            "has ended before the node had joined. Give the command again.",
            node=node.name,
        )
    token, config = read_token(text), cluster.config
    stranger = cluster.stranger(node, token.fingerprint)
    proof = token.prove("join.request", {"node": node.name})
    request = await stranger.request(node=node.name, proof=proof)
    membership = Membership(
        cluster=config.cluster.name,
        cluster_uuid=config.cluster.uuid,
        node=node.name,
        node_uuid=node.uuid,
        authority=cluster.authority.pem,
        certificate=cluster.authority.certificate(request.csr, node),
        roster=roster_of(cluster.state),
        ssconf=ssconf_files(config),
    )
    proof = token.prove("join.accept", {"membership": to_builtins(membership)})
    await stranger.accept(membership=membership, proof=proof)


async def _bind(cluster: Cluster, node: Node) -> None:
    await cluster.wait_for_member(node)
    epoch = Epoch(cluster.state.stamp.epoch)
    master = cluster.config.master().name
    await cluster.call(Mastership, node).grant(epoch=epoch, master=master)


async def _leave(cluster: Cluster, node: Node) -> None:
    if await cluster.is_member(node):
        await cluster.call(Identity, node).leave()
