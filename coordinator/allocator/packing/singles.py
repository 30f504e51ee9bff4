"""Equal instances that are not mirrored put on nodes, one after the other."""

from collections.abc import Iterator

import numpy as np

from coordinator.allocator.arrays import Floats, Ints, ints
from coordinator.allocator.model.terms import TOLERANCE, WEIGHTS, Term
from coordinator.allocator.packing.filling import Filling
from coordinator.allocator.packing.room import room_of_singles
from coordinator.allocator.packing.standing import RESERVED, Figures
from coordinator.allocator.rank import from_best
from coordinator.allocator.snapshot import Instance


class SingleFill:
    """Nodes that fill up."""

    def __init__(self, start: Filling, demand: Instance) -> None:
        self._figures = Figures(start.resources, demand, start.crowding)
        self._nodes = nodes = start.candidates
        self._rows = np.searchsorted(self._figures.nodes, nodes)
        self._left: Ints = room_of_singles(start.resources.at(nodes), demand)
        self._left[ints(start.start.forbidden(demand, nodes.tolist())) > 0] = 0

    def from_best(self) -> Iterator[int]:
        """Nodes that can take one more, the best first; among equals the last."""
        open_ones = np.flatnonzero(self._left > 0)
        estimates = self._estimates(self._rows[open_ones])
        if len(open_ones) and self._figures.is_finite:
            near = np.flatnonzero(estimates <= estimates.min() + TOLERANCE)
            if len(near) == 1:  # its exact score does not matter
                yield int(self._nodes[open_ones[near[0]]])
                open_ones, estimates = np.delete(open_ones, near), np.delete(estimates, near)
        rows = self._rows[open_ones]

        def exact(some: list[int]) -> list[float]:
            scores: list[float] = self._figures.single_scores(rows[some]).tolist()
            return scores

        for choice, _ in from_best(estimates.tolist(), exact):
            yield int(self._nodes[open_ones[choice]])

    def place(self) -> tuple[int] | None:
        """Put one more instance on the best node; None if there is none."""
        node = next(self.from_best(), None)
        if node is None:
            return None
        at = int(np.searchsorted(self._nodes, node))
        self._left[at] -= 1
        self._figures.put_primary(int(self._rows[at]))
        return (node,)

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
