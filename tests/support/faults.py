"""What can happen to calls, by name; put into ``cluster.network.faults``."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from common.errors import Deposed, NodeFailure
from common.names import Epoch, NodeName
from common.noderpc.mastership import Ballot
from common.rpc.envelope import answer
from common.rpc.server import Reply, refusal
from tests.support.network import Fault, Trip

LONGEST_WAIT_S = 600.0

Which = Callable[[Trip], bool]


class Mishap(StrEnum):
    """What becomes of one call."""

    FAILS_BEFORE = "fails before it takes effect"
    FAILS_AFTER = "fails after it took effect"
    IS_LOST = "never arrives"
    ANSWER_IS_LOST = "takes effect, and its answer is lost"
    CONNECTION_BREAKS = "takes effect, and the connection breaks before the answer"
    NODED_RESTARTS = "takes effect, and noded is killed before the answer, and soon back"


@dataclass
class Watching(Fault):
    """Notes the calls that ``which`` picks, in the order in which they are answered."""

    which: Which
    seen: list[Trip] = field(default_factory=list)

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if self.which(trip):
            self.seen.append(trip)
        return reply


@dataclass
class Once(Fault):
    """Has one mishap happen to call number ``index`` of those that ``which`` picks."""

    which: Which
    index: int
    mishap: Mishap
    restart: Callable[[str], Awaitable[None]]  # kills noded on a machine; it comes back by itself
    hit: Trip | None = None
    _count: int = 0

    async def going(self, trip: Trip) -> Reply | None:
        if not self.which(trip):
            return None
        if self._count == self.index:
            self.hit = trip
        self._count += 1
        if self.hit is trip and self.mishap is Mishap.FAILS_BEFORE:
            return _injected(trip)
        if self.hit is trip and self.mishap is Mishap.IS_LOST:
            await asyncio.Future()
        return None

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if self.hit is not trip:
            return reply
        if self.mishap is Mishap.FAILS_AFTER:
            return _injected(trip)
        if self.mishap is Mishap.NODED_RESTARTS:
            await self.restart(trip.target)
        if self.mishap in (Mishap.CONNECTION_BREAKS, Mishap.NODED_RESTARTS):
            raise ConnectionResetError("the connection was reset")
        await asyncio.Future()
        return reply


@dataclass
class Trap(Fault):
    """Springs on answer number ``index`` of those that ``which`` picks, which nobody sees then."""

    which: Which
    index: int
    spring: Callable[[], None]
    sprung: asyncio.Event = field(default_factory=asyncio.Event)
    _count: int = 0

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if not self.which(trip):
            return reply
        self._count += 1
        if self._count == self.index + 1:
            self._snap()
            await asyncio.Future()
        return reply

    async def until_sprung(self) -> None:
        """Return when it has sprung; if one call fewer comes than last time, when all is over.

        That can be: two commits which are made at once are one call.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAIT_S):
                await self.sprung.wait()
                return
        assert self._count == self.index, f"{self._count} came of {self.index + 1}"
        self._snap()

    def _snap(self) -> None:
        self.spring()
        self.sprung.set()


@dataclass
class Slow(Fault):
    """Makes calls that ``which`` picks take longer, each way."""

    which: Which
    delay_s: float

    async def going(self, trip: Trip) -> Reply | None:
        if self.which(trip):
            await asyncio.sleep(self.delay_s)
        return None

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if self.which(trip):
            await asyncio.sleep(self.delay_s)
        return reply


@dataclass
class Lossy(Fault):
    """Loses calls and answers by chance, and breaks connections."""

    random: Random
    chance: float

    async def going(self, trip: Trip) -> Reply | None:
        if self.random.random() < self.chance:
            await asyncio.Future()
        return None

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if self.random.random() < self.chance:
            if self.random.random() < 0.5:
                raise ConnectionResetError("the connection was reset")
            await asyncio.Future()
        return reply


@dataclass
class Gate(Fault):
    """Holds the calls that ``which`` picks until it is opened, or else their answers."""

    which: Which
    answers: bool = False
    held: list[Trip] = field(default_factory=list)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def going(self, trip: Trip) -> Reply | None:
        if not self.answers:
            await self._wait(trip)
        return None

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if self.answers:
            await self._wait(trip)
        return reply

    async def until_held(self, count: int = 1) -> None:
        """Return when so many have come."""
        async with asyncio.timeout(LONGEST_WAIT_S):
            while len(self.held) < count:  # noqa: ASYNC110  # time costs nothing here
                await asyncio.sleep(0.001)

    async def _wait(self, trip: Trip) -> None:
        if self.which(trip) and not self.opened.is_set():
            self.held.append(trip)
            await self.opened.wait()


@dataclass
class Late(Fault):
    """Holds some calls and answers up by chance, now and then beyond their callers' limits."""

    random: Random
    chance: float
    most_s: float

    async def going(self, trip: Trip) -> Reply | None:
        await self._hold_up()
        return None

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        await self._hold_up()
        return reply

    async def _hold_up(self) -> None:
        if self.random.random() < self.chance:
            await asyncio.sleep(self.random.uniform(0, self.most_s))


@dataclass
class Repeated(Fault):
    """Has some calls arrive a second time, a while later."""

    random: Random
    chance: float
    most_s: float

    def again_after_s(self, trip: Trip) -> float | None:
        if self.random.random() < self.chance:
            return self.random.uniform(0, self.most_s)
        return None


@dataclass
class Failing(Fault):
    """Has every call that ``which`` picks fail before it takes effect."""

    which: Which
    message: str = "injected"

    async def going(self, trip: Trip) -> Reply | None:
        return refusal(NodeFailure(self.message)) if self.which(trip) else None


def _injected(trip: Trip) -> Reply:
    return refusal(NodeFailure(f"Injected into {trip}."))


@dataclass
class LastCall(Fault):
    """Has call number ``index`` from a machine be the last that it makes; then ``hit`` is set."""

    source: str
    index: int
    after: bool  # it was carried out
    hit: asyncio.Event = field(default_factory=asyncio.Event)
    _count: int = 0
    _trip: Trip | None = None

    async def going(self, trip: Trip) -> Reply | None:
        if trip.source == self.source:
            if self._count == self.index:
                self._trip = trip
            self._count += 1
            if self.hit.is_set() or (self._trip is trip and not self.after):
                await self._end()
        return None

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if trip is self._trip:
            await self._end()
        return reply

    async def _end(self) -> None:
        self.hit.set()
        await asyncio.Future()


@dataclass
class Claiming(Fault):
    """Has a machine answer all calls of others by saying that it obeys ``master``, not them."""

    liar: str
    master: str

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        if trip.target != self.liar or trip.source == self.liar:
            return reply
        epoch = trip.envelope.epoch + 1
        if trip.call.returns is Ballot:
            return Reply(200, answer(Ballot(master=NodeName(self.master), epoch=Epoch(epoch))))
        told = f"This node obeys {self.master}, master since epoch {epoch}."
        return refusal(Deposed(told, epoch=epoch, master=self.master))
