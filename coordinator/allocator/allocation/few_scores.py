"""The score of a small, simple cluster with an instance on two of its nodes; see ``few_pairs``."""

from __future__ import annotations

from math import sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from coordinator.allocator.allocation.few_nodes import FewNodes, Wanted


class Spread:
    """The spread of one figure over the online nodes: its sum and variance."""

    __slots__ = ("n", "sum", "variance")

    def __init__(self, figures: Iterable[float]) -> None:
        values = list(figures)
        self.n = float(len(values))
        self.sum = _added(values)
        mean = self.sum / self.n
        self.variance = _added([(value - mean) * (value - mean) for value in values]) / self.n

    def replaced(self, before: float, after: float) -> tuple[float, float]:
        """Sum and variance with one figure changed."""
        shift = after - before
        growth = after * after - before * before
        change = (self.n * growth - (2 * self.sum) * shift) - shift * shift
        variance = self.variance + change / (self.n * self.n)
        return self.sum + shift, variance if variance > 0 else 0.0

    def root(self, before: float, after: float) -> float:
        return sqrt(self.replaced(before, after)[1])

    def steps(self, before: float, after: float) -> tuple[float, float, float]:
        """What of a second change does not depend on the first; for ``roots``."""
        shift = after - before
        return self.n * (after * after - before * before), shift, shift * shift

    def roots(
        self, first: tuple[float, float], steps: Iterable[tuple[float, float, float]]
    ) -> list[float]:
        """The spreads after each of several second changes."""
        twice, variance, squared = 2 * first[0], first[1], self.n * self.n
        return [
            sqrt(x) if (x := variance + ((growth - twice * shift) - square) / squared) > 0 else 0.0
            for growth, shift, square in steps
        ]


def _added(values: Iterable[float]) -> float:
    """Strictly one after the other; ``sum`` compensates from Python 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


class Scores:
    """The scores of pairs, a primary at a time."""

    def __init__(self, resources: FewNodes, scored: Sequence[int], new: Wanted) -> None:
        self._resources, self._new = resources, new
        online = [node for node in scored if not resources.offline[node]]
        away = [node for node in scored if resources.offline[node]]
        runs, copies, total = resources.primaries, resources.secondaries, resources.total_memory
        self._memory = Spread(resources.memory[n] / total[n] for n in online)
        self._next_memory = Spread(resources.next_memory[n] / total[n] for n in online)
        self._reserve = Spread(resources.reserved[n] / total[n] for n in online)
        self._disk = Spread(resources.disk[n] / resources.total_disk[n] for n in online)
        self._cpus = Spread(resources.cpus[n] / resources.total_cpus[n] for n in online)
        self._load = Spread(float(runs[n]) for n in online)
        self._disk_load = Spread(float(runs[n] + copies[n]) for n in online)
        self._spindles = Spread(resources.spindles[n] / resources.spindle_limit[n] for n in online)
        failing = (n for n in online if resources.fails_n1[n])
        self._failing = _added(float(runs[n] + copies[n]) for n in failing)
        self._stranded = 4 * _added(float(runs[n] + copies[n]) for n in away)
        self._stranded_primaries = 16 * _added(float(runs[n]) for n in away)
        self._owed = _added(resources.reserved[n] / total[n] for n in online)

    def secondary(self, node: int, promised: int) -> tuple[Any, ...]:
        """What a secondary brings to each term that depends on both nodes."""
        resources, new, total = self._resources, self._new, self._resources.total_memory[node]
        here = resources.primaries[node] + resources.secondaries[node]
        keeps = max(resources.reserved[node], promised + new.needed)
        was, will = resources.reserved[node] / total, keeps / total
        fails = (resources.memory[node] <= keeps) * (here + 1) - resources.fails_n1[node] * here
        return (
            self._disk.steps(*self._disk_change(node)),
            self._reserve.steps(was, will),
            self._disk_load.steps(float(here), float(here + 1)),
            self._spindles.steps(*self._spindle_change(node)),
            fails,
            will - was,
        )

    def put_primary(self, node: int) -> None:
        """Turn to another primary."""
        resources, new, total = self._resources, self._new, self._resources.total_memory[node]
        runs, of_all = resources.primaries[node], resources.total_cpus[node]
        here, left = runs + resources.secondaries[node], resources.memory[node] - new.memory
        soon = resources.next_memory[node]
        self._fails = self._failing + (
            (left <= resources.reserved[node]) * (here + 1) - resources.fails_n1[node] * here
        )
        self._with_disk = self._disk.replaced(*self._disk_change(node))
        self._with_disk_load = self._disk_load.replaced(float(here), float(here + 1))
        self._with_spindles = self._spindles.replaced(*self._spindle_change(node))
        self._of_memory = self._memory.root(resources.memory[node] / total, left / total)
        self._of_next = self._next_memory.root(soon / total, (soon - new.next_memory) / total)
        self._of_load = self._load.root(float(runs), float(runs + 1))
        cpus = resources.cpus[node]
        self._of_cpus = self._cpus.root(cpus / of_all, (cpus + new.cpus) / of_all)

    def with_secondaries(self, columns: Sequence[Sequence[Any]]) -> list[float]:
        """The scores, given columns of what secondaries bring."""
        steps_of_disk, steps_of_reserve, steps_of_load, steps_of_spindles, fail, owe = columns
        reserve = (self._reserve.sum, self._reserve.variance)
        start, soon = 0.5 * self._of_memory, 0.5 * self._of_next
        fails, owed, load, cpus = self._fails, self._owed, self._of_load, 0.5 * self._of_cpus
        stranded, primaries = self._stranded, self._stranded_primaries
        # The terms in hail's order, those left out being 0; see ``score.Term``.
        return [
            start
            + 0.5 * disk
            + (fails + f)
            + kept
            + stranded
            + primaries
            + cpus
            + load
            + load
            + disk_load
            + load
            + 0.5 * spindles
            + soon
            + 0.5 * disk
            + cpus
            + 0.5 * spindles
            + 0.25 * (owed + o)
            for disk, kept, disk_load, spindles, f, o in zip(
                self._disk.roots(self._with_disk, steps_of_disk),
                self._reserve.roots(reserve, steps_of_reserve),
                self._disk_load.roots(self._with_disk_load, steps_of_load),
                self._spindles.roots(self._with_spindles, steps_of_spindles),
                fail,
                owe,
                strict=True,
            )
        ]

    def _disk_change(self, node: int) -> tuple[float, float]:
        """The share of free disk, before and with the instance."""
        free, total = self._resources.disk[node], self._resources.total_disk[node]
        return free / total, (free - self._new.disk) / total

    def _spindle_change(self, node: int) -> tuple[float, float]:
        used, limit = self._resources.spindles[node], self._resources.spindle_limit[node]
        return used / limit, (used + self._new.spindles) / limit
