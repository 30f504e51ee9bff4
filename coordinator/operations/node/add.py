"""Take a new node into the cluster."""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.group import Group
from common.model.node import Node
from common.model.parameters import edited_of_nodes
from common.names import KeyId, NodeId, NodeName, check_name
from common.noderpc.identity import Identity
from coordinator.checks.parameters import bad_of_node, check_parameters
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import MasterCapable, SecondaryAddress, VmCapable
from coordinator.operations.locking import wanted
from coordinator.operations.node.addresses import check_free
from coordinator.operations.node.distribution import give_files
from coordinator.operations.node.joining import check_joinable, join
from coordinator.operations.node.pool import promote
from coordinator.operations.node.readd import check_is_as_before, come_back, returning
from coordinator.operations.node.revoking import check_room
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.step import Step
from coordinator.state.config import Config
from coordinator.state.rows import Delete, Put


class AddPlan(Order, kw_only=True):
    """``before`` is what a node was that comes back; None: it is new."""

    node: Node
    before: Node | None = None
    files: tuple[str, ...] = ()  # that all nodes have


@operation("OP_NODE_ADD")
class AddNode(Operation[None, AddPlan], kw_only=True):
    """Take a node into the cluster, by the token that it shows (“gantry join-token”)."""

    node_name: Annotated[NodeName, argument("name of the new node")]
    token: Annotated[
        str,
        option(
            "--token-file",
            help="file with its join token; “-” reads standard input",
            syntax=Syntax.JOIN_TOKEN,
            secret=True,
        ),
    ]
    primary_ip: Annotated[
        str | None,
        option(
            "--address",
            "--primary-ip",
            help="its address, at which it is reachable now; needed but for --readd",
            syntax=Syntax.ADDRESS,
        ),
    ] = None
    readd: Annotated[
        bool,
        option(
            "--readd",
            help="it was a node, and has lost all it knew: it comes back with its name, its "
            "address and its instances",
            syntax=Syntax.FLAG,
        ),
    ] = False
    port: Annotated[int | None, option("--port", help="of its noded; else 1811")] = None
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
        node = config.find_node(self.node_name)
        if not self.readd or node is None:
            return wanted(nodes_exclusive=[self.node_name], groups=[self._group(config).uuid])
        return wanted(nodes_exclusive=[each.uuid for each in config.sorted_nodes()])  # the pool

    async def prepare(self, cluster: Cluster, _: None) -> AddPlan:
        check_name(self.node_name, "node")
        if self.readd:
            check_room(cluster.config, is_removal=True)
        plan = self._returning(cluster) if self.readd else self._new(cluster)
        await check_joinable(cluster, plan.node, self.token)
        return replace(plan, files=cluster.config.cluster.distributed_files)

    def recipe(self, cluster: Cluster, plan: AddPlan) -> Iterator[Step]:
        if plan.before is not None:
            yield from come_back(cluster, plan.before, plan.node, self.token)
            yield from give_files(cluster, plan.node, plan.files)
            return
        yield from join(cluster, plan.node, self.token)
        regular = replace(plan.node, master_candidate=False)
        yield _record(cluster, regular)
        if plan.node.master_candidate:
            yield from promote(cluster, regular, plan.node)
        yield from give_files(cluster, plan.node, plan.files)

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

    def _returning(self, cluster: Cluster) -> AddPlan:
        config = cluster.config
        before = config.node(self.node_name)
        given = {
            "primary address": (before.primary_ip, self.primary_ip),
            "port": (before.port, self.port),
            "secondary address": (before.secondary_ip, self.secondary_ip),
            "group": (config.groups[before.group].name, self.group),
            "master_capable": (before.master_capable, self.master_capable),
            "vm_capable": (before.vm_capable, self.vm_capable),
            "ndparams": (
                before.ndparams,
                edited_of_nodes(before.ndparams, self.ndparams) if self.ndparams else None,
            ),
        }
        check_is_as_before(before, given)
        after = returning(config, self.node_name, cluster.now())
        return AddPlan(node=after, before=before)

    def _new(self, cluster: Cluster) -> AddPlan:
        config, port = cluster.config, self.port or 1811
        if self.primary_ip is None:
            raise InvalidRequest(f"Say with --primary-ip at which address {self.node_name} is.")
        if config.find_node(self.node_name):
            raise Conflict(
                f"There is a node {self.node_name} already; if that machine has lost all it knew, "
                "--readd has it come back.",
                node=self.node_name,
            )
        now = cluster.now()
        capable = self.master_capable is not False
        room_in_pool = len(config.candidates()) < config.cluster.candidate_pool_size
        node = Node(
            uuid=NodeId(cluster.new_uuid()),
            ctime=now,
            mtime=now,
            name=self.node_name,
            primary_ip=self.primary_ip,
            port=port,
            secondary_ip=self.secondary_ip or "",
            group=self._group(config).uuid,
            master_candidate=capable and room_in_pool,
            master_capable=capable,
            vm_capable=self.vm_capable is not False,
            ndparams=edited_of_nodes({}, self.ndparams or {}),
        )
        check_free(config, node)
        check_parameters(bad_of_node(config, node))
        return AddPlan(node=node)


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
