"""All moves of all instances estimated at once, and the few that may be the best picked out.

The variance of a figure after a move is a sum: of what leaves the instance's own nodes, which is
the same for all targets, and of what comes to the target. For most figures the latter is an
amount of the instance times a factor of the node, so that the variances of all moves of a kind
are a product of two thin matrices. What a secondary keeps free for its primary is not, and is
worked out move by move, in one array operation.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Ints
from coordinator.allocator.balancing.board import Board, Kind
from coordinator.allocator.balancing.effects import distinct_spreads, roughly
from coordinator.allocator.balancing.fitting import Room
from coordinator.allocator.balancing.towards import Candidates as Candidates
from coordinator.allocator.balancing.towards import Moves
from coordinator.allocator.books.score import WEIGHTS, Term
from coordinator.allocator.books.terms import Score

_BLOCK = 1 << 15  # moves of a kind estimated at a time, so that the numbers stay in the cache


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be done.

    Attributes:
        targets: positions of nodes, rising.
        disk_moves, instance_moves: whether disks may be copied, primaries changed.
        restricted: live migration only to the secondary.
        force: ignore soft limits.
    """

    targets: Ints
    disk_moves: bool = True
    instance_moves: bool = True
    restricted: bool = False
    force: bool = False


class Sieve:
    """The moves of one step.

    Attributes:
        board, score, allowed: the group, how it stands, and what may be done.
        some: positions of the instances that may move.
        targets, target_books, room: where to, and what there is.
        n1_matters: whether a move may change how many nodes lack memory for a failover.
    """

    def __init__(self, board: Board, score: Score, some: Ints, allowed: Allowed) -> None:
        self.board = board
        self.score = score
        self.some = some
        self.allowed = allowed
        self.targets = allowed.targets
        self.spreads = distinct_spreads(board, score, some, allowed.targets)
        self.target_books = board.books.at(allowed.targets)
        self.room = Room(self.target_books)
        self._held = (board.holders[:, allowed.targets] > 0).astype(np.int64)
        books = board.books
        reliable = ~(books.fails_n1 | (books.memory <= books.reserved)) | books.offline
        homes = np.concatenate((board.primary[some], board.secondary[some]))
        self.n1_matters = bool(allowed.force or not reliable.all() or board.is_offline(homes).any())

    def near_best(self, bound: float, tolerance: float) -> list[Candidates]:
        """Moves estimated within ``tolerance`` of the best, or of ``bound`` if that is less."""
        found: list[Candidates] = []
        best = bound
        with np.errstate(invalid="ignore"):  # an offline node may have none of anything
            for candidates in self._all():
                lowest = float(candidates.estimates.min(initial=np.inf))
                best = min(best, lowest)
                if lowest <= best + tolerance:
                    found.append(_only(candidates, best + tolerance))
        return [_only(each, best + tolerance) for each in found]

    def _all(self) -> Iterator[Candidates]:
        board, allowed = self.board, self.allowed
        mirrored = board.demands.mirrored[self.some]
        others = self.some[~mirrored]
        pairs = self.some[mirrored]
        offline = board.is_offline(board.primary[pairs])
        valid = np.isin(board.secondary[pairs], self.targets) & allowed.instance_moves
        yield from self._failovers(pairs[valid])
        if allowed.instance_moves:
            yield from self._towards(Kind.FAILOVER_TO_ANY, others)
        if not allowed.disk_moves:
            return
        yield from self._towards(Kind.REPLACE_SECONDARY, pairs)
        if not allowed.instance_moves:
            return
        free = offline | (not allowed.restricted)
        yield from self._towards(Kind.REPLACE_AND_FAILOVER, pairs[free])
        yield from self._towards(Kind.FAILOVER_AND_REPLACE, pairs[free & valid])
        if not allowed.restricted:
            yield from self._towards(Kind.REPLACE_PRIMARY, pairs[valid])

    def _failovers(self, some: Ints) -> Iterator[Candidates]:
        if not len(some):
            return
        nowhere = np.zeros(len(some), dtype=np.int64)
        outcome = self.board.carry_out(Kind.FAILOVER, some, nowhere, force=self.allowed.force)
        fits = outcome.codes == 0
        changed = outcome.changed
        value = np.full(len(some), np.inf)
        value[fits] = roughly(self.score, changed.nodes[:, fits], changed.figures[:, :, fits])
        value += WEIGHTS[Term.LOCATION_EXCLUSION_SCORE] * outcome.crowding
        yield Candidates(Kind.FAILOVER, some, nowhere, value)

    def clashes(self, some: Ints, as_primary: bool) -> Ints | None:
        """Matrix of exclusion tags that are taken on targets; None if that plays no part."""
        if not as_primary or not len(self._held):
            return None
        taken: Ints = self.board.tagged[some] @ self._held
        return taken

    def _towards(self, kind: Kind, some: Ints) -> Iterator[Candidates]:
        rows = max(1, _BLOCK // max(1, len(self.targets)))
        if len(some) and len(self.targets):
            moves = Moves(self, kind, some)
            for start in range(0, len(some), rows):
                yield moves.block(slice(start, start + rows))


def _only(candidates: Candidates, limit: float) -> Candidates:
    near = np.flatnonzero(candidates.estimates <= limit)
    return Candidates(
        candidates.kind,
        candidates.instances[near],
        candidates.targets[near],
        candidates.estimates[near],
    )
