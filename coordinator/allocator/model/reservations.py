"""What nodes keep free for the failure of their peers, while instances move."""

from collections.abc import Mapping

import numpy as np

from coordinator.allocator.arrays import Bools, Ints, among
from coordinator.allocator.model.cluster_model import Peers


class Reservations:
    """Memory by secondary and primary: that of the model, and what has changed since.

    Nodes are indices. Only nodes that were touched have figures of their own here, so that a
    copy costs little.
    """

    def __init__(
        self, peers: Peers, size: int, changed: Mapping[int, Mapping[int, int]] | None = None
    ) -> None:
        self._peers, self._size = peers, size
        self._changed = {node: dict(held) for node, held in (changed or {}).items()}

    def copy(self) -> "Reservations":
        return Reservations(self._peers, self._size, self._changed)

    def of(self, node: int) -> dict[int, int]:
        """By primary: what ``node`` keeps free; to be changed in place."""
        if node not in self._changed:
            here = np.flatnonzero(self._peers.secondary == node)
            primaries, amounts = self._peers.primary[here], self._peers.promised[here]
            self._changed[node] = dict(zip(primaries.tolist(), amounts.tolist(), strict=True))
        return self._changed[node]

    def towards(self, primary: int, nodes: Ints) -> Ints:
        """Per node: what it keeps free for ``primary``."""
        held = np.zeros(self._size, dtype=np.int64)
        here = np.flatnonzero(self._peers.primary == primary)
        held[self._peers.secondary[here]] = self._peers.promised[here]
        for node, amounts in self._changed.items():
            held[node] = amounts.get(primary, 0)
        return held[nodes]

    def between(self, nodes: Ints) -> tuple[Ints, Ints, Ints]:
        """Pairs of ``nodes`` of which the second keeps memory for the first, and how much."""
        peers, size = self._peers, self._size
        changed = np.array(list(self._changed), dtype=np.int64)
        here: Bools = among(peers.primary, nodes, size) & among(peers.secondary, nodes, size)
        here &= ~among(peers.secondary, changed, size)
        inside = frozenset(nodes.tolist())
        found = [
            (primary, secondary, memory)
            for secondary, held in self._changed.items()
            if secondary in inside
            for primary, memory in held.items()
            if primary in inside
        ]
        table = np.array(found, dtype=np.int64).reshape(-1, 3)
        return (
            np.concatenate((peers.primary[here], table[:, 0])),
            np.concatenate((peers.secondary[here], table[:, 1])),
            np.concatenate((peers.promised[here], table[:, 2])),
        )
