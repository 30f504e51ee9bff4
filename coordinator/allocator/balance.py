"""Balancing: one move after the other, each the one that leaves the group balanced best.

The moves and their order are those of Debian's hbal to the last tie: the sieve leaves the moves
whose estimate is next to the best, these are scored exactly, and among equals the first
instance's first move is taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Floats, Ints
from coordinator.allocator.board import Board, Kind
from coordinator.allocator.books import Opening
from coordinator.allocator.inventory import MOVABLE
from coordinator.allocator.sieve import Allowed, Candidates, Sieve
from coordinator.allocator.terms import Score

_TOLERANCE = 1e-9  # far more than an estimate errs
_IN_DOUBT = 1e-7  # where rounding may have made a variance of a few 1e-16 from none


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When to stop, and what may be moved.

    Attributes:
        min_gain: least improvement of a move once the score is below ``min_gain_limit``.
        evacuate: move only what has a node that is offline.
        selected, excluded: names of instances; None selects all.
    """

    min_gain: float = 0.01
    min_gain_limit: float = 0.1
    evacuate: bool = False
    disk_moves: bool = True
    instance_moves: bool = True
    restricted: bool = False
    ignore_soft_errors: bool = False
    selected: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Move:
    """One instance moved; nodes and instance are indices in the inventory.

    Attributes:
        target: node index; of no meaning for a failover.
        before, after: primary and secondary.
        score: of the group, afterwards.
    """

    instance: int
    kind: Kind
    target: int
    before: tuple[int, int]
    after: tuple[int, int]
    score: float


class Balance:
    """A group that is being balanced; iterate ``moves`` for as long as wanted.

    Attributes:
        board: the books at this moment.
        movable: positions of the instances that may be moved.
    """

    def __init__(self, opening: Opening, nodes: Ints, limits: Limits) -> None:
        self.board = Board(opening, nodes)
        self.limits = limits
        self.movable = np.array(
            [index for index in range(len(self.board.instances)) if self._may_move(index)],
            dtype=np.int64,
        )

    def _may_move(self, index: int) -> bool:
        instance = self.board.opening.inventory.instances[int(self.board.instances[index])]
        chosen = self.limits.selected is None or instance.name in self.limits.selected
        is_split = self.board.secondary[index] < -1
        return (
            chosen
            and instance.name not in self.limits.excluded
            and instance.template in MOVABLE
            and instance.auto_balance
            and not is_split
            and (instance.template != "drbd" or bool(self.board.secondary[index] >= 0))
        )

    def score(self) -> Score:
        """The score as it stands."""
        return Score(self.board.books, self.board.crowding)

    def optimum(self) -> float:
        """What the score cannot fall below, since memory has to be kept free."""
        total = self.board.books.total_memory
        everything, largest = total.sum(), total.max(initial=0.0)
        if len(total) < 2 or everything <= largest:
            return 0.0
        owed = float(self._owed())
        return float(0.25 * (owed / (everything - largest) - owed / everything))

    def _owed(self) -> int:
        inside = self.board.promised.sum()
        table = self.board.opening.promised[self.board.nodes]
        outside = np.delete(table, self.board.nodes, axis=1).sum()
        return int(inside + outside)

    def moves(self) -> Iterator[Move]:
        """Yield moves, each made as it is yielded, until none is good enough."""
        score = self.score()
        while (move := self._step(score)) is not None:
            yield move
            score = self.score()

    def _step(self, score: Score) -> Move | None:
        if not np.isfinite(score.value):
            return None
        board, limits = self.board, self.limits
        some = self.movable
        if limits.evacuate:
            is_stranded = board.is_offline(board.primary[some]) | (
                board.demands.mirrored[some] & board.is_offline(board.secondary[some])
            )
            some = some[is_stranded]
        allowed = Allowed(
            np.flatnonzero(~board.books.offline),
            disk_moves=limits.disk_moves,
            instance_moves=limits.instance_moves,
            restricted=limits.restricted,
            force=limits.ignore_soft_errors,
        )
        near = Sieve(board, score, some, allowed).near_best(score.value, _TOLERANCE + _IN_DOUBT)
        best = self._best_of(score, near)
        if best is None:
            return None
        kind, instance, target, value = best
        gain = score.value - value
        if score.value <= limits.min_gain_limit and gain < limits.min_gain:
            return None
        return self._make(kind, instance, target, value)

    def _best_of(self, score: Score, near: list[Candidates]) -> tuple[Kind, int, int, float] | None:
        """The best by exact scores: kind, instance, target, score; None if none is better."""
        values: list[Floats] = []
        ranks: list[Ints] = []
        size = len(self.board.nodes)
        for some in near:
            outcome = self.board.carry_out(
                some.kind, some.instances, some.targets, force=self.limits.ignore_soft_errors
            )
            value = score.exact(outcome.changed)
            values.append(np.where(outcome.codes == 0, value, np.inf))
            within = some.targets * len(Kind) + int(some.kind) if some.kind else -1
            ranks.append(some.instances * (size * len(Kind) + 1) + within)
        if not values:
            return None
        value, rank = np.concatenate(values), np.concatenate(ranks)
        if not len(value) or not value.min() < score.value:
            return None
        winner = int(np.lexsort((rank, value))[0])
        which = 0
        lowest = float(value[winner])
        while winner >= len(values[which]):
            winner -= len(values[which])
            which += 1
        chosen = near[which]
        return chosen.kind, int(chosen.instances[winner]), int(chosen.targets[winner]), lowest

    def _make(self, kind: Kind, one: int, target: int, value: float) -> Move:
        board = self.board
        before = self._homes(one)
        outcome = board.carry_out(
            kind, np.array([one]), np.array([target]), force=self.limits.ignore_soft_errors
        )
        board.apply(outcome, one)
        return Move(
            int(board.instances[one]),
            kind,
            int(board.nodes[target]),
            before,
            self._homes(one),
            value,
        )

    def _homes(self, one: int) -> tuple[int, int]:
        nodes, secondary = self.board.nodes, int(self.board.secondary[one])
        return int(nodes[self.board.primary[one]]), int(nodes[secondary]) if secondary >= 0 else -1
