"""Looking one move further: where no single move helps, two together may.

Single moves come first: trying pairs before they stall does not end better. Where they do, the
moves that cost least are each tried, and after each the best that can follow. Had that one
nothing to do with the first, it would have been good without it: so only moves from or to the
nodes that the first one touched are looked at, which are few.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from common.record import replace
from coordinator.allocator.balancing.balance import Balance, ChosenMove, Move

FIRST_MOVES = 8
"""How many moves are tried as the first of a pair; more gain little for their time."""

_ALIKE = 1e-9  # scores that differ by less are those of moves that come to the same
_SPARE_PAIRS = 10


class LookAhead:
    """Moves for one group, the best single one each time; where none is left, pairs.

    There are at most as many pairs as single moves, and ten more.

    Attributes:
        stalled: how many moves there were, and their score, when no single one helped any more;
            None before.
    """

    def __init__(
        self,
        balance: Balance,
        *,
        first_moves: int = FIRST_MOVES,
        most: int | None = None,
        enough: float = -np.inf,
    ) -> None:
        """Look from where ``balance`` stands.

        Args:
            balance: the group; the moves found are made in it.
            first_moves: how many moves to try as the first of a pair; 0 for single moves only.
            most: number of moves not to exceed; None for as many as help.
            enough: score at which to stop.
        """
        self.first_moves = first_moves
        self._balance = balance
        self._most, self._enough = most, enough
        self.stalled: tuple[int, float] | None = None

    def moves(self) -> Iterator[Move]:
        """Yield moves, each made as it is yielded."""
        done, pairs, score = 0, 0, self._balance.score().value
        while score > self._enough:
            left = None if self._most is None else self._most - done
            for move in islice(self._balance.moves(), left):
                yield move
                done, score = done + 1, move.score
                if not score > self._enough:
                    return
            if self.stalled is None:
                self.stalled = done, score
            left = 2 if self._most is None else self._most - done
            may_go_on = self.first_moves and left > 1 and pairs < done - 2 * pairs + _SPARE_PAIRS
            pair = find_pair(self._balance, self.first_moves) if may_go_on else None
            if pair is None:
                return
            for choice in pair:
                move = self._balance.make(choice)
                score = self._balance.score().value  # of the first it was only estimated
                yield replace(move, score=score)
            done, pairs = done + 2, pairs + 1


def find_pair(balance: Balance, first_moves: int) -> tuple[ChosenMove, ChosenMove] | None:
    """The best two moves that together gain what two moves have to; None if none do."""
    before = balance.score()
    if not np.isfinite(before.value):
        return None
    best: tuple[ChosenMove, ChosenMove] | None = None
    bound = before.value - _ALIKE
    for first in _cheapest(balance, first_moves):
        trial = balance.fork()
        second = _best_after(trial, trial.make(first), bound)
        if second is not None and balance.is_gain(before.value, second.score, moves=2):
            best, bound = (first, second), second.score
    return best


def _cheapest(balance: Balance, count: int) -> list[ChosenMove]:
    """The moves that leave the lowest scores, one of each score."""
    width = 1 / len(balance.state.nodes)  # the more nodes there are, the less a move changes
    near = balance.near_best(balance.score(), balance.movers(), balance.targets, np.inf, width)
    found = [
        ChosenMove(
            some.kind, int(some.instances[i]), int(some.targets[i]), float(some.estimates[i])
        )
        for some in near
        for i in np.argsort(some.estimates, kind="stable")[: 8 * count].tolist()
        if np.isfinite(some.estimates[i])  # else it does not fit
    ]
    chosen: list[ChosenMove] = []
    for choice in sorted(found, key=lambda each: each.score):
        if len(chosen) == count:
            break
        if not chosen or choice.score - chosen[-1].score > _ALIKE:
            chosen.append(choice)
    return chosen


def _best_after(balance: Balance, move: Move, bound: float) -> ChosenMove | None:
    """The best move from or to nodes that ``move`` touched, if it ends below ``bound``."""
    state, score, some = balance.state, balance.score(), balance.movers()
    touched = np.flatnonzero(np.isin(state.nodes, [*move.before, *move.after]))
    there = np.isin(state.primary[some], touched) | np.isin(state.secondary[some], touched)
    arriving = np.intersect1d(balance.targets, touched)
    near = [
        *balance.near_best(score, some[there], balance.targets, bound, 0.0),
        *balance.near_best(score, some[~there], arriving, bound, 0.0),
    ]
    return balance.best_of(score, near, bound)
