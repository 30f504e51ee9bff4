"""What changes in the score while equal instances are put on nodes, and nothing else.

A figure of a node is an amount divided by what the node has; an instance changes the amounts of
its nodes by the same each time. Most terms of the score are made of the same figures, so these
are kept once: a column per distinct one, a row per node that is online.
"""

import numpy as np

from coordinator.allocator.arithmetic import replaced
from coordinator.allocator.arrays import Floats, Ints
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.score import Score
from coordinator.allocator.model.terms import SPREADS, WEIGHTS, Term
from coordinator.allocator.snapshot import Instance

RESERVED = 0  # the column of memory that is kept free


# A figure of all nodes, ``amounts / unit / speed``; then how an instance changes the amounts as
# primary, and as secondary. All of shape (nodes,).
_Column = tuple[Floats, Floats, Floats, Floats, Floats]


class Figures:
    """Figures of the nodes that are online; rows are these nodes, columns distinct figures.

    Figures are shares, ratios and loads, without a unit.

    Attributes:
        nodes: indices of the rows, rising.
        now: the figures as they stand; shape (nodes, columns).
        as_primary, as_secondary: what an instance adds to them, rounded; 0 for ``RESERVED``.
        terms: column of each term that is a spread.
        weights: shape (columns,), of each as a spread; equal terms' weights added up.
        failing: per row, 1 where N+1 already fails; then an instance more adds 1 to that term.
    """

    def __init__(self, resources: NodeResources, demand: Instance, crowding: int) -> None:
        self.nodes: Ints = np.flatnonzero(~resources.offline)
        a = resources.at(self.nodes)
        columns = [_reserved(a)]
        self.terms = {Term.RESERVED_MEM_CV: RESERVED}
        known: dict[bytes, int] = {}
        for term, column in _columns(a, demand).items():
            key = b"".join(part.tobytes() for part in column)
            self.terms[term] = known.setdefault(key, len(columns))
            if self.terms[term] == len(columns):
                columns.append(column)
        # Shape (nodes, columns); memory and disk in MiB, disk in spindles where it is exclusive.
        tables = np.ascontiguousarray(np.array(columns).transpose(1, 2, 0))
        self._amounts, self._unit, self._speed, self._first, self._second = tables
        self.weights = np.zeros(len(columns))
        for term, at in self.terms.items():
            self.weights[at] += WEIGHTS[term]
        self.failing: Floats = a.fails_n1.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.now = self._amounts / self._unit / self._speed
            self.as_primary = self._first / self._unit / self._speed
            self.as_secondary = self._second / self._unit / self._speed
        self.is_finite = bool(np.isfinite(self.now).all())
        self._sums = Score(resources, crowding).sums
        self._crowding = float(crowding)
        self._failing_sum = float(self._sums[Term.N1_CNT])
        self._location_sum = float(self._sums[Term.LOCATION_SCORE])

    def put_primary(self, row: int) -> None:
        self._failing_sum += float(self.failing[row])
        self._amounts[row] += self._first[row]
        self._divide(row)

    def put_secondary(self, row: int, reserved: int, *, shared: int) -> None:
        """Put one there that makes the node keep ``reserved`` MiB free."""
        self._failing_sum += float(self.failing[row])
        self._location_sum += shared
        self._amounts[row] += self._second[row]
        self._amounts[row, RESERVED] = reserved
        self._divide(row)

    def _divide(self, row: int) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            self.now[row] = self._amounts[row] / self._unit[row] / self._speed[row]

    def moments(self) -> tuple[Floats, Floats]:
        """Sums and variances, of shape (columns,), added up in the order of the nodes."""
        count = len(self.nodes)
        with np.errstate(invalid="ignore"):
            # The outer axis is added row by row, strictly in order.
            sums = np.add.reduce(self.now, axis=0)
            deviations = self.now - sums / count
            deviations *= deviations
            return sums, np.add.reduce(deviations, axis=0) / count

    def memory_of(self, rows: Ints) -> Floats:
        """All memory of nodes in MiB, by which what they keep free is divided: shape (rows,)."""
        unit: Floats = self._unit[rows, RESERVED]
        return unit

    def pair_scores(self, primary: Ints, secondary: Ints, reserved: Ints, shared: Ints) -> Floats:
        """Scores with an instance on pairs of rows, rounded as by updating sums twice.

        All arrays are of shape (pairs,). Nodes are given by their rows. ``reserved`` is what the
        secondary then keeps free, in MiB, ``shared`` how many location tags the two have in common.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sums, variances = self.moments()
            one = self._after(primary, self._first)
            two = self._after(secondary, self._second)
            two[:, RESERVED] = reserved / self.memory_of(secondary)
            before_one, before_two = self.now[primary], self.now[secondary]
            n = float(len(self.nodes))
            wide, spread = replaced(n, sums, variances, before_one, one)
            _, spread = replaced(n, wide, spread, before_two, two)
            spread = np.sqrt(spread)
            kept = sums[RESERVED] + (one[:, RESERVED] - before_one[:, RESERVED])
            kept = kept + (two[:, RESERVED] - before_two[:, RESERVED])
            failing = self.failing[primary] + self.failing[secondary]
        return self._total(spread, kept, failing, shared.astype(np.float64))

    def single_scores(self, rows: Ints) -> Floats:
        """Scores with an instance on each of these rows, computed afresh: shape (rows,)."""
        count, size = len(self.nodes), max(2, len(rows))  # one column alone is added pairwise
        wide = rows if len(rows) > 1 else np.repeat(rows, 2)
        after = self._after(wide, self._first)
        spread = np.empty((size, self.now.shape[1]))
        here = np.arange(size)
        with np.errstate(invalid="ignore", over="ignore"):
            for column in range(self.now.shape[1]):
                table = np.repeat(self.now[:, column, None], size, axis=1)
                table[wide, here] = after[:, column]
                table -= np.add.reduce(table, axis=0) / count
                table *= table
                spread[:, column] = np.sqrt(np.add.reduce(table, axis=0) / count)
            kept = np.full(size, np.add.reduce(self.now, axis=0)[RESERVED])
        total = self._total(spread, kept, self.failing[wide], np.zeros(size))
        return total[: len(rows)]

    def _after(self, rows: Ints, change: Floats) -> Floats:
        """Figures of some rows once amounts changed, each for itself: shape (rows, columns).

        ``change`` has all rows.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            amounts = self._amounts[rows] + change[rows]
            after: Floats = amounts / self._unit[rows] / self._speed[rows]
        return after

    def _total(self, spread: Floats, kept: Floats, failing: Floats, location: Floats) -> Floats:
        """Terms times weights, added in their order: scores of shape (cases,).

        ``spread`` is of shape (cases, columns), the others of shape (cases,): the sum of shares
        kept free, and what is added to the sums of those two terms.
        """
        total = np.zeros(len(spread))
        for term in Term:
            value: Floats | float
            if term in self.terms:
                value = spread[:, self.terms[term]]
            elif term is Term.N1_CNT:
                value = self._failing_sum + failing
            elif term is Term.LOCATION_SCORE:
                value = self._location_sum + location
            elif term is Term.RESERVED_MEM_RTOTAL:
                value = kept
            elif term is Term.LOCATION_EXCLUSION_SCORE:
                value = self._crowding
            else:
                value = float(self._sums[term])
            total = total + WEIGHTS[term] * value
        return total


