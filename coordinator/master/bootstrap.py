"""Begin and end a cluster on its first and last node, where no coordinator can help."""

import asyncio
import time
from random import SystemRandom
from typing import Any

from msgspec.structs import replace

from common.addresses import check_reachable_ip
from common.errors import Conflict, GntError, InvalidRequest, Unreachable
from common.messages import Order, to_builtins
from common.model.cluster import Cluster
from common.model.commit import next_commit
from common.model.group import Group
from common.model.node import Node
from common.model.parameters import Layer
from common.model.policy import InstancePolicy
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.secret import AUTHORITY_CERTIFICATE, AUTHORITY_KEY, Secret
from common.model.settings import Settings
from common.model.stamp import Stamp
from common.names import (
    ClusterId,
    ClusterName,
    Epoch,
    GroupId,
    GroupName,
    NodeId,
    NodeName,
    check_name,
)
from common.noderpc.facts import Facts
from common.noderpc.identity import Identity, Join, Membership
from common.noderpc.mastership import Mastership
from common.noderpc.replica import Replica
from common.paths import Paths
from common.rpc.client import stub
from common.tls.certificate import read_pem
from common.tls.token import JoinToken, read_token
from coordinator.checks.parameters import bad_parameters, check_parameters
from coordinator.disks.volume_groups import check_has_group
from coordinator.master.authority import StateAuthority
from coordinator.master.confd import new_confd_key
from coordinator.master.local import calling, this_node
from coordinator.master.master import new_uuid
from coordinator.nodes.calls import Nodes
from coordinator.nodes.stranger import stranger
from coordinator.operations.cluster.default_allocators import edited_options
from coordinator.operations.node.roster import roster_of
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.operations.placement.allocators import find_program, search_path_of
from coordinator.state.rows import Put, settle
from coordinator.state.state import State, state_of

FIRST_EPOCH = Epoch(1)
LISTENER_LOOKS, LISTENER_PAUSE_S = 40, 0.1


class NewCluster(Order, kw_only=True):
    """What ``gnt-cluster init`` asks for."""

    name: ClusterName
    node: NodeName
    primary_ip: str
    secondary_ip: str = ""
    port: int = 1811
    group: GroupName = GroupName("default")
    default_iallocator: str = "hail"
    default_iallocator_params: dict[str, Any] = {}
    settings: Settings = Settings()
    hvparams: dict[str, Layer] = {}
    beparams: Layer = {}
    nicparams: Layer = {}
    ndparams: Layer = {}
    diskparams: dict[str, Layer] = {}
    ipolicy: InstancePolicy = InstancePolicy()


async def initialise(paths: Paths, wanted: NewCluster) -> None:
    """Make this node the master of a new cluster; the coordinator can be started after this.

    Undone if any part fails.

    Raises:
        Conflict: the node is in a cluster already.
        Unreachable: noded does not run here.
        InvalidRequest: a name or parameter does not fit.
        NotFound: there is no such allocator here.
    """
    check_name(wanted.name, "cluster")
    check_name(wanted.node, "node")
    check_name(wanted.group, "group")
    check_reachable_ip(wanted.primary_ip, "the address of this node")
    if wanted.secondary_ip:
        check_reachable_ip(wanted.secondary_ip, "the secondary address of this node")
    if wanted.default_iallocator:
        find_program(wanted.default_iallocator, search_path_of(paths))
    options = edited_options({}, wanted.default_iallocator_params)
    wanted = replace(wanted, default_iallocator_params=options)
    token = _token(paths)
    state = _first_state(wanted)
    check_has_group(state.config.cluster)
    node = state.config.sorted_nodes()[0]
    state = await _join(state, node, token)
    async with calling(paths) as nodes:
        here = this_node(paths, wanted.port)
        calls = nodes.with_epoch(FIRST_EPOCH)
        try:
            await _wait_for_member(nodes, here)
            await _check_address(nodes, state.config.sorted_nodes()[0])
            await _check_offered(state.config.cluster, node, calls.service(Facts, here))
            await nodes.service(Mastership, here).grant(epoch=FIRST_EPOCH, master=node.name)
            changes = tuple(settle(Put(item))[1] for item in state.items())
            commit = next_commit(Stamp(), FIRST_EPOCH, changes)
            await calls.service(Replica, here).append(commits=(commit,))
        except BaseException:
            await calls.service(Identity, here).leave()
            raise


async def _check_address(nodes: Nodes, node: Node) -> None:
    """See that the first node is where the others, and its own coordinator, will look for it.

    Raises:
        InvalidRequest: something else is there, or nothing.
    """
    try:
        await nodes.service(Mastership, node).vote()
    except GntError as error:
        raise InvalidRequest(
            f"This node is not reached at {node.primary_ip}, port {node.port}; give the address "
            f"that other nodes have for it with --address. {error.message}"
        ) from error


