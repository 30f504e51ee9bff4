"""Carrying out moves of one kind, many side by side, each on the books as they stand.

A node is changed step by step as htools does it, and the first step that is refused spoils the
move; which step that was plays no part.
"""

from typing import TYPE_CHECKING, assert_never

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.balancing.moves import Kind, Outcome
from coordinator.allocator.books.books import Books
from coordinator.allocator.books.shift import add_primary, add_secondary, first_failure
from coordinator.allocator.refusal import Reason

if TYPE_CHECKING:
    from coordinator.allocator.balancing.board import Board

_Ends = tuple[Ints, Ints]  # primary and secondary afterwards
_Touched = tuple[tuple[Ints, Books], ...]


class Carrying:
    """Instances on the move, one candidate each."""

    def __init__(self, board: "Board", some: Ints, targets: Ints, *, force: bool) -> None:
        """Take the instances off their nodes.

        Args:
            board: the group.
            some: positions of instances.
            targets: positions of nodes; of no meaning for a failover.
            force: ignore soft limits everywhere.
        """
        self._board, self._some, self._targets = board, some, targets
        self._demands = board.demands.at(some)
        self._home, self._mirror = board.primary[some], board.secondary[some]
        self._forced = np.full(len(some), force)
        # Of a node that is offline an instance has to go, whatever soft limits say.
        self._off_home = board.is_offline(self._home) | force
        self._off_mirror = board.is_offline(self._mirror) | force
        self._less, self._mirror_less = board.at_home(some)
        self._refused: list[tuple[Bools, Reason]] = []

    def out(self, kind: Kind) -> Outcome:
        """Make the moves."""
        match kind:
            case Kind.FAILOVER:
                ends, touched, location = self._fail_over()
            case Kind.FAILOVER_TO_ANY:
                ends, touched, location = self._fail_over_to_any()
            case Kind.REPLACE_SECONDARY:
                ends, touched, location = self._replace_secondary()
            case Kind.REPLACE_AND_FAILOVER:
                ends, touched, location = self._replace_and_fail_over()
            case Kind.REPLACE_PRIMARY:
                ends, touched, location = self._replace_primary()
            case Kind.FAILOVER_AND_REPLACE:
                ends, touched, location = self._fail_over_and_replace()
            case _:
                assert_never(kind)
        return Outcome(
            first_failure(self._refused),
            np.stack([node for node, _ in touched]),
            tuple(books for _, books in touched),
            *ends,
            location,
            self._board.crowding_of(self._some, ends[0]),
        )

    def _fail_over(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror = self._home, self._mirror
        location = self._location(mirror, home)
        self._migrate(home, mirror)
        first = self._run(self._mirror_less, mirror, location, self._off_home)
        any_disk = self._board.is_offline(home)
        second = self._keep(self._less, home, mirror, self._off_home, any_disk)
        return (mirror, home), ((mirror, first), (home, second)), location

    def _fail_over_to_any(self) -> tuple[_Ends, _Touched, Ints]:
        home, targets = self._home, self._targets
        location = self._board.unmet[self._some, targets]
        self._migrate(home, targets)
        first = self._run(self._board.books.at(targets), targets, location, self._off_home)
        return (targets, self._mirror), ((targets, first), (home, self._less)), location

    def _replace_secondary(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror, targets = self._home, self._mirror, self._targets
        location = self._location(home, targets)
        at_target = self._board.books.at(targets)
        second = self._keep(at_target, targets, home, self._off_mirror)
        first = self._put_back(location)
        touched = ((home, first), (targets, second), (mirror, self._mirror_less))
        return (home, targets), touched, location

    def _replace_and_fail_over(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror, targets = self._home, self._mirror, self._targets
        location = self._location(targets, home)
        self._migrate(home, targets)
        first = self._run(self._board.books.at(targets), targets, location, self._forced)
        second = self._keep(self._less, home, targets, self._off_mirror)
        touched = ((targets, first), (home, second), (mirror, self._mirror_less))
        return (targets, home), touched, location

    def _replace_primary(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror, targets = self._home, self._mirror, self._targets
        location = self._location(targets, mirror)
        self._migrate(home, mirror)
        self._migrate(mirror, targets)
        self._run(self._mirror_less, mirror, location, self._off_home)
        first = self._run(self._board.books.at(targets), targets, location, self._off_home)
        second = self._keep(self._mirror_less, mirror, targets, self._off_home)
        touched = ((targets, first), (mirror, second), (home, self._less))
        return (targets, mirror), touched, location

    def _fail_over_and_replace(self) -> tuple[_Ends, _Touched, Ints]:
        home, mirror, targets = self._home, self._mirror, self._targets
        location = self._location(mirror, targets)
        self._migrate(home, mirror)
        first = self._run(self._mirror_less, mirror, location, self._off_home)
        at_target = self._board.books.at(targets)
        second = self._keep(at_target, targets, mirror, self._off_home)
        touched = ((mirror, first), (targets, second), (home, self._less))
        return (mirror, targets), touched, location

    def _location(self, first: Ints, second: Ints) -> Ints:
        """Location tags that two nodes share, and wishes that the first does not meet."""
        shared: Ints = self._board.shared_places[first, second]
        return shared + self._board.unmet[self._some, first]

    def _migrate(self, sources: Ints, ends: Ints) -> None:
        self._refused.append((~self._board.may_migrate[sources, ends], Reason.MIGRATION))

    def _run(self, on: Books, at: Ints, location: Ints, force: Bools) -> Books:
        clashes = self._board.clashes(self._some, at)
        codes, after = add_primary(
            on, self._demands, clashes=clashes, location=location, force=force
        )
        self._refused.append((codes > 0, Reason.MEMORY))
        return after

    def _keep(
        self, on: Books, at: Ints, of: Ints, force: Bools, any_disk: Bools | None = None
    ) -> Books:
        promised = self._board.promised[at, of]
        codes, after = add_secondary(
            on, self._demands, promised=promised, force=force, any_disk=any_disk
        )
        self._refused.append((codes > 0, Reason.MEMORY))
        return after

    def _put_back(self, location: Ints) -> Books:
        """The instance on its primary again, which looks anew at whether that fails N+1."""
        codes, after = add_primary(
            self._less,
            self._demands,
            clashes=self._board.freed(self._some),
            location=location,
            force=np.ones(len(self._some), dtype=np.bool_),
        )
        self._refused.append((codes > 0, Reason.MEMORY))
        return after
