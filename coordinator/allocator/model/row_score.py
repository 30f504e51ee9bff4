"""The score of a few nodes, for one change after the other: ``Score`` with Python's numbers.

The arithmetic is the same, in the same order, so the scores are the same to the last bit. Arrays
take as long for ten nodes as for a hundred; below some thirty a loop has the answer first.
"""

from collections.abc import Sequence
from math import sqrt

from coordinator.allocator.model.terms import WEIGHTS, Term, TermKind, kind_of

_Figures = Sequence[float]  # of one node, by term

_KINDS = tuple((term, kind_of(term), WEIGHTS[term]) for term in Term)


class RowScore:
    """Nodes as they stand, and what a change of one of them makes of their score."""

    def __init__(self, figures: Sequence[_Figures], online: Sequence[bool], crowding: int) -> None:
        """Add up.

        Args:
            figures: of each node, see ``figures_of_row``; finite where it is online.
            online: per node, whether it counts in spreads.
            crowding: count of crowded locations.
        """
        seen = [one for one, is_online in zip(figures, online, strict=True) if is_online]
        self._figures, self._count, self._crowding = figures, len(seen), crowding
        place = 0
        self._place: list[int] = []  # among those online; -1 for others
        for is_online in online:
            self._place.append(place if is_online else -1)
            place += is_online
        self._columns = list(zip(*seen, strict=True))
        self._sums = [_added(column) for column in zip(*figures, strict=True)]
        # Terms that are equal on all nodes, known by the first of them.
        first: dict[tuple[float, ...], int] = {}
        self._alike = [first.setdefault(column, at) for at, column in enumerate(self._columns)]
        self._spreads = {at: _spread(column) for column, at in first.items()}

    def after(self, node: int, changed: _Figures, crowding: int) -> float:
        """The score with other figures of one node, given by position."""
        if not self._count:
            return 0.0
        total, place, before = 0.0, self._place[node], self._figures[node]
        known: dict[tuple[int, float], float] = {}
        for term, kind, weight in _KINDS:
            if kind is TermKind.SPREAD:
                alike, value = self._alike[term], changed[term]
                if place < 0 or value == before[term]:
                    value = self._spreads[alike]
                elif (alike, value) in known:
                    value = known[alike, value]
                else:
                    value = _spread(_with(self._columns[term], place, value))
                    known[alike, changed[term]] = value
            elif term is Term.RESERVED_MEM_RTOTAL:
                value = self._sums[term]
                if place >= 0 and changed[term] != before[term]:
                    value = _added(_with(self._columns[term], place, changed[term]))
            elif kind is TermKind.SUM:
                value = self._sums[term] + (changed[term] - before[term])
            else:
                value = float(self._crowding + crowding)
            total += weight * value
        return total


def _with(column: Sequence[float], place: int, value: float) -> list[float]:
    changed = list(column)
    changed[place] = value
    return changed


def _added(values: Sequence[float]) -> float:
    """Strictly one after the other; ``sum`` compensates from Python 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


def _spread(values: Sequence[float]) -> float:
    """The standard deviation."""
    count = len(values)
    mean = _added(values) / count
    total = 0.0
    for value in values:
        deviation = value - mean
        total += deviation * deviation
    return sqrt(total / count)