def _reserved(a: NodeResources) -> _Column:
    none, ones = np.zeros(len(a.memory)), np.ones(len(a.memory))
    return a.reserved.astype(np.float64), a.total_memory, ones, none, none


def _columns(a: NodeResources, demand: Instance) -> dict[Term, _Column]:
    """Every spread but the reserve."""
    none, ones = np.zeros(len(a.memory)), np.ones(len(a.memory))
    use = np.where(a.exclusive, 0.0, demand.spindle_use) if demand.is_local else none
    disk = demand.disk if demand.is_local else 0
    spindles = demand.disk_spindles or 0

    def column(amounts: Ints, unit: Floats, first: float, second: Floats = none) -> _Column:
        return amounts.astype(np.float64), unit, ones, ones * first, second

    def processors(cpus: Ints) -> _Column:
        added = ones * demand.used_vcpus
        return cpus.astype(np.float64), a.total_cpus, a.speed, added, none

    def storage(free: Ints, free_spindles: Ints) -> _Column:
        nothing = a.disk_unit == 0  # of nothing all is free
        amounts = np.where(a.exclusive, free_spindles, free).astype(np.float64)
        taken = np.where(a.exclusive, -float(spindles), -float(disk))
        taken = np.where(nothing, 0.0, taken)
        unit = np.where(nothing, 1.0, a.disk_unit)
        return np.where(nothing, 1.0, amounts), unit, ones, taken, taken

    def spread(used: Ints) -> _Column:
        return used.astype(np.float64), a.spindle_limit, ones, use, use

    load = demand.load
    found = {
        Term.FREE_MEM_CV: column(a.memory, a.total_memory, -demand.used_memory),
        Term.FREE_DISK_CV: storage(a.disk, a.free_spindles),
        Term.VCPU_RATIO_CV: processors(a.cpus),
        Term.CPU_LOAD_CV: column(a.load[0], ones, load[0]),
        Term.MEM_LOAD_CV: column(a.load[1], ones, load[1]),
        Term.DISK_LOAD_CV: column(a.load[2], ones, load[2], ones * load[2]),
        Term.NET_LOAD_CV: column(a.load[3], ones, load[3]),
        Term.SPINDLES_CV: spread(a.spindles),
        Term.FREE_MEM_CV_FORTH: column(a.next_memory, a.total_memory, -demand.memory),
        Term.FREE_DISK_CV_FORTH: storage(a.next_disk, a.next_free_spindles),
        Term.VCPU_RATIO_CV_FORTH: processors(a.next_cpus),
        Term.SPINDLES_CV_FORTH: spread(a.next_spindles),
    }
    assert found.keys() | {Term.RESERVED_MEM_CV} == set(SPREADS)
    return found
