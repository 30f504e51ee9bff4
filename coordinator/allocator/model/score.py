"""The score of a set of nodes, exactly as htools rounds it, for many changes side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints, running_sum
from coordinator.allocator.model.figures import figures
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.standing import Standing
from coordinator.allocator.model.terms import (
    SPREADS,
    WEIGHTS,
    Term,
    TermKind,
    kind_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinator.allocator.model.standing import Change

_Reduce = Callable[[Floats], Floats]

_BLOCK = 1 << 16  # numbers worked on at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True)
class Changed:
    """What candidates change: as many nodes each, and those nodes' figures afterwards.

    Attributes:
        nodes: shape (nodes per candidate, candidates); positions among those scored.
        figures: shape (20, nodes per candidate, candidates).
        crowding: per candidate, what it adds to the count of crowded locations.
    """

    nodes: Ints
    figures: Floats
    crowding: Ints


def _side_by_side(changes: Sequence[Change], crowding: Sequence[int]) -> Changed:
    nodes = np.array([[node for node, _ in change] for change in changes], dtype=np.int64)
    after = np.array([[figures for _, figures in change] for change in changes])
    width = len(changes[0]) if changes else 1
    return Changed(
        nodes.reshape(-1, width).T,
        np.ascontiguousarray(after.reshape(-1, width, len(Term)).T),
        np.array(crowding, dtype=np.int64),
    )


class Score(Standing):
    """Nodes as they stand, and what changes would make of their score.

    Attributes:
        online: which of them count; shape (nodes,).
        before: their figures, shape (20, nodes).
        means: per term; meaningful for spreads only.
    """

    def __init__(self, resources: NodeResources, crowding: int = 0) -> None:
        self.online: Bools = ~resources.offline
        self.before = figures(resources)
        self.crowding = crowding
        self.count = int(np.count_nonzero(self.online))
        self._column = np.where(self.online, np.cumsum(self.online) - 1, -1)
        self._seen = np.ascontiguousarray(self.before[:, self.online])
        self.sums = running_sum(self.before)
        self.variances = np.zeros(len(Term))
        self.means = np.zeros(len(Term))
        if self.count:
            spreads = list(SPREADS)
            seen = self._seen[spreads]
            self.sums[spreads] = running_sum(seen)
            self.means[spreads] = self.sums[spreads] / self.count
            with np.errstate(invalid="ignore"):
                deviations = seen - self.means[spreads, None]
                self.variances[spreads] = running_sum(deviations * deviations) / self.count
        self.value = self.total()

    def is_online(self, node: int) -> bool:
        """Whether a node, given by position, counts in spreads."""
        return bool(self.online[node])

    def figures_at(self, places: Sequence[int]) -> Floats:
        """The figures of some of the nodes, given by position: shape (20, places)."""
        return self.before[:, places]

    def estimated(self, changes: Sequence[Change], crowding: Sequence[int]) -> list[float]:
        """The score after each of some changes, but for rounding; see ``afresh``."""
        scores: list[float] = self.estimates(_side_by_side(changes, crowding)).tolist()
        return scores

    def afresh(self, changes: Sequence[Change], crowding: Sequence[int]) -> list[float]:
        """The score after each of some changes.

        Args:
            changes: of nodes, given by position, to other figures.
            crowding: what each adds to the count of crowded locations.
        """
        scores: list[float] = self.exact(_side_by_side(changes, crowding)).tolist()
        return scores

    def estimates(self, changed: Changed) -> Floats:
        """Scores after each change, correct to about a millionth; much cheaper than ``exact``."""
        total = np.zeros(changed.nodes.shape[1])
        if not self.count:
            return total
        is_online = self._column[changed.nodes] >= 0
        for term in Term:
            old = self.before[term, changed.nodes]
            new = changed.figures[term]
            match kind_of(term):
                case TermKind.SPREAD:
                    with np.errstate(invalid="ignore"):
                        was, becomes = old - self.means[term], new - self.means[term]
                        shift = np.where(is_online, becomes - was, 0).sum(axis=0) / self.count
                        growth = np.where(is_online, becomes * becomes - was * was, 0).sum(axis=0)
                        variance = self.variances[term] + growth / self.count - shift * shift
                        total += WEIGHTS[term] * np.sqrt(np.maximum(variance, 0))
                case TermKind.SUM:
                    total += WEIGHTS[term] * (self.sums[term] + (new - old).sum(axis=0))
                case TermKind.CROWDING:
                    total += WEIGHTS[term] * (self.crowding + changed.crowding)
        return total

    def exact(self, changed: Changed) -> Floats:
        """The scores after each change."""
        candidates = changed.nodes.shape[1]
        total = np.zeros(candidates)
        if not self.count:
            return total
        known: dict[bytes, Floats] = {}  # equal terms once
        for term in Term:
            after = changed.figures[term]
            match kind_of(term):
                case TermKind.SPREAD:
                    key = self._seen[term].tobytes() + after.tobytes()
                    if key not in known:
                        known[key] = self._spreads(term, changed.nodes, after)
                    value = known[key]
                case TermKind.SUM:
                    value = self._summed(term, changed.nodes, after)
                case _:
                    value = (self.crowding + changed.crowding).astype(np.float64)
            total = total + WEIGHTS[term] * value
        return total

    def _summed(self, term: Term, nodes: Ints, after: Floats) -> Floats:
        if term is not Term.RESERVED_MEM_RTOTAL:  # whole numbers add up in any order
            value: Floats = self.sums[term] + (after - self.before[term, nodes]).sum(axis=0)
            return value

        def total(table: Floats) -> Floats:
            added: Floats = table.sum(axis=0)
            return added

        return self._in_blocks(term, nodes, after, total, float(self.sums[term]))

    def _spreads(self, term: Term, nodes: Ints, after: Floats) -> Floats:
        def spread(table: Floats) -> Floats:
            with np.errstate(invalid="ignore"):
                table -= table.sum(axis=0) / self.count
                table *= table
                result: Floats = np.sqrt(table.sum(axis=0) / self.count)
            return result

        return self._in_blocks(term, nodes, after, spread, float(np.sqrt(self.variances[term])))

    def _in_blocks(
        self, term: Term, nodes: Ints, after: Floats, reduce: _Reduce, unchanged: float
    ) -> Floats:
        """Apply ``reduce`` to tables with a row per online node and a column per candidate.

        Reducing the outer axis of such a table adds row by row, strictly in order.
        """
        columns = self._column[nodes]
        seen = self._seen[term]
        result = np.full(nodes.shape[1], unchanged)
        moves = ((columns >= 0) & (seen[columns] != after)).any(axis=0)
        moved = np.flatnonzero(moves)
        # One column alone would be added pairwise; two are not.
        step = max(2, _BLOCK // max(1, self.count))
        for start in range(0, len(moved), step):
            part = moved[start : start + step]
            wide = part if len(part) > 1 else np.repeat(part, 2)
            table = np.repeat(seen[:, None], len(wide), axis=1)
            for which in range(len(nodes)):
                column = columns[which, wide]
                there = np.flatnonzero(column >= 0)
                table[column[there], there] = after[which, wide[there]]
            result[part] = reduce(table)[: len(part)]
        return result
