"""The wires of a simulated cluster: calls travel as bytes, slowly, and not always to their end.

What was sent goes on without its sender: a caller that gives up, or is killed, does not take its
order with it. A wire that is cut holds what is sent, as a switch does that lost power. Once it is
mended, what was on an open connection arrives after a while, as TCP tries it again and again; what
still had to connect arrives only if its caller waits. A process that is gone refuses at once.
"""

import asyncio
import errno
import ssl
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import NamedTuple, Protocol

from common.errors import GntError, InvalidRequest, Unreachable
from common.model.node import Node
from common.names import CallId, Epoch
from common.rpc.client import Transport
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope, read_headers
from common.rpc.server import Reply
from common.tasks import Background, unharmed
from common.tls.context import Peer
from coordinator.nodes.sign_of_life import Address, IsAlive
from noded.daemon.node import Node as Noded
from tests.support.image import Identity

LATENCY_S = (0.0002, 0.002)
TRIED_AGAIN_S = (0.0, 20.0)  # how long after a wire was mended TCP finds out
LOOPBACK = "127.0.0.1"


class Place(Protocol):
    """A machine, as its wires see it."""

    name: str
    ip: str
    has_power: bool

    @property
    def noded(self) -> Noded | None: ...

    @property
    def process(self) -> Background:
        """Owns what noded does; it ends with noded."""

    def shows(self) -> Identity | None:
        """Return what its certificate says; None while it is in no cluster."""


class Trip(NamedTuple):
    """One call on its way."""

    source: str
    target: str
    call: CallSpec
    envelope: Envelope
    body: bytes

    @property
    def is_commit(self) -> bool:
        return self.call.name == "replica.append" and self.body != b'{"commits":[]}'

    @property
    def is_of_a_job(self) -> bool:
        return self.envelope.job is not None

    def __str__(self) -> str:
        return f"{self.call.name} to {self.target}"


class Fault:
    """Does nothing; its children do. A fault sees every call, there and back."""

    async def going(self, trip: Trip) -> Reply | None:
        """Act before the call arrives; an answer, if given, keeps it from arriving."""
        return None

    async def coming(self, trip: Trip, reply: Reply) -> Reply:
        """Act after it was carried out, before the answer is seen."""
        return reply

    def again_after_s(self, trip: Trip) -> float | None:
        """Have a call that was carried out arrive once more, so much later."""
        return None


class Network:
    """All wires, and what is wrong with them."""

    def __init__(self, random: Random) -> None:
        self.faults: list[Fault] = []
        self._random = random
        self._places: dict[str, Place] = {}  # by IP address
        self._cuts: set[tuple[str, str]] = set()
        self._mended = asyncio.Event()
        self._sent: dict[str, Background] = {}  # what is under way, by who sent it

    def plug_in(self, place: Place) -> None:
        self._places[place.ip] = place
        self._sent[place.name] = Background()

    def give(self, place: Place, ip: str) -> None:
        """Have a machine be at another address, too."""
        self._places[ip] = place

    def take(self, ip: str) -> None:
        """Have nobody be at an address any more."""
        del self._places[ip]

    def cut(self, source: str, target: str, *, one_way: bool = False) -> None:
        """Hold what ``source`` sends to ``target``, and the other way round."""
        self._cuts.add((source, target))
        if not one_way:
            self._cuts.add((target, source))

    def isolate(self, name: str) -> None:
        """Cut a machine off from all others."""
        for place in self._places.values():
            if place.name != name:
                self.cut(name, place.name)

    def heal(self) -> None:
        """Mend all wires."""
        self._cuts.clear()
        self._mended.set()
        self._mended = asyncio.Event()

    async def forget(self, name: str) -> None:
        """Lose what a machine has sent and nobody received: it has no power."""
        await self._sent[name].close()

    async def close(self) -> None:
        """Let nothing arrive any more."""
        for sent in self._sent.values():
            await sent.close()

    def reaches(self, source: str, target: str) -> bool:
        """Tell whether anything sent by one machine arrives at the other, by IP address."""
        if not self._places.keys() >= {source, target}:
            return False
        one, other = self._places[source].name, self._places[target].name
        return not {(one, other), (other, one)} & self._cuts

    def find(self, ip: str, source: Place) -> Place:
        return source if ip == LOOPBACK else self.place_at(ip)

    def place_at(self, ip: str) -> Place:
        """Return who has an address.

        Raises:
            OSError: nobody.
        """
        if ip not in self._places:
            raise OSError(errno.EHOSTUNREACH, "No route to host")
        return self._places[ip]

    def send(self, trip: Trip, arrive: Callable[[], Awaitable[Reply]]) -> asyncio.Future[Reply]:
        """Begin a call; return where its answer will be, if anybody still waits for it.

        Args:
            trip: the call.
            arrive: has its target answer.
        """
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        going = self._carry(trip, arrive, answer)
        self._sent[trip.source].start(going, name=f"carry {trip}")
        return answer

    async def _carry(
        self, trip: Trip, arrive: Callable[[], Awaitable[Reply]], answer: asyncio.Future[Reply]
    ) -> None:
        try:
            reply = await self._there_and_back(trip, arrive, answer)
        except (OSError, GntError) as error:
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(reply)

    async def _there_and_back(
        self, trip: Trip, arrive: Callable[[], Awaitable[Reply]], answer: asyncio.Future[Reply]
    ) -> Reply:
        await self._travel(trip.source, trip.target, answer)
        for fault in tuple(self.faults):
            if (reply := await fault.going(trip)) is not None:
                return reply
        reply = await arrive()
        for fault in tuple(self.faults):
            if (after_s := fault.again_after_s(trip)) is not None:
                again = self._again(arrive, after_s)
                self._sent[trip.source].start(again, name=f"carry {trip} again")
            reply = await fault.coming(trip, reply)
        await self._travel(trip.target, trip.source, answer)
        return reply

    async def _again(self, arrive: Callable[[], Awaitable[Reply]], after_s: float) -> None:
        await asyncio.sleep(after_s)
        with suppress(OSError, GntError):
            await arrive()

    async def _travel(self, source: str, target: str, answer: asyncio.Future[Reply]) -> None:
        """Take the time a packet takes; while the wire is cut, wait for its being mended."""
        if source == target:
            return
        await asyncio.sleep(self._random.uniform(*LATENCY_S))
        if (source, target) not in self._cuts:
            return
        is_connected = self._random.random() < 0.5
        while (source, target) in self._cuts:
            await self._mended.wait()
            await asyncio.sleep(self._random.uniform(*TRIED_AGAIN_S))
        if answer.done() and not is_connected:
            raise ConnectionAbortedError("nobody waits any more")


