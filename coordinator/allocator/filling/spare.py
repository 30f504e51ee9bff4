"""Whether every node could still be emptied while a cluster is being filled."""

from collections.abc import Sequence

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.books.ledger import Ledger
from coordinator.allocator.books.state import State, residents_of
from coordinator.allocator.placing.capacity import Redundancy
from coordinator.allocator.placing.evacuation import can_evacuate
from coordinator.allocator.snapshot import Instance


def all_can_be_emptied(
    ledger: Ledger, nodes: Ints, demand: Instance, *, scored: Ints | None = None
) -> bool:
    """Whether each of ``nodes`` could be, as things stand.

    Args:
        ledger: the books.
        nodes: rising indices.
        demand: any instance.
        scored: nodes whose score decides where instances go meanwhile; None for all.
    """
    scored = np.arange(ledger.size) if scored is None else scored
    if Redundancy(ledger, scored, demand, emptied=nodes).is_hopeless:
        return False
    accounts = ledger.accounts
    outlook = ledger.freight.judge(ledger, nodes, accounts.memory, accounts.disk)
    doubtful = nodes[~outlook.safe[nodes]]
    return all(
        can_evacuate(State(ledger), node, residents_of(ledger, node), scored)
        for node in doubtful.tolist()
    )


class Spare:
    """Where one more instance leaves each of some nodes such that it could be emptied."""

    def __init__(self, ledger: Ledger, nodes: Ints, demand: Instance) -> None:
        self._redundancy = Redundancy(ledger, np.arange(ledger.size), demand, emptied=nodes)

    def remains(self, nodes: tuple[int, ...]) -> bool:
        """Whether it does with the instance on ``nodes``, primary first."""
        redundancy = self._redundancy
        if redundancy.is_hopeless:
            return False
        first, others = np.array(nodes[:1]), np.array(nodes[1:])
        if len(others):
            mirrored = bool(redundancy.pairs(first, others)[0, 0])
        else:
            mirrored = bool(redundancy.primaries(first)[0])
        return mirrored and redundancy.holds(nodes)

    def remains_anywhere(self, options: Sequence[tuple[int, ...]]) -> bool:
        """Whether it does with the instance on any of these nodes."""
        return not self._redundancy.is_hopeless and any(self.remains(nodes) for nodes in options)
