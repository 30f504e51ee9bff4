"""Which nodes of a group could be emptied, should they have to be, with all that is on them.

Mirrored instances fail over, which is a matter of arithmetic. Then those on shared storage
each run on the node that leaves the group balanced best; what is left is made anew elsewhere,
the largest first. Only hard limits count. Where there is ample room, or none at all, counting
tells; else it is tried out, since each choice depends on the one before. As with Debian's
hcheck nodes that are offline have to be emptied too, and take instances.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.balancing.board import Board, Kind
from coordinator.allocator.books.books import UNKNOWN
from coordinator.allocator.books.shift import add_primary
from coordinator.allocator.books.terms import Changed, Score, figures
from coordinator.allocator.policy import check_policy
from coordinator.allocator.snapshot import Instance


def stuck_nodes(board: Board, moved: Sequence[int] = ()) -> list[int]:
    """Nodes that could not be emptied, as positions in the group.

    An instance whose mirror is in another group cannot fail over within its own, so its node
    is among them.

    Args:
        board: the group, as it stands.
        moved: instances moved since the books were opened, in that order, as indices in the
            snapshot; the last to come to a node is the first to leave it.
    """
    freight = _Freight.of(board, moved)
    stuck = freight.cannot_fail_over(board)
    return [
        node
        for node in range(len(board.nodes))
        if stuck[node] or not _Node(board, freight, node).has_way_out()
    ]


@dataclass(frozen=True, slots=True)
class _Freight:
    """Real instances by position, in the order in which they leave their nodes."""

    mirrored: Ints
    others: Ints

    @classmethod
    def of(cls, board: Board, moved: Sequence[int]) -> "_Freight":
        last = {index: turn for turn, index in enumerate(moved)}
        where = {index: at for at, index in enumerate(board.instances.tolist())}
        order = sorted(where, key=lambda index: (last.get(index, -1), index), reverse=True)
        some = np.array([where[index] for index in order], dtype=np.int64)
        some = some[board.demands.count[some] > 0]
        mirrored = board.demands.mirrored[some]
        return cls(some[mirrored], some[~mirrored])

    def cannot_fail_over(self, board: Board) -> Bools:
        """Per node: whether a mirrored instance has no place on its other node."""
        books, some = board.books, self.mirrored
        home, mirror = board.primary[some], board.secondary[some]
        arriving = np.zeros((len(board.nodes), len(board.nodes)), dtype=np.int64)
        inside = mirror >= 0
        mirror = np.where(inside, mirror, home)  # any index will do: these fail in any case
        np.add.at(arriving, (home[inside], mirror[inside]), board.demands.memory[some][inside])
        unknown = board.demands.disk_spindles[some] == UNKNOWN

        def lacks_spindles(node: Ints) -> Bools:
            lacks: Bools = books.exclusive[node] & (unknown | (books.free_spindles[node] < 0))
            return lacks

        fails = (
            ~inside
            | (books.memory[mirror] <= arriving[home, mirror])
            | (books.disk[mirror] <= 0)
            | (~books.offline[home] & (books.disk[home] <= 0))
            | ~board.may_migrate[home, mirror]
            | lacks_spindles(home)
            | lacks_spindles(mirror)
        )
        stuck = np.zeros(len(board.nodes), dtype=np.bool_)
        stuck[home[fails]] = True
        return stuck


class _Node:
    """One node to be emptied, whose mirrored instances can fail over."""

    def __init__(self, board: Board, freight: _Freight, node: int) -> None:
        self._board, self._node = board, node
        self._mirrored = freight.mirrored[board.primary[freight.mirrored] == node]
        others = freight.others[board.primary[freight.others] == node].tolist()
        self._shared = [one for one in others if self._instance(one).traits.leaves_as_it_is]
        self._anew = sorted(
            (one for one in others if not self._instance(one).traits.leaves_as_it_is),
            key=lambda one: -self._instance(one).memory,
        )
        everyone = np.arange(len(board.nodes))
        self._targets = everyone[everyone != node]

    def has_way_out(self) -> bool:
        others = self._shared + self._anew
        if not others:
            return True
        if not len(self._targets):
            return False
        fits = np.stack([self._fits(one) for one in others])
        if not fits.any(axis=1).all():
            return False
        return len(others) == 1 or self._is_ample(others, fits) or self._try_out()

    def _instance(self, one: int) -> Instance:
        return self._board.opening.snapshot.instances[int(self._board.instances[one])]

    def _room(self) -> Ints:
        """Memory of each target once the mirrored instances failed over."""
        board, some = self._board, self._mirrored
        memory = board.books.memory.copy()
        np.subtract.at(memory, board.secondary[some], board.demands.memory[some])
        room: Ints = memory[self._targets]
        return room

    def _fits(self, one: int) -> Bools:
        """Per target: whether it takes the instance when it comes first of all."""
        board, targets = self._board, self._targets
        demands, books = board.demands, board.books
        fits: Bools = self._room() > demands.memory[one]
        if one in self._shared:
            fits &= board.may_migrate[self._node, targets]
            return fits
        if demands.local[one]:
            spindles = demands.disk_spindles[one]
            left = np.where(spindles == UNKNOWN, UNKNOWN, books.free_spindles[targets] - spindles)
            fits &= books.disk[targets] > demands.disk[one]
            fits &= ~books.exclusive[targets] | (left >= 0)
        fits &= self._allowed(one)
        return fits

    def _allowed(self, one: int) -> Bools:
        """Per target: whether the group's policy would let the instance be made there."""
        board, instance = self._board, self._instance(one)
        snapshot = board.opening.snapshot
        policy = snapshot.groups[snapshot.nodes[int(board.nodes[self._node])].group].policy
        shared, exclusive = (not check_policy(policy, instance, exclusive=e) for e in (False, True))
        return np.where(board.books.exclusive[self._targets], exclusive, shared)

    def _is_ample(self, others: list[int], fits: Bools) -> bool:
        """Whether some target has room for all together, so that no choice can go wrong."""
        board, targets = self._board, self._targets
        if board.books.exclusive.any():
            return False
        demands = board.demands
        memory, disk = demands.memory[others].sum(), demands.disk[others].sum()
        ample = fits.all(axis=0) & (self._room() > memory)
        if disk:
            ample &= board.books.disk[targets] > disk
        return bool(ample.any())

    def _try_out(self) -> bool:
        board = self._board.copy()
        for one in self._mirrored.tolist():
            outcome = board.carry_out(Kind.FAILOVER, np.array([one]), np.array([0]), force=True)
            board.apply(outcome, one)
        return all(self._move(board, one) for one in self._shared) and all(
            self._make_anew(board, one) for one in self._anew
        )

    def _move(self, board: Board, one: int) -> bool:
        some = np.full(len(self._targets), one)
        outcome = board.carry_out(Kind.FAILOVER_TO_ANY, some, self._targets, force=True)
        fits = np.flatnonzero(outcome.codes == 0)
        if not len(fits):
            return False
        scores = Score(board.books, board.crowding).exact(outcome.changed)[fits]
        target = self._targets[fits[[_last_best(scores, last_if_nan=True)]]]
        chosen = board.carry_out(Kind.FAILOVER_TO_ANY, some[:1], target, force=True)
        board.apply(chosen, one)
        return True

    def _make_anew(self, board: Board, one: int) -> bool:
        """Put it on another node as well; it does not leave this one."""
        targets = self._targets[self._allowed(one)]
        some = np.full(len(targets), one)
        codes, after = add_primary(
            board.books.at(targets),
            board.demands.at(some),
            clashes=board.clashes(some, targets),
            location=board.unmet[some, targets],
            force=np.ones(len(targets), dtype=np.bool_),
        )
        fits = np.flatnonzero(codes == 0)
        if not len(fits):
            return False
        crowding = _crowding_with(board, one, targets[fits])
        changed = Changed(targets[None, fits], figures(after.at(fits))[:, None], crowding)
        scores = Score(board.books, board.crowding).exact(changed)
        best = fits[[_last_best(scores, last_if_nan=False)]]
        target = int(targets[best[0]])
        board.books.put(target, after.at(best))
        board.holders[:, target] += board.tagged[one]
        if not board.books.offline[target]:
            board.crowds += np.outer(board.places[target], board.tagged[one])
        return True


def _crowding_with(board: Board, one: int, targets: Ints) -> Ints:
    """Per target: how much more crowded locations are with the instance there as well."""
    crowded: Ints = (board.crowds > 0) @ board.tagged[one]
    online = ~board.books.offline[targets]
    found: Ints = (board.places[targets] @ crowded) * online
    return found


def _last_best(scores: Floats, *, last_if_nan: bool) -> int:
    """The last of the lowest; with NaN htools takes the last of a move's, the first of others."""
    if np.isnan(scores).any():
        return len(scores) - 1 if last_if_nan else 0
    return int(np.flatnonzero(scores == scores.min())[-1])
