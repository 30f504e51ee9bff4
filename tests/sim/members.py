"""Nodes of simulated clusters: how one is added, and to whom each listens."""

from common.names import KeyId, NodeName
from coordinator.operations.node.add import AddNode
from tests.sim.settings import DELTA
from tests.support.cluster import SimulatedCluster
from tests.support.image import ip_of


def keys_at(cluster: SimulatedCluster, name: str) -> dict[NodeName, KeyId]:
    """Return the keys of those whose orders a node carries out."""
    noded = cluster.machines[name].noded
    assert noded is not None
    return noded.candidates.roster.candidates


def listened_to(cluster: SimulatedCluster, name: str) -> list[str]:
    return sorted(keys_at(cluster, name))


def add_delta(cluster: SimulatedCluster, **fields: object) -> AddNode:
    """Return an order to add delta, a stranger, by the token that it shows."""
    token = str(cluster.machines["delta"].token)
    return AddNode(
        **{"node_name": DELTA, "primary_ip": ip_of("delta"), "token": token, **fields}  # type: ignore[arg-type]
    )
