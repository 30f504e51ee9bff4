"""Equal instances that are not mirrored put on nodes, one after the other."""

from collections.abc import Iterator

import numpy as np

from coordinator.allocator.arrays import Floats, Ints, ints
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.terms import WEIGHTS, Term
from coordinator.allocator.packing.room import room_of_singles
from coordinator.allocator.packing.standing import RESERVED, Figures
from coordinator.allocator.rank import from_best
from coordinator.allocator.snapshot import Instance


class SingleFill:
    """Nodes that fill up."""

    def __init__(
        self,
        model: ClusterModel,
        resources: NodeResources,
        demand: Instance,
        candidates: Ints,
        crowding: int,
    ) -> None:
        self._demand = demand
        self._figures = Figures(resources, demand, crowding)
        self._nodes = candidates
        self._rows = np.searchsorted(self._figures.nodes, candidates)
        self.left: Ints = room_of_singles(resources.at(candidates), demand)
        self.left[ints(model.forbidden(demand, candidates.tolist())) > 0] = 0

    def from_best(self) -> Iterator[int]:
        """Nodes that can take one more, the best first; among equals the last."""
        open_ones = np.flatnonzero(self.left > 0)
        if not len(open_ones):
            return
        rows = self._rows[open_ones]

        def exact(some: list[int]) -> list[float]:
            scores: list[float] = self._figures.single_scores(rows[some]).tolist()
            return scores

        for choice, _ in from_best(self._estimates(rows).tolist(), exact):
            yield int(self._nodes[open_ones[choice]])

    def put(self, node: int) -> None:
        at = int(np.searchsorted(self._nodes, node))
        self.left[at] -= 1
        self._figures.put_primary(int(self._rows[at]))

    def _estimates(self, rows: Ints) -> Floats:
        f, n = self._figures, float(len(self._figures.nodes))
        with np.errstate(invalid="ignore"):
            sums, variances = f.moments()
            now, change = f.now[rows], f.as_primary[rows]
            grown = variances + (change * (2 * now + change) * n - 2 * sums * change) / (n * n)
            grown -= change * change / (n * n)
            spreads: Floats = np.sqrt(np.maximum(grown, 0))
            spreads[:, RESERVED] = 0.0
            total: Floats = (spreads * f.weights).sum(axis=1)
            total += WEIGHTS[Term.N1_CNT] * f.failing[rows]
            return total
