"""Which nodes could not be emptied as things stand: counted, and tried where that does not tell.

There is one answer for placements, fills and checks of health: mirrored instances, which have one
place to go, are a matter of arithmetic; for the others counting (see ``freight``) settles almost
all nodes, and only the rest are simulated (see ``evacuation``).
"""

from collections.abc import Iterator

import numpy as np

from coordinator.allocator.arrays import Bools, Ints, among
from coordinator.allocator.books.ledger import Ledger
from coordinator.allocator.books.state import State, residents_of
from coordinator.allocator.placing.evacuation import can_evacuate


def stuck_nodes(ledger: Ledger, nodes: Ints, scored: Ints) -> Iterator[int]:
    """Yield those of ``nodes`` that could not be emptied, those that counting tells first.

    Args:
        ledger: the books.
        nodes: rising indices.
        scored: nodes whose score decides where instances go while a node is emptied.
    """
    lost = set(lost_nodes(ledger, nodes).tolist())
    yield from sorted(lost)
    accounts = ledger.accounts
    outlook = ledger.freight.judge(ledger, nodes, accounts.memory, accounts.disk)
    for node in nodes[~outlook.safe[nodes]].tolist():
        residents = residents_of(ledger, node)
        if node not in lost and not can_evacuate(State(ledger), node, residents, scored):
            yield node


def lost_nodes(ledger: Ledger, nodes: Ints) -> Ints:
    """Those of ``nodes`` that for sure cannot be emptied; one may be told more than once."""
    accounts, peers = ledger.accounts, ledger.peers
    stuck = (
        (accounts.memory[peers.secondary] <= peers.arriving)
        | (accounts.disk[peers.secondary] <= 0)
        | (~accounts.offline[peers.primary] & (accounts.disk[peers.primary] <= 0))
        | _forbidden_failovers(ledger)
        | _lacking_spindles(ledger)
    ) & among(peers.primary, nodes, ledger.size)
    outlook = ledger.freight.judge(ledger, nodes, accounts.memory, accounts.disk)
    return np.concatenate((peers.primary[stuck], np.flatnonzero(outlook.lost)))


def _lacking_spindles(ledger: Ledger) -> Bools:
    """Per pair of peers: whether exclusive storage has no spindles for a failover."""
    peers, accounts = ledger.peers, ledger.accounts
    lacking = np.zeros(len(peers.key), dtype=np.bool_)
    if ledger.exclusive.any():
        for end in (peers.primary, peers.secondary):
            lacking |= accounts.exclusive[end] & (peers.unknown | (accounts.free_spindles[end] < 0))
    return lacking


def _forbidden_failovers(ledger: Ledger) -> Bools:
    """Per pair of peers: whether migration tags forbid the way to the secondary."""
    peers = ledger.peers
    forbidden = np.zeros(len(peers.key), dtype=np.bool_)
    for pair in np.flatnonzero(ledger.tied[peers.primary]).tolist():
        primary, secondary = peers.primary[pair], peers.secondary[pair]
        forbidden[pair] = not ledger.may_migrate(int(primary), [int(secondary)])[0]
    return forbidden
