"""Which key a node shows, for who knows it by one alone."""

from common.model.node import Node
from common.names import KeyId
from common.noderpc.identity import Identity
from coordinator.operations.cluster_view import Cluster


async def shown_key(cluster: Cluster, node: Node) -> KeyId:
    """Return the key that ``node`` shows, which it is asked for while it has two that count.

    A plan does not keep it: a node that is about to have another key may show that at any time.

    Raises:
        Unreachable: it does not answer.
    """
    if not node.next_key:
        return node.key
    who = await cluster.call(Identity, node).who()
    return who.key if node.is_known_by(who.key) else node.key
