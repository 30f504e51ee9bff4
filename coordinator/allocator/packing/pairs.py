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
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.terms import TOLERANCE, WEIGHTS, Term
from coordinator.allocator.packing.room import room_of_disks, room_of_primaries
from coordinator.allocator.packing.standing import RESERVED, Figures
from coordinator.allocator.snapshot import Instance

_SHRINK = 0.85  # tables are made anew when less than this share of nodes can take anything


class PairFill:
    """The hot loop; ``place`` again and again, until it finds nothing.

    Attributes:
        location: per node of the cluster, location tags that what came shares with its secondary.
        promised: row by secondary, column by primary: memory kept free; by node of the cluster.
    """

    def __init__(
        self,
        model: ClusterModel,
        resources: NodeResources,
        promised: Ints,
        demand: Instance,
        candidates: Ints,
        crowding: int,
    ) -> None:
        self._demand = demand
        self._needed = demand.reserved_memory
        self.promised = promised.copy()
        self.location = np.zeros(model.size, dtype=np.int64)
        self._figures = Figures(resources, demand, crowding)
        a = resources.at(candidates)
        self._nodes = candidates
        self._rows = np.searchsorted(self._figures.nodes, candidates)
        self._group = ints(model.group_of)[candidates]
        self._shared = None
        if model.has_locations:
            tags = model.location_tags
            places = [tags[node] for node in candidates.tolist()]
            shared = [len(one & two) for one in places for two in places]
            self._shared = ints(shared).reshape(len(places), -1)
        self._memory: list[int] = a.memory.tolist()
        self._next_memory: list[int] = a.next_memory.tolist()
        self._reserved: list[int] = a.reserved.tolist()
        self._fails: list[bool] = a.fails_n1.tolist()
        is_forbidden = ints(model.forbidden(demand, candidates.tolist())) > 0
        self._left: list[int] = np.where(is_forbidden, 0, room_of_primaries(a, demand)).tolist()
        self._left_shared: list[int] = room_of_disks(a, demand).tolist()
        self._prepare_products()
        self._open_tables(np.arange(len(candidates)))

    def _prepare_products(self) -> None:
        """What does not change of the parts of spreads, scaled by their weights."""
        f, rows = self._figures, self._rows
        n = float(len(f.nodes))
        weights = f.weights * f.weights
        one, two = f.as_primary[rows], f.as_secondary[rows]
        spreads = np.flatnonzero(f.weights > 0)
        spreads = spreads[spreads != RESERVED]
        both = np.array([(two[:, s] != 0).any() for s in spreads.tolist()], dtype=np.bool_)
        self._both, self._alone = spreads[both], spreads[~both]
        self._weights = weights
        shrink = (n - 1) / (n * n)
        self._linear_one, self._square_one = weights * 2 * one / n, weights * one * one * shrink
        self._linear_two, self._square_two = weights * 2 * two / n, weights * two * two * shrink
        self._per_sum_one, self._per_sum_two = self._linear_one / n, self._linear_two / n
        self._cross = -self._linear_one / n  # times what the secondary adds
        self._two = two

    def _open_tables(self, live: Ints) -> None:
        """Tables of these candidates, given by position."""
        self._live = live
        size = len(live)
        rows = self._rows[live]
        f = self._figures
        share = f.now[rows, RESERVED]
        nodes = self._nodes[live]
        promised = self.promised[np.ix_(nodes, nodes)]
        self._kept = np.maximum(np.array(self._reserved)[live][:, None], promised + self._needed)
        self._unit = f.memory_of(rows)
        self._growth, self._shift = np.empty((size, size)), np.empty((size, size))
        self._fixed = np.empty((size, size))
        base = f.failing[rows] * WEIGHTS[Term.N1_CNT]
        self._base = base[:, None] + base
        if self._shared is not None:
            self._base = self._base + self._shared[np.ix_(live, live)].astype(np.float64)
        self._base[self._group[live][:, None] != self._group[live]] = np.inf
        np.fill_diagonal(self._base, np.inf)
        self._old_share = share
        for at in range(size):
            self._work_out_row(at)
        firsts = np.array([self._takes_primary(p) for p in live.tolist()], dtype=np.bool_)
        self._fixed[:, ~firsts] = np.inf
        self._firsts_open: Bools = firsts
        both = len(self._both)
        columns = self._both
        self._now_rows = rows
        self._parts_one = (
            self._linear_one[live],
            self._square_one[live],
            self._per_sum_one[live],
        )
        self._parts_two = (
            self._linear_two[live][:, columns],
            self._square_two[live][:, columns],
            self._per_sum_two[live][:, columns],
        )
        self._left_part = np.empty((both, size, 3))
        self._right_part = np.empty((both, 3, size))
        self._left_part[:, :, 0] = 1.0
        self._right_part[:, 1, :] = 1.0
        self._left_part[:, :, 2] = self._two[live][:, self._both].T
        self._right_part[:, 2, :] = self._cross[live][:, self._both].T
        self._work = np.empty((both + 1, size, size))
        self._total = np.empty((size, size))

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
        position = int(self._live[at])
        kept = self._kept[at]
        old = self._old_share[at]
        share = kept / self._unit[at]
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
        self._close_row(at, position)

    def _close_row(self, at: int, position: int) -> None:
        if not self._takes_secondary(position):
            self._fixed[at] = np.inf
        elif not self._fails[position]:
            self._fixed[at][self._kept[at] >= self._memory[position]] = np.inf

    def place(self) -> tuple[int, int] | None:
        """Put one more instance on the best pair of nodes; None if there is none."""
        live = self._live
        if not len(live):
            return None
        found = self._best()
        if found is None:
            return None
        second, first = found
        primary, secondary = int(live[first]), int(live[second])
        self._put(first, second, primary, secondary)
        return int(self._nodes[primary]), int(self._nodes[secondary])

    def _best(self) -> tuple[int, int] | None:
        """Row and column of the best pair."""
        size = len(self._live)
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
            return divmod(int(near[0]), size)
        return self._best_of(*np.divmod(near, size))

    def _estimates(self) -> Floats:
        f, both = self._figures, self._both
        now = f.now[self._now_rows]
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
        rows = self._rows[self._live]
        shared = np.zeros(len(firsts), dtype=np.int64)
        if self._shared is not None:
            shared = self._shared[self._live[firsts], self._live[seconds]]
        kept = self._kept[seconds, firsts]
        scores = self._figures.pair_scores(rows[firsts], rows[seconds], kept, shared)
        if np.isnan(scores).any():
            first = int(firsts.max())
            return int(seconds[firsts == first].min()), first
        best = scores == scores.min()
        first = int(firsts[best].max())
        return int(seconds[best & (firsts == first)].max()), first

    def _put(self, first: int, second: int, primary: int, secondary: int) -> None:
        needed, demand = self._needed, self._demand
        nodes = self._nodes
        one, two = int(nodes[primary]), int(nodes[secondary])
        kept = int(self._kept[second, first])
        self.promised[two, one] += needed
        self._reserved[secondary] = kept
        self._memory[primary] -= demand.used_memory
        self._next_memory[primary] -= demand.memory
        self._left[primary] -= 1
        self._left_shared[primary] -= 1
        self._left_shared[secondary] -= 1
        shared = 0 if self._shared is None else int(self._shared[primary, secondary])
        self.location[one] += shared
        self._figures.put_primary(int(self._rows[primary]))
        self._figures.put_secondary(int(self._rows[secondary]), kept, shared=shared)
        np.maximum(self._kept[second], kept, out=self._kept[second])
        again = int(self.promised[two, one]) + needed
        if again > self._kept[second, first]:
            self._kept[second, first] = again
        self._old_share[second] = self._figures.now[self._rows[secondary], RESERVED]
        self._work_out_row(second)
        self._fixed[second, ~self._firsts_open] = np.inf
        self._close_row(first, primary)
        for at, position in ((first, primary), (second, secondary)):
            if self._firsts_open[at] and not self._takes_primary(position):
                self._firsts_open[at] = False
                self._fixed[:, at] = np.inf
        if self._left_shared[primary] <= 0 or self._left_shared[secondary] <= 0:
            self._drop_full()

    def _drop_full(self) -> None:
        """Make smaller tables once many nodes are full."""
        open_rows = [self._takes_secondary(int(position)) for position in self._live]
        alive = self._firsts_open | np.array(open_rows, dtype=np.bool_)
        if np.count_nonzero(alive) < _SHRINK * len(alive):
            self._open_tables(self._live[alive])
