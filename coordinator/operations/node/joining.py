"""How a machine with a join token becomes a node: the steps that new and returning nodes share."""

from collections.abc import Iterator

from common.errors import Conflict, Unreachable
from common.messages import to_builtins
from common.model.node import Node
from common.names import Epoch, GroupId, NodeId
from common.noderpc.identity import Identity, Join, Membership, Request
from common.noderpc.mastership import Mastership
from common.tls.certificate import read_pem
from common.tls.token import read_token
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.node.roster import roster_of
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.operations.parameter import LOST
from coordinator.operations.step import Step, act

SOON_S = 5.0  # in which most machines have made a key


async def check_joinable(cluster: Cluster, node: Node, text: str) -> None:
    """See whether the machine is there and has this token, before anything is done to it.

    Args:
        cluster: that it is to join.
        node: with the name, address and port that it is to have.
        text: the token.
    """
    token = read_token(text)
    there = Node(
        uuid=NodeId(""),
        name=node.name,
        primary_ip=node.primary_ip,
        port=node.port,
        group=GroupId(""),
    )
    proof = token.prove("join.check", {"node": node.name})
    try:
        await cluster.stranger(there, token.fingerprint).check(node=node.name, proof=proof)
    except Unreachable as error:
        raise Unreachable(f"{error} Nothing was done to it.", **error.detail) from error


def join(cluster: Cluster, node: Node, token: str) -> Iterator[Step]:
    """Have a machine be ``node`` and obey this master; ``token`` is LOST to who resumes the job."""
    yield act(
        f"have {node.name} join",
        lambda: _join(cluster, node, token),
        undo=lambda: _leave(cluster, node),
    )
    yield act(f"have {node.name} obey this master", lambda: _bind(cluster, node))


async def certificate_for(cluster: Cluster, node: Node, text: str) -> str:
    """Have the machine make its key, unless it has, and issue the certificate for that; PEM.

    Raises:
        Conflict: the coordinator that was told the token has ended; or the key is revoked.
    """
    if text == LOST:
        raise Conflict(
            f"The join token of {node.name} is never stored, and the coordinator that was told it "
            "has ended before the node had joined. Give the command again.",
            node=node.name,
        )
    token = read_token(text)
    proof = token.prove("join.request", {"node": node.name})
    request = await _request(cluster, node, cluster.stranger(node, token.fingerprint), proof)
    certificate = cluster.authority.certificate(request.csr, node)
    if read_pem(certificate).key in cluster.config.revoked:
        raise Conflict(
            f"The machine that is to be {node.name} has a key that is revoked, perhaps since its "
            "disk is a copy of an earlier one. Stop gantry-noded there, delete /var/lib/gantry, "
            "start it, and give the command again with its new token.",
            node=node.name,
        )
    return certificate


async def _request(cluster: Cluster, node: Node, stranger: Join, proof: str) -> Request:
    """Have a machine make its key; if that takes long, say what is waited for."""
    made: list[Request] = []

    async def ask() -> None:
        made.append(await stranger.request(node=node.name, proof=proof))

    if not await cluster.happens(ask(), within_s=SOON_S):
        cluster.log(f"{node.name} makes its key, which a slow machine takes up to a minute for.")
        await ask()  # once more: there is one key, however often it is asked for
    return made[-1]


async def _join(cluster: Cluster, node: Node, text: str) -> None:
    if await cluster.is_member(node):
        return  # it joined, and the coordinator died before it could write that down
    certificate = await certificate_for(cluster, node, text)
    token, config = read_token(text), cluster.config
    membership = Membership(
        cluster=config.cluster.name,
        cluster_uuid=config.cluster.uuid,
        node=node.name,
        node_uuid=node.uuid,
        authority=cluster.authority.trusted,
        certificate=certificate,
        roster=roster_of(cluster.state),
        ssconf=ssconf_files(config),
    )
    proof = token.prove("join.accept", {"membership": to_builtins(membership)})
    await cluster.stranger(node, token.fingerprint).accept(membership=membership, proof=proof)


async def _bind(cluster: Cluster, node: Node) -> None:
    await cluster.wait_for_member(node)
    epoch = Epoch(cluster.state.stamp.epoch)
    master = cluster.config.master().name
    await cluster.call(Mastership, node).grant(epoch=epoch, master=master)


async def _leave(cluster: Cluster, node: Node) -> None:
    if await cluster.is_member(node):
        await cluster.call(Identity, node).leave()
