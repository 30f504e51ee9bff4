"""Balancing: one move after the other, each the one that leaves the group balanced best.

The moves and their order are those of Debian's hbal to the last tie: the shortlist leaves the moves
whose estimate is next to the best, these are scored exactly, and among equals the first
instance's first move is taken.
"""

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from common.record import Record, replace
from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.balancing.departures import may_leave
from coordinator.allocator.balancing.group_state import GroupState
from coordinator.allocator.balancing.move_matrix import Candidates
from coordinator.allocator.balancing.moves import Limits, MoveKind
from coordinator.allocator.balancing.outcomes import simulate
from coordinator.allocator.balancing.shortlist import near_best
from coordinator.allocator.balancing.step import Step
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.score import Score

# Far more than an estimate errs, and rounding may make of a variance of none.
IN_DOUBT = 1e-9 + 1e-7


class Move(Record):
    """One instance moved; nodes and instance are indices in the snapshot.

    Attributes:
        target: node index; of no meaning for a failover.
        before, after: primary and secondary.
        score: of the group, afterwards.
    """

    instance: int
    kind: MoveKind
    target: int
    before: tuple[int, int]
    after: tuple[int, int]
    score: float


@dataclass(frozen=True, slots=True)
class ChosenMove:
    """A move before it is made; instance and target are positions in the group."""

    kind: MoveKind
    instance: int
    target: int
    score: float


class Balance:
    """A group that is being balanced; iterate ``moves`` for as long as wanted.

    Attributes:
        state: of the group at this moment.
        movable: positions of the instances that may be moved.
    """

    def __init__(self, model: ClusterModel, nodes: Ints, limits: Limits) -> None:
        self.state = GroupState(model, nodes)
        self.limits = limits
        self.movable = np.array(
            [index for index in range(len(self.state.instances)) if self._may_move(index)],
            dtype=np.int64,
        )

    def _may_move(self, index: int) -> bool:
        snapshot = self.state.model.snapshot
        instance = snapshot.instances[int(self.state.instances[index])]
        chosen = self.limits.selected is None or instance.name in self.limits.selected
        is_split = len({snapshot.nodes[home].group for home in instance.homes}) > 1
        return (
            chosen
            and instance.name not in self.limits.excluded
            and instance.traits.is_balanced
            and instance.auto_balance
            and not is_split
            and (not instance.is_mirrored or bool(self.state.secondary[index] >= 0))
        )

    def score(self) -> Score:
        """The score as it stands."""
        return Score(self.state.resources, self.state.crowding)

    def optimum(self) -> float:
        """What the score cannot fall below, since memory has to be kept free."""
        total = self.state.resources.total_memory
        everything, largest = total.sum(), total.max(initial=0.0)
        if len(total) < 2 or everything <= largest:
            return 0.0
        owed = float(self.state.owed)
        return float(0.25 * (owed / (everything - largest) - owed / everything))

    def moves(self) -> Iterator[Move]:
        """Yield moves, each made as it is yielded, until none is good enough."""
        score = self.score()
        while (move := self._step(score)) is not None:
            yield move
            score = self.score()

    def fork(self) -> "Balance":
        """The same group for moves that are only tried."""
        other = copy(self)
        other.state = self.state.copy()
        return other

    def is_gain(self, before: float, after: float, moves: int = 1) -> bool:
        """Whether so many moves that lead from one score to another are worth making."""
        limits = self.limits
        if not after < before:
            return False
        return before > limits.min_gain_limit or before - after >= moves * limits.min_gain

    def movers(self) -> Ints:
        """Positions of the instances that may be moved as things stand."""
        state, some = self.state, self.movable
        if not self.limits.evacuate:
            return some
        is_stranded: Bools = state.is_offline(state.primary[some]) | (
            state.demands.mirrored[some] & state.is_offline(state.secondary[some])
        )
        return some[is_stranded]

    def near_best(
        self, score: Score, some: Ints, targets: Ints, bound: float, width: float
    ) -> list[Candidates]:
        """Moves of some instances to some nodes that may be within ``width`` of the best."""
        step = Step(self.state, score, some, targets, self.limits)
        return near_best(step, bound, width + IN_DOUBT)

    @property
    def targets(self) -> Ints:
        """Positions of the nodes that take instances."""
        return np.flatnonzero(~self.state.resources.offline)

    def _step(self, score: Score) -> Move | None:
        if not np.isfinite(score.value):
            return None
        near = self.near_best(score, self.movers(), self.targets, score.value, 0.0)
        best = self.best_of(score, near, score.value)
        if best is None or not self.is_gain(score.value, best.score):
            return None
        return self.make(best)

    def best_of(self, score: Score, near: list[Candidates], bound: float) -> ChosenMove | None:
        """The best by exact scores; None if none is better than ``bound``."""
        found: list[tuple[float, int, ChosenMove]] = []
        size = len(self.state.nodes)
        for some in near:
            values = self._exact(score, some)
            within = some.targets * len(MoveKind) + int(some.kind) if some.kind else -1
            ranks = some.instances * (size * len(MoveKind) + 1) + within
            for at in np.lexsort((ranks, values))[:1].tolist():
                one, target = int(some.instances[at]), int(some.targets[at])
                choice = ChosenMove(some.kind, one, target, float(values[at]))
                found.append((choice.score, int(ranks[at]), choice))
        best = min(found, key=lambda each: each[:2], default=None)
        return best[2] if best is not None and best[0] < bound else None

    def _exact(self, score: Score, some: Candidates) -> Floats:
        outcome = simulate(
            self.state,
            some.kind,
            some.instances,
            some.targets,
            force=self.limits.ignore_soft_errors,
        )
        return np.where(outcome.codes == 0, score.exact(outcome.changed), np.inf)

    def make(self, choice: ChosenMove) -> Move:
        """Make a move that fits."""
        move = self.attempt(choice.kind, choice.instance, choice.target)
        assert move is not None, "it was found to fit"
        return replace(move, score=choice.score)

    def attempt(self, kind: MoveKind, one: int, target: int) -> Move | None:
        """Make a move if it fits; its score is left open (NaN).

        ``one`` is the position of the instance, ``target`` of a node; of no meaning for a failover.
        """
        state = self.state
        before = state.homes(one)
        outcome = simulate(
            state, kind, np.array([one]), np.array([target]), force=self.limits.ignore_soft_errors
        )
        if outcome.codes[0]:
            return None
        state.apply(outcome, one)
        node = int(state.nodes[target])
        return Move(int(state.instances[one]), kind, node, before, state.homes(one), math.nan)

    def may(self, kind: MoveKind, one: int) -> bool:
        """Whether the limits allow a move of this kind, whatever there is room for."""
        return bool(may_leave(self.state, kind, np.array([one]), self.targets, self.limits)[0])
