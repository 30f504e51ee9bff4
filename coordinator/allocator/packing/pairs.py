"""Equal mirrored instances put on pairs of nodes, one after the other, as fast as they go.

All pairs are scored for each instance. A spread after both nodes changed is the root of a sum of
one part of the primary, one of the secondary, and a product of one of each; so all spreads of all
pairs are one product of thin matrices and one root. What the secondary keeps free for the primary
depends on the pair, and is kept in tables of which an instance changes two rows. Pairs so close
that rounding may decide are compared by the very sums that htools makes.

Tables have a row per secondary and a column per primary.
"""

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints, ints
from coordinator.allocator.model.terms import TOLERANCE, WEIGHTS, Term
from coordinator.allocator.packing.filling import Filling
from coordinator.allocator.packing.room import room_of_disks, room_of_primaries
from coordinator.allocator.packing.standing import RESERVED, Figures
from coordinator.allocator.snapshot import Instance


class PairFill:
    """The hot loop; ``place`` again and again, until it finds nothing."""

    def __init__(self, start: Filling, demand: Instance) -> None:
        self._demand, self._needed = demand, demand.reserved_memory
        self._figures = Figures(start.resources, demand, start.crowding)
        # What has no room for its disks now gets none later.
        has_room = room_of_disks(start.resources.at(start.candidates), demand) > 0
        self._nodes = candidates = start.candidates[has_room]
        self._promised = start.promised[np.ix_(candidates, candidates)]  # a table, in MiB
        model, a = start.start, start.resources.at(candidates)
        self._rows = np.searchsorted(self._figures.nodes, candidates)
        # Of each candidate; memory in MiB.
        self._memory: list[int] = a.memory.tolist()
        self._next_memory: list[int] = a.next_memory.tolist()
        self._reserved: list[int] = a.reserved.tolist()
        self._fails: list[bool] = a.fails_n1.tolist()
        is_forbidden = ints(model.forbidden(demand, candidates.tolist())) > 0
        # Of each candidate: how many instances it still takes as primary, and has space for.
        self._left: list[int] = np.where(is_forbidden, 0, room_of_primaries(a, demand)).tolist()
        self._left_shared: list[int] = room_of_disks(a, demand).tolist()
        self._prepare_products()
        self._shared = None
        if model.has_locations:
            places = [model.location_tags[node] for node in candidates.tolist()]
            shared = [len(one & two) for one in places for two in places]
            self._shared = ints(shared).reshape(len(places), -1)  # a table of counts
        self._prepare_tables(ints(model.group_of)[candidates])

    def _prepare_products(self) -> None:
        """What does not change of the parts of spreads, scaled by their weights.

        Parts are of variances times squared weights; as figures, they have no unit.
        """
        f, rows, size = self._figures, self._rows, len(self._rows)
        n = float(len(f.nodes))
        self._weights = weights = f.weights * f.weights
        one, two = f.as_primary[rows], f.as_secondary[rows]
        spreads = np.flatnonzero(f.weights > 0)
        spreads = spreads[spreads != RESERVED]
        is_both = np.array([(two[:, s] != 0).any() for s in spreads.tolist()], dtype=np.bool_)
        self._both, self._alone = spreads[is_both], spreads[~is_both]
        shrink = (n - 1) / (n * n)
        linear_one, linear_two = weights * 2 * one / n, weights * 2 * two / n
        # Shape (candidates, columns): times the node's figure, plus this, less this times the sum.
        self._parts_one = linear_one, weights * one * one * shrink, linear_one / n
        parts_two = linear_two, weights * two * two * shrink, linear_two / n
        both = self._both
        self._parts_two = tuple(part[:, both] for part in parts_two)  # only columns of ``both``
        # Per column of ``both``, (candidates, 3) times (3, candidates): what is added up is the
        # primary's part, the secondary's, and the product of what an instance adds to either.
        self._left_part = np.ones((len(both), size, 3))
        self._right_part = np.ones((len(both), 3, size))
        self._left_part[:, :, 2] = two[:, both].T
        self._right_part[:, 2, :] = (-linear_one / n)[:, both].T  # times what the secondary adds
        # Tables: a part per column of ``both``, last that of ``RESERVED``; and the scores.
        self._work, self._total = np.empty((len(both) + 1, size, size)), np.empty((size, size))

    def _prepare_tables(self, group: Ints) -> None:
        f, rows, size = self._figures, self._rows, len(self._rows)
        # A table, in MiB: what the secondary would keep free in all.
        self._kept = np.maximum(ints(self._reserved)[:, None], self._promised + self._needed)
        # Of each candidate: its memory in MiB, and the share of it that is kept free now.
        self._unit, self._old_share = f.memory_of(rows), f.now[rows, RESERVED]
        # Tables: the part of ``RESERVED`` grows by the one, less the other times the sum.
        self._growth, self._shift = np.empty((size, size)), np.empty((size, size))
        self._fixed = np.empty((size, size))  # added to scores; infinite where no pair can be
        failing = f.failing[rows] * WEIGHTS[Term.N1_CNT]
        self._base = failing[:, None] + failing
        if self._shared is not None:
            self._base = self._base + self._shared.astype(np.float64)
        self._base[group[:, None] != group] = np.inf
        np.fill_diagonal(self._base, np.inf)
        self._firsts_open: Bools = np.array(
            [*map(self._takes_primary, range(size))], dtype=np.bool_
        )
        for at in range(size):
            self._work_out_row(at)

    def _takes_primary(self, at: int) -> bool:
        if self._left[at] <= 0 or self._left_shared[at] <= 0:
            return False
        after = self._memory[at] - self._demand.used_memory
        return self._fails[at] or after > self._reserved[at]

    def _takes_secondary(self, at: int) -> bool:
        return (
            self._left_shared[at] > 0
            and self._needed < self._memory[at]
            and self._needed < self._next_memory[at]
        )

    def _work_out_row(self, at: int) -> None:
        """What a row's secondary would keep free for each primary, and what comes of it."""
        old, share = self._old_share[at], self._kept[at] / self._unit[at]
        shift = share - old
        n = float(len(self._figures.nodes))
        weight = self._weights[RESERVED]
        growth = share * share
        growth -= old * old
        growth *= weight / n
        square = shift * shift
        square *= weight / (n * n)
        growth -= square
        self._growth[at] = growth
        np.multiply(shift, weight * 2 / (n * n), out=self._shift[at])
        fixed = self._fixed[at]
        np.multiply(shift, WEIGHTS[Term.RESERVED_MEM_RTOTAL], out=fixed)
        fixed += self._base[at]
        fixed[~self._firsts_open] = np.inf
        self._close_row(at)

    def _close_row(self, at: int) -> None:
        if not self._takes_secondary(at):
            self._fixed[at] = np.inf
        elif not self._fails[at]:
            self._fixed[at][self._kept[at] >= self._memory[at]] = np.inf

    def place(self) -> tuple[int, int] | None:
        """Put one more instance on the best pair of nodes; None if there is none."""
        found = self._best() if len(self._nodes) else None
        if found is None:
            return None
        second, first = found
        self._put(first, second)
        return int(self._nodes[first]), int(self._nodes[second])

    def _best(self) -> tuple[int, int] | None:
        """Row and column of the best pair."""
        with np.errstate(invalid="ignore"):
            if self._figures.is_finite:
                total = self._estimates()
            else:  # nothing to estimate
                total = np.where(self._fixed < np.inf, 0.0, np.inf)
            flat = total.ravel()
            lowest = flat[flat.argmin()]
            if lowest == np.inf:
                return None
            near = np.flatnonzero(flat <= lowest + TOLERANCE)
        if len(near) == 1:
            return divmod(int(near[0]), len(self._nodes))
        return self._best_of(*np.divmod(near, len(self._nodes)))

    def _estimates(self) -> Floats:
        """A table of scores, less what all pairs have in common."""
        f, both = self._figures, self._both
        now = f.now[self._rows]
        sums, variances = f.moments()
        linear, square, per_sum = self._parts_one
        parts = now * linear
        parts += square
        parts -= per_sum * sums
        parts += variances * self._weights
        linear, square, per_sum = self._parts_two
        mirror = now[:, both] * linear
        mirror += square
        mirror -= per_sum * sums[both]
        self._right_part[:, 0, :] = parts[:, both].T
        self._left_part[:, :, 1] = mirror.T
        work, total = self._work, self._total
        np.matmul(self._left_part, self._right_part, out=work[:-1])
        reserve = work[-1]
        np.multiply(self._shift, -sums[RESERVED], out=reserve)
        reserve += self._growth
        reserve += variances[RESERVED] * self._weights[RESERVED]
        np.maximum(work, 0, out=work)
        np.sqrt(work, out=work)
        np.add.reduce(work, axis=0, out=total)
        total += self._fixed
        total += np.sqrt(np.maximum(parts[:, self._alone], 0)).sum(axis=1)
        return total

    def _best_of(self, seconds: Ints, firsts: Ints) -> tuple[int, int]:
        """The best of these by htools' own sums; among equals the last primary, then secondary."""
        rows, shared = self._rows, np.zeros(len(firsts), dtype=np.int64)
        if self._shared is not None:
            shared = self._shared[firsts, seconds]
        kept = self._kept[seconds, firsts]
        scores = self._figures.pair_scores(rows[firsts], rows[seconds], kept, shared)
        if np.isnan(scores).any():
            first = int(firsts.max())
            return int(seconds[firsts == first].min()), first
        best = scores == scores.min()
        first = int(firsts[best].max())
        return int(seconds[best & (firsts == first)].max()), first

    def _put(self, first: int, second: int) -> None:
        needed, demand, ends = self._needed, self._demand, (first, second)
        kept = int(self._kept[second, first])
        self._promised[second, first] += needed
        self._reserved[second] = kept
        self._memory[first] -= demand.used_memory
        self._next_memory[first] -= demand.memory
        self._left[first] -= 1
        shared = 0 if self._shared is None else int(self._shared[ends])
        self._figures.put_primary(int(self._rows[first]))
        self._figures.put_secondary(int(self._rows[second]), kept, shared=shared)
        np.maximum(self._kept[second], kept, out=self._kept[second])
        again = int(self._promised[second, first]) + needed
        if again > self._kept[second, first]:
            self._kept[second, first] = again
        self._old_share[second] = self._figures.now[self._rows[second], RESERVED]
        for at in ends:
            self._left_shared[at] -= 1
        for at in ends:
            if self._firsts_open[at] and not self._takes_primary(at):
                self._firsts_open[at] = False
                self._fixed[:, at] = np.inf
        self._work_out_row(second)
        self._close_row(first)