async def _check_offered(cluster: Cluster, node: Node, facts: Facts) -> None:
    """See that the first node has the volume group, and could run instances of all hypervisors.

    Raises:
        InvalidRequest: says what is wrong with the group, or names the hypervisors that its noded
            does not have, installed or not.
    """
    group = cluster.volume_group_name
    pools = (Pool(kind=PoolKind.VOLUME_GROUP, name=group),) if group else ()
    told = await facts.facts(storage=pools)
    for report in told.storage:
        if not report.usable:
            raise InvalidRequest(f"Node {node.name} cannot keep disks in {group}. {report.problem}")
    offered = told.hypervisors
    if missing := sorted({*cluster.enabled_hypervisors} - {*offered}):
        raise InvalidRequest(
            f"Node {node.name} offers {', '.join(sorted(offered))} and no hypervisor "
            f"{', '.join(missing)}; leave that out of --enabled-hypervisors."
        )


async def dissolve(paths: Paths, port: int) -> None:
    """Have this node, the last one, forget its cluster; the coordinator must be stopped.

    Raises:
        Conflict: the cluster still has other nodes.
        Unreachable: noded does not run here.
    """
    here = this_node(paths, port)
    async with calling(paths) as nodes:
        ballot = await nodes.service(Mastership, here).vote()
        await nodes.with_epoch(ballot.epoch).service(Identity, here).leave()


def check_in_no_cluster(paths: Paths) -> None:
    """Refuse a node that is in a cluster.

    Raises:
        Conflict: it is.
    """
    if (paths.identity / "membership.json").exists():
        raise Conflict("This node is in a cluster already; “gnt-cluster info” tells which.")


def _token(paths: Paths) -> JoinToken:
    check_in_no_cluster(paths)
    try:
        return read_token(paths.join_token.read_text(encoding="ascii"))
    except FileNotFoundError as error:
        raise Unreachable(
            "gantry-noded has not been started on this node yet; start it first."
        ) from error


def _first_state(wanted: NewCluster) -> State:
    from common.tls.authority import make_authority

    now, random = time.time(), SystemRandom()
    authority = make_authority(wanted.name, now=now)
    group = Group(uuid=GroupId(new_uuid(random)), ctime=now, mtime=now, name=wanted.group)
    node = Node(
        uuid=NodeId(new_uuid(random)),
        ctime=now,
        mtime=now,
        name=wanted.node,
        primary_ip=wanted.primary_ip,
        secondary_ip=wanted.secondary_ip,
        port=wanted.port,
        group=group.uuid,
        master_candidate=True,
    )
    cluster = Cluster(
        uuid=ClusterId(new_uuid(random)),
        ctime=now,
        mtime=now,
        name=wanted.name,
        master=node.uuid,
        default_iallocator=wanted.default_iallocator,
        default_iallocator_params=wanted.default_iallocator_params,
        hvparams=wanted.hvparams,
        beparams=wanted.beparams,
        nicparams=wanted.nicparams,
        ndparams=wanted.ndparams,
        diskparams=wanted.diskparams,
        ipolicy=wanted.ipolicy,
        **wanted.settings.given(),
    )
    secrets = (
        Secret(id=AUTHORITY_KEY, value=authority.key),
        Secret(id=AUTHORITY_CERTIFICATE, value=authority.certificate),
        new_confd_key(random),
    )
    state = state_of((cluster, group, node, *secrets), Stamp())
    check_parameters(bad_parameters(state.config))
    return state


async def _join(state: State, node: Node, token: JoinToken) -> State:
    """Have this node join; return the state with the key that it made for that."""
    cluster = state.config.cluster
    authority = StateAuthority(state, time.time)
    local = Node(
        uuid=node.uuid, name=node.name, primary_ip="127.0.0.1", port=node.port, group=node.group
    )
    join = stub(Join, stranger(local, token.fingerprint))
    proof = token.prove("join.request", {"node": node.name})
    request = await join.request(node=node.name, proof=proof)
    certificate = authority.certificate(request.csr, node)
    state = state.apply([Put(replace(node, key=read_pem(certificate).key))])
    membership = Membership(
        cluster=cluster.name,
        cluster_uuid=cluster.uuid,
        node=node.name,
        node_uuid=node.uuid,
        authority=authority.pem,
        certificate=certificate,
        roster=roster_of(state),
        ssconf=ssconf_files(state.config),
    )
    proof = token.prove("join.accept", {"membership": to_builtins(membership)})
    await join.accept(membership=membership, proof=proof)
    return state


async def _wait_for_member(nodes: Nodes, here: Node) -> None:
    """Wait until noded has changed its listener."""
    for _ in range(LISTENER_LOOKS):
        try:
            await nodes.service(Mastership, here).vote()
        except GntError:
            await asyncio.sleep(LISTENER_PAUSE_S)
        else:
            return
    await nodes.service(Mastership, here).vote()
