"""All candidates for one instance on one node."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Floats, Ints
from coordinator.allocator.model.occupy import add_primary
from coordinator.allocator.model.score import Changed, Score, figures
from coordinator.allocator.model.state import Scope, State
from coordinator.allocator.rank import from_best
from coordinator.allocator.snapshot import Instance


@dataclass(frozen=True, slots=True)
class Singles:
    """Candidates side by side.

    Attributes:
        nodes: their indices, rising.
        codes: ``Reason`` per candidate.
    """

    nodes: Ints
    codes: Ints
    _standing: Score
    _changes: Changed

    @classmethod
    def of(
        cls,
        state: State,
        scope: Scope,
        candidates: Ints,
        demand: Instance,
        *,
        location: Ints,
        force: bool = False,
        check_policy: bool = False,
    ) -> "Singles":
        """Put ``demand`` on each candidate.

        Args:
            state: the cluster as it stands.
            scope: the nodes whose score counts; the candidates are among them.
            candidates: rising node indices.
            demand: the instance.
            location: what it adds to each candidate's location score.
            force: ignore soft limits.
            check_policy: whether the instance is new, so that policies count; even with force.
        """
        codes, after = add_primary(
            state.at(candidates),
            demand,
            clashes=state.clashes(demand, candidates),
            location=location,
            force=force,
        )
        if check_policy:
            forbidden = state.model.forbidden(demand, candidates)
            codes = np.where(forbidden > 0, forbidden, codes)
        changes = Changed(
            np.searchsorted(scope.nodes, candidates)[None],
            figures(after)[:, None],
            state.crowding(demand, scope, candidates),
        )
        return cls(candidates, codes, scope.standing, changes)

    def from_best(self, *, is_move: bool = False) -> Iterator[tuple[int, float]]:
        """Yield (node, score) of those not refused, the best first; ties: the last node."""
        choices = np.flatnonzero(self.codes == 0)
        changes = self._changes.at(choices)

        def exact(some: Ints) -> Floats:
            return self._standing.exact(changes.at(some))

        for choice, score in from_best(
            self._standing.estimates(changes), exact, last_if_nan=is_move
        ):
            yield int(self.nodes[choices[choice]]), score
