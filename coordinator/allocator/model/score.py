"""The score of a set of nodes, exactly as htools rounds it, for many changes side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.model.figures import figures
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.row_score import RowScore
from coordinator.allocator.model.terms import KINDS, SPREADS, WEIGHTS, Term, TermKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinator.allocator.model.row_score import Change

_BLOCK = 1 << 16  # numbers worked on at a time, so that they stay in the cache

_SPREADS = list(SPREADS)
_SUMS = [term for term, kind, _ in KINDS if kind is TermKind.SUM]
_CROWDED = WEIGHTS[Term.LOCATION_EXCLUSION_SCORE]
_WEIGHTS = np.array(WEIGHTS)


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


class Score(RowScore):
    """Nodes as they stand, and what changes would make of their score.

    Attributes:
        online: which of them count; shape (nodes,).
        before: their figures, shape (20, nodes).
        sums, means, variances: shape (20,); the latter two of spreads only.
    """

    def __init__(self, resources: NodeResources, crowding: int = 0) -> None:
        # Not that of rows: there are none.
        self.online: Bools = ~resources.offline
        self.before = figures(resources)
        self._add_up(self.before.tolist(), self.online.tolist(), crowding)
        self.sums, self.variances = np.array(self.sums), np.array(self.variances)
        self.means: Floats = self.sums / max(1, self.count)

    def figures_at(self, places: Sequence[int]) -> Floats:
        """The figures of some of the nodes, given by position: shape (20, places)."""
        return self.before[:, places]

    def estimated(self, changes: Sequence[Change], crowding: Sequence[int]) -> list[float]:
        """The score after each of some changes, but for rounding; see ``afresh``."""
        scores: list[float] = self.estimates(_side_by_side(changes, crowding)).tolist()
        return scores

    def afresh(self, changes: Sequence[Change], crowding: Sequence[int]) -> list[float]:
        """The score after each of some changes; see ``RowScore``."""
        scores: list[float] = self.exact(_side_by_side(changes, crowding)).tolist()
        return scores

    def effects(self, nodes: Ints, after: Floats) -> tuple[Floats, Floats, Floats]:
        """What changes on given nodes do to sums and variances rather than afresh.

        Shapes are those of ``Changed``.

        Returns:
            The sums' part of the score; growth of the sum of squares around the mean, and of
            the sum, both of shape (20, candidates).
        """
        before, online = self.before[:, nodes], self.online[nodes]
        shift = after - before
        squares = shift * (after + before - 2 * self.means[:, None, None])
        growth = np.where(online, squares, 0.0).sum(axis=1)
        sums = self.sums[_SUMS, None] + shift[_SUMS].sum(axis=1)
        total = _WEIGHTS[_SUMS] @ sums + _CROWDED * float(self.crowding)
        return total, growth, np.where(online, shift, 0.0).sum(axis=1)

    def estimates(self, changed: Changed) -> Floats:
        """Scores after each change, correct to about a millionth; much cheaper than ``exact``."""
        if not self.count:
            return np.zeros(changed.nodes.shape[1])
        with np.errstate(invalid="ignore"):
            total, growth, shift = self.effects(changed.nodes, changed.figures)
            shift /= self.count
            variances = self.variances[:, None] + growth / self.count - shift * shift
            spreads = np.sqrt(np.maximum(variances[_SPREADS], 0))
            estimates: Floats = total + _WEIGHTS[_SPREADS] @ spreads + _CROWDED * changed.crowding
        return estimates

    def exact(self, changed: Changed) -> Floats:
        """The scores after each change."""
        total = np.zeros(changed.nodes.shape[1])
        if not self.count:
            return total
        known: dict[tuple[int, bytes], Floats] = {}  # equal terms once
        for term, kind, weight in KINDS:
            after = changed.figures[term]
            if kind is TermKind.SPREAD:
                key = self.alike[term], after.tobytes()
                if key not in known:
                    known[key] = self._in_blocks(term, changed.nodes, after, _spread)
                value = known[key]
            elif term is Term.RESERVED_MEM_RTOTAL:
                value = self._in_blocks(term, changed.nodes, after, _sum)
            elif kind is TermKind.SUM:  # whole numbers add up in any order
                value = self.sums[term] + (after - self.before[term, changed.nodes]).sum(axis=0)
            else:
                value = (self.crowding + changed.crowding).astype(np.float64)
            total = total + weight * value
        return total

    def _in_blocks(
        self, term: Term, nodes: Ints, after: Floats, reduce: Callable[[Floats], Floats]
    ) -> Floats:
        """Apply ``reduce`` to tables with a row per online node and a column per candidate.

        Reducing the outer axis of such a table adds row by row, strictly in order.
        """
        columns, seen = np.array(self._place)[nodes], np.array(self._columns[term])
        result = np.full(nodes.shape[1], self.values()[term])
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


def _sum(table: Floats) -> Floats:
    added: Floats = table.sum(axis=0)
    return added


def _spread(table: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        table -= table.sum(axis=0) / len(table)
        table *= table
        result: Floats = np.sqrt(table.sum(axis=0) / len(table))
    return result
