"""Whether a node can have an address."""

from msgspec.structs import replace

from common.addresses import check_reachable_ip
from common.errors import Conflict, Unreachable
from common.model.node import Node
from common.noderpc.identity import Identity
from coordinator.operations.cluster_view import Cluster
from coordinator.state.config import Config


def check_free(config: Config, node: Node) -> None:
    """Refuse addresses of no machine, or of another node.

    Raises:
        InvalidRequest: it is no address.
        Conflict: names the node that has it.
    """
    check_reachable_ip(node.primary_ip, f"the address of {node.name}")
    if node.secondary_ip:
        check_reachable_ip(node.secondary_ip, f"the secondary address of {node.name}")
    for other in config.sorted_nodes():
        if other.uuid == node.uuid:
            continue
        if (other.primary_ip, other.port) == (node.primary_ip, node.port):
            raise Conflict(f"Node {other.name} has the address {node.primary_ip} already.")
        if node.secondary_ip and node.secondary_ip in (other.primary_ip, other.secondary_ip):
            raise Conflict(f"Node {other.name} has the address {node.secondary_ip} already.")


async def check_answers_at(
    cluster: Cluster, before: Node, after: Node, *, may_be_silent: bool
) -> None:
    """See whether a node answers at the addresses that it is to have, if it is asked at all.

    Args:
        cluster: as the job sees it.
        before: as it is.
        after: as it will be.
        may_be_silent: about the secondary one, which the master need not reach.

    Raises:
        Unreachable: it does not, or somebody else does.
    """
    if after.offline:
        return
    for address in {after.primary_ip, after.secondary_ip} - {"", before.primary_ip}:
        if address == before.secondary_ip and address != after.primary_ip:
            continue
        there = replace(after, primary_ip=address)
        try:
            await cluster.at(Identity, there).who()
        except Unreachable as error:
            told = f"{after.name} does not answer at {address}: {error}"
            if may_be_silent and address != after.primary_ip:
                cluster.log(f"{told} That is taken as it is, as asked.")
                continue
            raise Unreachable(
                f"{told} Nothing was changed. Give the machine that address first, beside the "
                "present one.",
                node=after.name,
            ) from error