class Line:
    """What one coordinator calls with: a ``Dial``. ``cut_off`` ends it as a kill does."""

    def __init__(self, network: Network, source: Place) -> None:
        self._network, self._source = network, source
        self._alive = True

    def cut_off(self) -> None:
        """Send nothing any more, and hear nothing; what was sent is on its way."""
        self._alive = False

    async def send(self, node: Node, call: CallSpec, envelope: Envelope, body: bytes) -> Reply:
        """Carry one call; see ``Dial``."""
        envelope = read_headers(envelope.headers())
        source, target = self._source, self._network.find(node.primary_ip, self._source)
        trip = Trip(source.name, target.name, call, envelope, body)
        await self._pass_if_alive()

        def arrive() -> Awaitable[Reply]:
            caller = _shake_hands(source, target, node)
            return _carry_out(target, call, envelope, caller, body)

        try:
            reply = await self._network.send(trip, arrive)
        except OSError:
            await self._pass_if_alive()
            raise
        await self._pass_if_alive()
        return reply

    async def _pass_if_alive(self) -> None:
        while not self._alive:
            await asyncio.Future()


def stranger(network: Network, source: Place) -> Callable[[Node, bytes], Transport]:
    """Return what reaches nodes of no cluster from ``source``."""
    return lambda node, fingerprint: _StrangerLine(network, source, node, fingerprint)


def sign_of_life(network: Network, source: Place) -> IsAlive:
    """Return what looks from ``source`` whether machines run that are not cut off."""

    async def is_alive(addresses: Collection[Address]) -> bool:
        there = [ip for ip, _ in addresses if network.reaches(source.ip, ip)]
        return any(network.place_at(ip).has_power for ip in there)

    return is_alive


@dataclass(frozen=True, slots=True)
class _StrangerLine:
    network: Network
    source: Place
    node: Node
    fingerprint: bytes

    @property
    def peer(self) -> str:
        return self.node.name

    async def send(self, call: CallSpec, body: bytes) -> bytes:
        target = self.network.find(self.node.primary_ip, self.source)
        envelope = Envelope(epoch=Epoch(0), call=CallId(call.name))
        trip = Trip(self.source.name, target.name, call, envelope, body)

        async def arrive() -> Reply:
            token = _noded(target).identity.token
            if token is None or token.fingerprint != self.fingerprint:
                raise InvalidRequest(f"{self.peer} shows another certificate than the token names.")
            return await _carry_out(target, call, envelope, None, body)

        try:
            async with asyncio.timeout(call.timeout):
                reply = await self.network.send(trip, arrive)
        except (OSError, TimeoutError) as error:
            raise Unreachable(f"{self.peer} cannot be reached for joining: {error!r}.") from error
        return reply.body


def _noded(target: Place) -> Noded:
    if target.noded is None:
        raise ConnectionRefusedError("nobody listens")
    return target.noded


def _shake_hands(source: Place, target: Place, node: Node) -> Peer:
    """Do what TLS would: each side checks the other's certificate."""
    _noded(target)
    mine, theirs = source.shows(), target.shows()
    if (
        mine is None
        or theirs is None
        or node.name not in theirs.names
        or not _trusts(mine.trusted, theirs.issuer)
        or not _trusts(theirs.trusted, mine.issuer)
        or not node.is_known_by(theirs.peer.key)
    ):
        raise ssl.SSLCertVerificationError(f"the certificate is not {node.name}'s of this cluster")
    return mine.peer


@cache
def _trusts(authorities: str, issuer: str) -> bool:
    """Tell whether an authority is among some, all PEM: searching them takes long."""
    return issuer in authorities


async def _carry_out(
    target: Place, call: CallSpec, envelope: Envelope, caller: Peer | None, body: bytes
) -> Reply:
    """Have noded answer; it goes on when its caller hangs up, and ends with its process."""
    noded = _noded(target)
    doing = target.process.start(
        noded.call(call.service, call.method, envelope, caller, body), name=f"answer {call.name}"
    )
    try:
        return await unharmed(doing)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if doing.cancelled() and current is not None and not current.cancelling():
            raise ConnectionResetError("the connection was reset") from None
        raise
