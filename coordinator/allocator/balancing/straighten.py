"""The same end in fewer moves: an instance that a balancing moves repeatedly goes there at once.

Its earlier moves are left out. Each move of the shorter way is checked as any other; where one
does not fit, because an instance that would have gone is still there, that one goes early after
all.
"""

from collections.abc import Sequence

import numpy as np

from common.record import replace
from coordinator.allocator.balancing.balance import Balance, Move
from coordinator.allocator.balancing.moves import MoveKind
from coordinator.allocator.snapshot import NOWHERE

_ATTEMPTS = 60
_SAME = 1e-9  # by which a score may differ after the same moves in another order


def straightened(start: Balance, moves: Sequence[Move]) -> tuple[list[Move], Balance] | None:
    """Fewer moves to where ``moves`` lead, and the group after them; None if there are none.

    ``moves`` may be made one after the other from the group before them, which is not changed.
    """
    left_out = _passable(moves, _repeated(moves))
    for _ in range(_ATTEMPTS):
        if not left_out:
            return None
        kept = [at for at in range(len(moves)) if at not in left_out]
        end = start.fork()
        made, stuck = _replay(end, [moves[at] for at in kept])
        if stuck is None:
            return (made, end) if end.score().value <= moves[-1].score + _SAME else None
        left_out -= _in_the_way(moves, kept[stuck], left_out)
        left_out = _passable(moves, left_out)
    return None


def _repeated(moves: Sequence[Move]) -> set[int]:
    """Positions of moves whose instance moves again."""
    last = {move.instance: at for at, move in enumerate(moves)}
    return {at for at, move in enumerate(moves) if last[move.instance] != at}


def _passable(moves: Sequence[Move], left_out: set[int]) -> set[int]:
    """As many of the moves to leave out as still have each other reached by one move."""
    while (needed := _needed(moves, left_out)) is not None:
        left_out = left_out - {needed}
    return left_out


def _needed(moves: Sequence[Move], left_out: set[int]) -> int | None:
    """The first move left out without which its instance cannot go on; None if all can."""
    latest: dict[int, int] = {}  # of those left out, by instance
    homes: dict[int, tuple[int, int]] = {}
    for at, move in enumerate(moves):
        here = homes.setdefault(move.instance, move.before)
        if at in left_out:
            latest[move.instance] = at
            continue
        if here != move.after and _way(here, move.after) is None:
            return latest[move.instance]
        homes[move.instance] = move.after
    return None


def _in_the_way(moves: Sequence[Move], stuck: int, left_out: set[int]) -> set[int]:
    """Moves left out that are to be made so that the one at ``stuck`` can be.

    Those of the same instance; if there are none, those before it that free one of its nodes;
    else all before it.
    """
    own = {at for at in left_out if moves[at].instance == moves[stuck].instance and at < stuck}
    if own:
        return {max(own)}
    before = {at for at in left_out if at < stuck}
    wanted = set(moves[stuck].after)
    freeing = {at for at in before if wanted & set(moves[at].before)}
    return freeing or before or left_out


def _replay(balance: Balance, moves: Sequence[Move]) -> tuple[list[Move], int | None]:
    """Bring each move's instance where it goes, from where it then is.

    Returns:
        The moves made, and the position of the first that cannot be; None if all were made.
    """
    positions = {instance: at for at, instance in enumerate(balance.state.instances.tolist())}
    made: list[Move] = []
    for at, move in enumerate(moves):
        one = positions[move.instance]
        here = balance.state.homes(one)
        if here == move.after:
            continue
        way = _way(here, move.after)
        if way is None or not balance.may(way[0], one):
            return made, at
        step = balance.attempt(way[0], one, int(np.searchsorted(balance.state.nodes, way[1])))
        if step is None:
            return made, at
        made.append(replace(step, score=balance.score().value))
    return made, None


def _way(before: tuple[int, int], after: tuple[int, int]) -> tuple[MoveKind, int] | None:
    """The one move that leads from some nodes to others, and its target; None if none does."""
    (primary, secondary), (first, second) = before, after
    if secondary == NOWHERE:
        return MoveKind.FAILOVER_TO_ANY, first
    if after == (secondary, primary):
        return MoveKind.FAILOVER, secondary
    if first == primary:
        return MoveKind.REPLACE_SECONDARY, second
    if second == primary:
        return MoveKind.REPLACE_AND_FAILOVER, first
    if second == secondary:
        return MoveKind.REPLACE_PRIMARY, first
    if first == secondary:
        return MoveKind.FAILOVER_AND_REPLACE, second
    return None
