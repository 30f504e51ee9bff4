"""All moves of one kind towards all targets, estimated.

What the targets change is an amount of the instance times a factor of the node, so variances are
products of thin matrices; what a secondary keeps free for its primary is worked out move by move.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.balancing.board import Kind
from coordinator.allocator.balancing.effects import own_effects
from coordinator.allocator.balancing.fitting import NO_LIMIT
from coordinator.allocator.balancing.leaving import leave
from coordinator.allocator.books.books import UNKNOWN
from coordinator.allocator.books.score import WEIGHTS, Term
from coordinator.allocator.books.terms import figures

if TYPE_CHECKING:
    from coordinator.allocator.balancing.sieve import Sieve

_BY_TARGET = frozenset({Term.RESERVED_MEM_CV, Term.RESERVED_MEM_RTOTAL, Term.N1_CNT})


@dataclass(frozen=True, slots=True)
class Candidates:
    """Moves of one kind, side by side."""

    kind: Kind
    instances: Ints
    targets: Ints
    estimates: Floats


class Moves:
    """All moves of one kind: rows are instances, columns targets."""

    def __init__(self, sieve: "Sieve", kind: Kind, some: Ints) -> None:
        board, score = sieve.board, sieve.score
        self._sieve, self._kind, self._some = sieve, kind, some
        self._demands = demands = board.demands.at(some)
        self._home, self._mirror = board.primary[some], board.secondary[some]
        self._real = demands.count > 0
        self._left = left = leave(board, kind, some, force=sieve.allowed.force)
        nodes = np.stack([node for node, _ in left.own])
        after = np.stack([figures(books) for _, books in left.own], axis=1)
        if left.dependent is not None:
            by_target = sorted(_BY_TARGET)
            after[by_target, 0] = score.before[by_target][:, nodes[0]]
        self._holder = nodes[0]
        self._constant, self._squares, self._shifts = own_effects(score, nodes, after)
        self._as_primary = left.new_primary is None
        self._checks = sieve.room.checks(demands, as_primary=self._as_primary)
        self._split_spreads()

    def _split_spreads(self) -> None:
        """Put the spreads that targets do not change into the constant."""
        sieve, score = self._sieve, self._sieve.score
        count = score.count
        position = np.searchsorted(sieve.some, self._some)
        self._factors: list[tuple[float, Floats, Floats]] = []
        known = -np.maximum(self._demands.disk_spindles, 0)
        for spread in sieve.spreads:
            amounts = spread.as_primary if self._as_primary else spread.as_secondary
            amounts = amounts[position]
            shift, growth = self._shifts[spread.term], self._squares[spread.term]
            base = score.variances[spread.term] + growth / count - (shift / count) ** 2
            left, right = [base], [np.ones(len(sieve.targets))]
            parts = [(amounts, spread.scale)]
            if spread.exclusive_scale is not None:
                counts = known * self._real if spread.term is Term.FREE_DISK_CV else known
                parts.append((counts.astype(np.float64), spread.exclusive_scale))
            for amount, scale in parts:
                if amount.any():
                    left += [amount, amount * amount, amount * shift]
                    right += [
                        2 * spread.centred * scale / count,
                        scale * scale * (1 - 1 / count) / count,
                        -2 * scale / count**2,
                    ]
            if len(left) == 1:
                self._constant += spread.weight * np.sqrt(np.maximum(base, 0))
            else:
                # The weight goes under the root.
                table = np.stack(left, axis=1) * spread.weight**2
                self._factors.append((spread.weight, table, np.stack(right)))
        if self._kind is Kind.FAILOVER_TO_ANY:
            term = Term.RESERVED_MEM_CV
            shift, growth = self._shifts[term], self._squares[term]
            base = score.variances[term] + growth / count - (shift / count) ** 2
            self._constant += WEIGHTS[term] * np.sqrt(np.maximum(base, 0))

    def block(self, part: slice) -> Candidates:
        """Estimate the moves of some rows; what is impossible costs infinitely much."""
        sieve, some = self._sieve, self._some[part]
        targets = sieve.targets
        home, mirror = self._home[part], self._mirror[part]
        estimates = np.repeat(self._constant[part][:, None], len(targets), axis=1)
        for _, left, right in self._factors:
            variances = left[part] @ right
            np.maximum(variances, 0, out=variances)
            np.sqrt(variances, out=variances)
            estimates += variances
        clashes = sieve.clashes(some, self._as_primary)
        if clashes is not None:  # a forthcoming instance is let in all the same
            clashes = clashes * self._real[part][:, None]
        ok = self._checks.matrix(part, self._left.strict[part], clashes)
        self._add_rare(estimates, part)
        if self._kind is not Kind.FAILOVER_TO_ANY:
            self._add_reserve(estimates, ok, part)
        ok &= self._left.fits[part][:, None]
        if not sieve.board.may_migrate.all():
            source = {
                Kind.FAILOVER_TO_ANY: home,
                Kind.REPLACE_AND_FAILOVER: home,
                Kind.REPLACE_PRIMARY: mirror,
            }.get(self._kind)
            if source is not None:
                ok &= sieve.board.may_migrate[source][:, targets]
        ok &= (home[:, None] != targets) & (mirror[:, None] != targets)
        self._set_unknown(estimates, ok, part)
        row, column = np.nonzero(ok)
        return Candidates(self._kind, some[row], targets[column], estimates[row, column])

    def _set_unknown(self, estimates: Floats, ok: Bools, part: slice) -> None:
        """Exact scores of instances that do not tell what spindles they take, where that counts."""
        sieve, board = self._sieve, self._sieve.board
        if not board.books.exclusive.any():
            return
        unknown = self._demands.disk_spindles[part] == UNKNOWN
        row, column = np.nonzero(ok & unknown[:, None])
        if len(row):
            outcome = board.carry_out(
                self._kind, self._some[part][row], sieve.targets[column], force=sieve.allowed.force
            )
            estimates[row, column] = sieve.score.exact(outcome.changed)

    def _add_reserve(self, estimates: Floats, ok: Bools, part: slice) -> None:
        """What a node keeps free for its new peer, its part in the score and whether it can."""
        sieve, board, score = self._sieve, self._sieve.board, self._sieve.score
        targets, count = sieve.targets, score.count
        real = self._real[part][:, None]
        needed = np.where(self._real, self._demands.needed, -NO_LIMIT)[part][:, None]
        if self._left.dependent is None:
            holder, strict = targets[None, :], self._left.strict[part][:, None]
            promised = board.promised[targets][:, self._left.peer[part]].T
            books = sieve.target_books
            base, memory, fails = (
                books.reserved[None, :], books.memory[None, :], books.fails_n1[None, :]
            )  # fmt: skip
            busy = (books.primaries + books.secondaries)[None, :]
        else:
            holder = self._holder[part][:, None]
            strict = self._left.strict_dependent[part][:, None]
            promised = board.promised[self._holder[part]][:, targets]
            one = self._left.dependent
            base, memory, fails = (
                one.reserved[part][:, None], one.memory[part][:, None], one.fails_n1[part][:, None]
            )  # fmt: skip
            busy = (one.primaries + one.secondaries)[part][:, None]
        after = np.maximum(base, promised + needed)
        ok &= (after < memory) | fails | ~(strict & real)
        total, online = board.books.total_memory[holder], score.online[holder]
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(online, (after - board.books.reserved[holder]) / total, 0.0)
        centred = score.before[Term.RESERVED_MEM_CV, holder] - score.means[Term.RESERVED_MEM_CV]
        centred = np.where(online, centred, 0.0)
        own_shift = self._shifts[Term.RESERVED_MEM_CV][part][:, None]
        own_growth = self._squares[Term.RESERVED_MEM_CV][part][:, None]
        growth = own_growth + shift * (shift + 2 * centred)
        estimates += WEIGHTS[Term.RESERVED_MEM_RTOTAL] * shift
        shift += own_shift
        shift *= shift
        growth /= count
        growth -= shift / count**2
        growth += score.variances[Term.RESERVED_MEM_CV]
        np.maximum(growth, 0, out=growth)
        estimates += WEIGHTS[Term.RESERVED_MEM_CV] * np.sqrt(growth)
        if sieve.n1_matters:
            counts = self._demands.count[part][:, None]
            failing = np.where(real, memory <= after, fails) & online
            was = score.before[Term.N1_CNT, holder]
            estimates += WEIGHTS[Term.N1_CNT] * (failing * (busy + counts) - was)

    def _add_rare(self, estimates: Floats, part: slice) -> None:
        """What only matters where N+1 fails, or instances have tags that say where to be."""
        sieve, board, score = self._sieve, self._sieve.board, self._sieve.score
        some, targets = self._some[part], sieve.targets
        if self._as_primary and sieve.n1_matters:
            books, demands = sieve.target_books, self._demands
            memory = books.memory - demands.memory[part][:, None]
            failing = np.where(self._real[part][:, None], memory <= books.reserved, books.fails_n1)
            busy = books.primaries + books.secondaries + demands.count[part][:, None]
            was = score.before[Term.N1_CNT, targets]
            estimates += WEIGHTS[Term.N1_CNT] * (failing * busy - was)
        clashes = sieve.clashes(some, self._as_primary)
        if clashes is not None:
            estimates += WEIGHTS[Term.PRI_TAGS_SCORE] * clashes
        home, mirror = self._home[part], self._mirror[part]
        real = self._real[part][:, None]
        if self._kind is Kind.FAILOVER_TO_ANY:
            unmet = board.unmet[np.ix_(some, targets)]
            estimates += WEIGHTS[Term.LOCATION_SCORE] * (unmet * real)
        else:
            if self._left.new_primary is None:
                kept = home if self._kind is Kind.REPLACE_AND_FAILOVER else mirror
                unmet = board.unmet[np.ix_(some, targets)]
            else:
                kept = self._left.new_primary[part]
                unmet = board.unmet[some, kept][:, None]
                real = real & score.online[kept][:, None]
            near = board.shared_places[kept][:, targets] + unmet
            if near.any():
                estimates += WEIGHTS[Term.LOCATION_SCORE] * (near * real)
        if board.has_crowds:
            weight = WEIGHTS[Term.LOCATION_EXCLUSION_SCORE]
            if self._left.new_primary is None:
                again, once = board.crowd_weights(some)
                come = (again + once) @ board.places[targets].T
                estimates += weight * (come - again.sum(axis=1)[:, None])
            else:
                crowding = board.crowding_of(some, self._left.new_primary[part])
                estimates += weight * crowding[:, None]
