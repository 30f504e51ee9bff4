"""All moves of one kind towards all targets, estimated.

What the targets change is an amount of the instance times a factor of the node, so variances are
products of thin matrices; what a secondary keeps free for its primary is worked out move by move.
"""

from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.balancing.departures import leave
from coordinator.allocator.balancing.fitting import checks_of
from coordinator.allocator.balancing.moves import MoveKind
from coordinator.allocator.balancing.outcomes import simulate
from coordinator.allocator.balancing.reserve import add_reserve
from coordinator.allocator.balancing.step import Step
from coordinator.allocator.model.figures import figures
from coordinator.allocator.model.resources import UNKNOWN
from coordinator.allocator.model.terms import WEIGHTS, Term

_BY_TARGET = frozenset({Term.RESERVED_MEM_CV, Term.RESERVED_MEM_RTOTAL, Term.N1_CNT})


@dataclass(frozen=True, slots=True)
class Candidates:
    """Moves of one kind, side by side; arrays of shape (moves,)."""

    kind: MoveKind
    instances: Ints
    targets: Ints
    estimates: Floats


class MoveMatrix:
    """All moves of one kind: rows are instances, columns targets."""

    def __init__(self, step: Step, kind: MoveKind, some: Ints) -> None:
        state, score = step.state, step.score
        self._step, self._kind, self._some = step, kind, some
        self._demands = demands = state.demands.at(some)
        self._home, self._mirror = state.primary[some], state.secondary[some]
        self._real = demands.count > 0
        self._left = left = leave(state, kind, some, force=step.limits.ignore_soft_errors)
        # Of shapes (own nodes, instances) and (20, own nodes, instances), as ``Changed`` has them.
        nodes = np.stack([node for node, _ in left.own])
        after = np.stack([figures(resources) for _, resources in left.own], axis=1)
        if left.dependent is not None:
            by_target = sorted(_BY_TARGET)
            after[by_target, 0] = score.before[by_target][:, nodes[0]]
        # What leaving makes: part of the score, shape (instances,); growth of the terms' sums of
        # squares around the mean, and of their sums, shape (20, instances).
        self._constant, self._squares, self._shifts = score.effects(nodes, after)
        self._as_primary = left.new_primary is None
        self._checks = checks_of(demands, step.target_resources, as_primary=self._as_primary)
        self._split_spreads()

    def _split_spreads(self) -> None:
        """Put the spreads that targets do not change into the constant."""
        step, count = self._step, self._step.score.count
        position = np.searchsorted(step.some, self._some)
        # Per spread its weight, then what makes variances times the squared weight: shapes
        # (instances, 1 + 3k) and (1 + 3k, targets), of k amounts that instances bring: 1 or 2.
        self._factors: list[tuple[float, Floats, Floats]] = []
        known = -np.maximum(self._demands.disk_spindles, 0)
        for spread in step.spreads:
            amounts = spread.as_primary if self._as_primary else spread.as_secondary
            amounts = amounts[position]
            shift, base = self._shifts[spread.term], self._variance(spread.term)
            left, right = [base], [np.ones(len(step.targets))]
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
        if self._kind is MoveKind.FAILOVER_TO_ANY:
            term = Term.RESERVED_MEM_CV
            self._constant += WEIGHTS[term] * np.sqrt(np.maximum(self._variance(term), 0))

    def _variance(self, term: Term) -> Floats:
        """Per instance: the variance of a term once it has left, targets not yet counted."""
        score, shift = self._step.score, self._shifts[term] / self._step.score.count
        variance: Floats = score.variances[term] + self._squares[term] / score.count - shift**2
        return variance

    def block(self, part: slice) -> Candidates:
        """Estimate the moves of some rows; what is impossible costs infinitely much."""
        step, left, some = self._step, self._left, self._some[part]
        targets = step.targets
        home, mirror = self._home[part], self._mirror[part]
        estimates = np.repeat(self._constant[part][:, None], len(targets), axis=1)
        for _, factors, right in self._factors:
            variances = factors[part] @ right
            np.maximum(variances, 0, out=variances)
            np.sqrt(variances, out=variances)
            estimates += variances
        clashes = step.clashes(some, self._as_primary)
        if clashes is not None:  # a forthcoming instance is let in all the same
            clashes = clashes * self._real[part][:, None]
        ok = self._checks.matrix(part, left.strict[part], clashes)
        self._add_rare(estimates, part)
        if self._kind is not MoveKind.FAILOVER_TO_ANY:
            term, rows = Term.RESERVED_MEM_CV, np.arange(len(self._some))[part]
            own = self._shifts[term][part][:, None], self._squares[term][part][:, None]
            add_reserve(step, left, self._demands, rows, own, estimates, ok)
        ok &= left.fits[part][:, None]
        if not step.state.may_migrate.all():
            source = {
                MoveKind.FAILOVER_TO_ANY: home,
                MoveKind.REPLACE_AND_FAILOVER: home,
                MoveKind.REPLACE_PRIMARY: mirror,
            }.get(self._kind)
            if source is not None:
                ok &= step.state.may_migrate[source][:, targets]
        ok &= (home[:, None] != targets) & (mirror[:, None] != targets)
        self._set_unknown(estimates, ok, part)
        row, column = np.nonzero(ok)
        return Candidates(self._kind, some[row], targets[column], estimates[row, column])

    def _set_unknown(self, estimates: Floats, ok: Bools, part: slice) -> None:
        """Exact scores of instances that do not tell what spindles they take, where that counts."""
        step, state = self._step, self._step.state
        if not state.resources.exclusive.any():
            return
        unknown = self._demands.disk_spindles[part] == UNKNOWN
        row, column = np.nonzero(ok & unknown[:, None])
        if len(row):
            outcome = simulate(
                state,
                self._kind,
                self._some[part][row],
                step.targets[column],
                force=step.limits.ignore_soft_errors,
            )
            estimates[row, column] = step.score.exact(outcome.changed)

    def _add_rare(self, estimates: Floats, part: slice) -> None:
        """What only matters where N+1 fails, or instances have tags that say where to be."""
        step, state, score = self._step, self._step.state, self._step.score
        some, targets = self._some[part], step.targets
        if self._as_primary and step.n1_matters:
            resources, demands = step.target_resources, self._demands
            memory = resources.memory - demands.memory[part][:, None]
            failing = np.where(
                self._real[part][:, None], memory <= resources.reserved, resources.fails_n1
            )
            busy = resources.primaries + resources.secondaries + demands.count[part][:, None]
            was = score.before[Term.N1_CNT, targets]
            estimates += WEIGHTS[Term.N1_CNT] * (failing * busy - was)
        clashes = step.clashes(some, self._as_primary)
        if clashes is not None:
            estimates += WEIGHTS[Term.PRI_TAGS_SCORE] * clashes
        home, mirror = self._home[part], self._mirror[part]
        real = self._real[part][:, None]
        if self._kind is MoveKind.FAILOVER_TO_ANY:
            unmet = state.unmet[np.ix_(some, targets)]
            estimates += WEIGHTS[Term.LOCATION_SCORE] * (unmet * real)
        else:
            if self._left.new_primary is None:
                kept = home if self._kind is MoveKind.REPLACE_AND_FAILOVER else mirror
                unmet = state.unmet[np.ix_(some, targets)]
            else:
                kept = self._left.new_primary[part]
                unmet = state.unmet[some, kept][:, None]
                real = real & score.online[kept][:, None]
            near = state.shared_places[kept][:, targets] + unmet
            if near.any():
                estimates += WEIGHTS[Term.LOCATION_SCORE] * (near * real)
        if state.has_crowds:
            weight = WEIGHTS[Term.LOCATION_EXCLUSION_SCORE]
            if self._left.new_primary is None:
                again, once = state.crowd_weights(some)
                come = (again + once) @ state.places[targets].T
                estimates += weight * (come - again.sum(axis=1)[:, None])
            else:
                crowding = state.crowding_of(some, self._left.new_primary[part])
                estimates += weight * crowding[:, None]
