"""Which nodes could not be emptied as things stand: counted, and tried where that does not tell.

There is one answer for placements, fills and checks of health: mirrored instances, which have one
place to go, are a matter of arithmetic; for the others counting (see ``evacuation_load``) settles
almost all nodes, and only the rest are simulated (see ``evacuation``).
"""

from collections.abc import Iterator

import numpy as np

from coordinator.allocator.allocation.evacuation import can_evacuate
from coordinator.allocator.arrays import Bools, Ints, among
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import State, residents_of


def stuck_nodes(model: ClusterModel, nodes: Ints, scored: Ints) -> Iterator[int]:
    """Yield those of ``nodes`` that could not be emptied, those that counting tells first.

    Args:
        model: the cluster.
        nodes: rising indices.
        scored: nodes whose score decides where instances go while a node is emptied.
    """
    lost = set(lost_nodes(model, nodes).tolist())
    yield from sorted(lost)
    resources = model.resources
    outlook = model.evacuation_load.judge(model.group_of, nodes, resources.memory, resources.disk)
    for node in nodes[~outlook.safe[nodes]].tolist():
        residents = residents_of(model, node)
        if node not in lost and not can_evacuate(State(model), node, residents, scored):
            yield node


def lost_nodes(model: ClusterModel, nodes: Ints) -> Ints:
    """Those of ``nodes`` that for sure cannot be emptied; one may be told more than once."""
    resources, peers = model.resources, model.peers
    stuck = (
        (resources.memory[peers.secondary] <= peers.arriving)
        | (resources.disk[peers.secondary] <= 0)
        | (~resources.offline[peers.primary] & (resources.disk[peers.primary] <= 0))
        | _forbidden_failovers(model)
        | _lacking_spindles(model)
    ) & among(peers.primary, nodes, model.size)
    outlook = model.evacuation_load.judge(model.group_of, nodes, resources.memory, resources.disk)
    return np.concatenate((peers.primary[stuck], np.flatnonzero(outlook.lost)))


def _lacking_spindles(model: ClusterModel) -> Bools:
    """Per pair of peers: whether exclusive storage has no spindles for a failover."""
    peers, resources = model.peers, model.resources
    lacking = np.zeros(len(peers.key), dtype=np.bool_)
    if model.exclusive.any():
        for end in (peers.primary, peers.secondary):
            lacking |= resources.exclusive[end] & (
                peers.unknown | (resources.free_spindles[end] < 0)
            )
    return lacking


def _forbidden_failovers(model: ClusterModel) -> Bools:
    """Per pair of peers: whether migration tags forbid the way to the secondary."""
    peers = model.peers
    forbidden = np.zeros(len(peers.key), dtype=np.bool_)
    for pair in np.flatnonzero(model.tied[peers.primary]).tolist():
        primary, secondary = peers.primary[pair], peers.secondary[pair]
        forbidden[pair] = not model.may_migrate(int(primary), [int(secondary)])[0]
    return forbidden
