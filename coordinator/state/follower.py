"""Keeps one candidate's replica at the newest commit, whatever happens to either of them."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from common.errors import Bug, Deposed, GntError
from common.figures import CandidateFigures
from common.model.node import Node
from common.model.stamp import Stamp
from common.names import Epoch
from common.noderpc.replica import Diverged, Replica, Row
from coordinator.state.levelling import Levelling
from coordinator.state.ring import Ring
from coordinator.state.rows import to_row
from coordinator.state.state import State

QUIET_S = 0.1  # without commits, look after the archive
IDLE_S = 5.0  # without commits, ask this often: so a deposed master learns it in its idleness
FIRST_RETRY_S, LAST_RETRY_S = 0.1, 5.0
PART_BYTES = 2**20  # of a whole copy

log = logging.getLogger(__name__)


class Source(Protocol):
    """What a follower follows, and whom it tells."""

    epoch: Epoch
    ring: Ring
    newest: State  # the state at ``ring.newest``

    def levelling(self, follower: "Follower") -> Levelling | None:
        """Return what makes the follower's archive complete; None while that cannot be."""

    def progressed(self, follower: "Follower") -> None:
        """Hear that ``follower.stored`` or ``follower.trouble`` has changed."""

    def depose(self, error: Deposed) -> None:
        """Hear that there is another master."""


class Follower:
    """One replica, seen from the master.

    ``stored`` is how far it certainly has come on this master's history, None while that is
    unknown; ``trouble`` why the last attempt failed, None when it went well.
    """

    def __init__(self, node: Node, source: Source, replica_of: Callable[[Node], Replica]) -> None:
        self.node = node
        self.stored: Stamp | None = None
        self.trouble: GntError | None = None
        self.failures = 0  # since the last success
        self.obeyed_s: float | None = None  # when the last order that went well was given
        self._level_s: float | None = None  # when it lacked nothing, last
        self._source = source
        self._replica_of = replica_of
        self._position: Stamp | None = None  # what the replica last said of itself
        self._diverged = False
        self._copies = 0
        self._levelling: Levelling | None = None
        self._level_failed = False  # the last time
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Say that there is a new commit."""
        self._news.set()

    def figures(self, newest: Stamp, now_s: float) -> CandidateFigures:
        """Tell how far this is from the newest commit."""
        behind = None if self.stored is None else newest.serial - self.stored.serial
        behind_s = None if self._level_s is None else now_s - self._level_s
        return CandidateFigures(
            name=self.node.name,
            answers=self.trouble is None,
            behind=behind,
            behind_s=0.0 if behind == 0 else behind_s,
        )

    async def run(self) -> None:
        """Follow until cancelled, or until the node says that it has another master."""
        while True:
            try:
                began_s = asyncio.get_running_loop().time()
                if await self._advance():
                    self.obeyed_s = began_s
                    self._succeed()
                await self._rest()
            except Deposed as error:
                self._source.depose(error)
                return
            except GntError as error:
                await self._fail(error)
            except Exception as error:
                log.exception("the replica of %s could not be written", self.node.name)
                await self._fail(Bug(f"An internal error: {type(error).__name__}: {error}."))

    async def _advance(self) -> bool:
        """Bring the replica one call closer to the newest commit; tell whether that is so."""
        replica, ring = self._replica_of(self.node), self._source.ring
        if self._diverged:
            return await self._copy(replica)
        if self._position is None or self._position == ring.newest:
            return await self._ask(replica)
        commits = ring.after(self._position.serial)
        if commits is None:
            return await self._copy(replica)
        self._position = await replica.append(commits=commits)
        if self._position != commits[-1].stamp:
            self._diverged = True  # it is ahead of us: by what was never acknowledged
            return False
        self.stored = self._position
        return True

    async def _ask(self, replica: Replica) -> bool:
        """Ask how far the replica is; tell whether it needs nothing.

        The call is fenced as any other, so a deposed master learns of it here.
        """
        newest = self._source.ring.newest
        self._position = await replica.append(commits=())
        if self._position == newest:
            self.stored = newest
        elif self.stored is not None and self._position.serial < self.stored.serial:
            self.stored = None  # it lost what it had
        return self._position == newest

    async def _copy(self, replica: Replica) -> bool:
        """Replace whatever the replica holds."""
        state = self._source.newest
        self._source.ring.hold(self, state.stamp.serial)
        self._copies += 1
        name = f"{self._source.epoch}.{state.stamp.serial}.{self._copies}"
        log.info("sending a whole copy of the state to %s", self.node.name)
        first = True
        for rows, last in _parts(state):
            becomes = state.stamp if last else None
            await replica.restore(copy=name, rows=rows, first=first, becomes=becomes)
            first = False
        self._diverged = False
        self._levelling = None
        self._position = self.stored = state.stamp
        return True

    def _succeed(self) -> None:
        if self._position is not None:
            self._source.ring.reached(self, self._position.serial)
        if self._position == self._source.ring.newest:
            self._level_s = asyncio.get_running_loop().time()
        if self.trouble is not None:
            log.info("%s stores the state again", self.node.name)
        self.trouble = None
        self.failures = 0
        self._source.progressed(self)

    async def _fail(self, error: GntError) -> None:
        self._source.ring.let_go(self)
        if isinstance(error, Diverged):
            self._diverged = True  # no wonder after a change of masters; a copy mends it
        elif self.trouble is None or self.trouble.message != error.message:
            log.warning("%s does not store the state: %s", self.node.name, error.message)
        self._position = None
        self.trouble = error
        self.failures += 1
        self._source.progressed(self)
        await asyncio.sleep(min(FIRST_RETRY_S * 2 ** (self.failures - 1), LAST_RETRY_S))

    async def _rest(self) -> None:
        """Wait until there is something to store, or it is time to ask again."""
        if self._diverged or self._position != self._source.ring.newest:
            return
        self._news.clear()
        try:
            async with asyncio.timeout(self._patience_s()):
                await self._news.wait()
        except TimeoutError:
            await self._complete()

    def _patience_s(self) -> float:
        """Return how long nothing has to happen before it is time for something else."""
        self._levelling = self._levelling or self._source.levelling(self)
        if self._levelling is None or self._levelling.is_done or self._level_failed:
            return IDLE_S
        return QUIET_S

    async def _complete(self) -> None:
        """Bring the archive forward until there is something more urgent."""
        try:
            while not self._news.is_set() and self._levelling and not self._levelling.is_done:
                await self._levelling.step()
            self._level_failed = False
        except Deposed:
            raise
        except GntError as error:  # there is always another time
            log.info("the archive of %s is not complete yet: %s", self.node.name, error.message)
            self._level_failed = True


def _parts(state: State) -> Iterator[tuple[tuple[Row, ...], bool]]:
    """Yield all rows of ``state`` in parts, and with each whether it is the last."""
    part: list[Row] = []
    size = 0
    for item in state.items():
        if size >= PART_BYTES:
            yield tuple(part), False
            part, size = [], 0
        row = to_row(item)
        part.append(row)
        size += memoryview(row.body).nbytes
    yield tuple(part), True
