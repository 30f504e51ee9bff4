"""Typed calls to nodes: what goes with each, how long it may take, what its failure means."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeVar, cast

from common.errors import BadAnswer, Deposed, Expired, Unreachable
from common.model.node import Node
from common.names import CallId, Epoch, JobId
from common.rpc.client import Transport, stub
from common.rpc.declare import CallSpec, NodeService
from common.rpc.envelope import Envelope
from common.rpc.server import Reply
from common.tls.context import EXPIRED, NOT_YET_VALID
from coordinator.nodes.clocks import Clocks
from coordinator.nodes.dial import Dial
from coordinator.nodes.heard import Heard
from coordinator.nodes.lives import Lives
from coordinator.nodes.silence import GLANCE_S, Silence

S = TypeVar("S", bound=NodeService)
Heed = Callable[[Node, Deposed], Awaitable[None]]

MOST_REFUSALS = 3  # of an order that comes too late by a clock which we did not know well enough
CLOCKS = "Compare the clocks of both nodes first; if they are right, it has to be renewed."


@dataclass(frozen=True)
class Nodes:
    """Gives out stubs of node services, for one mastership.

    ``epoch`` goes with every call; 0 before one was granted. ``random`` makes call ids. ``heed``
    is awaited when a node says that it obeys another master, before the caller hears it.
    """

    dial: Dial
    epoch: Epoch
    random: Random
    clocks: Clocks = field(default_factory=Clocks)
    lives: Lives = field(default_factory=Lives)
    silence: Silence = field(default_factory=Silence)
    heard: Heard = field(default_factory=Heard)
    heed: Heed | None = None

    def service(
        self,
        kind: type[S],
        node: Node,
        job: JobId | None = None,
        *,
        through: Callable[[Transport], Transport] | None = None,
    ) -> S:
        """Return a ``kind`` whose every method is a call to ``node``, made for ``job``.

        ``through`` wraps what carries the calls, for somebody who wants to know of them.

        A call that is safe to repeat is tried a second time, under the same call id, when
        its connection broke. An order that the node refuses because it does not know yet, or
        not well enough, until when it is good, is given again as long as its caller waits.

        Raises (the calls):
            Unreachable: no answer in the call's time, or no connection; ``offline`` in the
                detail is True for a node marked offline, which is not even tried, and
                ``stranger`` for one that shows no certificate of this cluster. Where a call
                only looks, a node that did not answer lately is not waited for again.
            GntError: whatever the node raised.
        """
        line: Transport = _Line(self, node, job)
        service = stub(kind, through(line) if through else line)
        return service if self.heed is None else cast(S, _Heeded(service, node, self.heed))

    def with_epoch(self, epoch: Epoch) -> "Nodes":
        """Return the same for another mastership."""
        return replace(self, epoch=epoch)

    def heeding(self, heed: Heed) -> "Nodes":
        """Return the same, with somebody who hears of nodes that obey another master."""
        return replace(self, heed=heed)


@dataclass(frozen=True, slots=True)
class _Line:
    """The transport of one stub."""

    nodes: Nodes
    node: Node
    job: JobId | None

    @property
    def peer(self) -> str:
        return self.node.name

    async def send(self, call: CallSpec, body: bytes) -> bytes:
        if self.node.offline:
            raise Unreachable(
                f"Node {self.peer} is marked offline; it was not asked for {call.name}.",
                node=self.peer,
                offline=True,
            )
        silence = self.nodes.silence
        since_s = silence.since(self.node.uuid, call.name)
        if not call.looks or since_s is None:
            return await self._ask(call, body)
        outcome = await silence.glance(
            self.node.uuid, call.name, body, lambda: self._ask(call, body)
        )
        if isinstance(outcome, bytes):
            return outcome
        silent_s = asyncio.get_running_loop().time() - since_s
        raise outcome or Unreachable(
            f"Node {self.peer} has not answered for {silent_s:.0f} s; is it up, and does "
            "gantry-noded run there?",
            node=self.peer,
            silent_s=silent_s,
        )

    async def _ask(self, call: CallSpec, body: bytes) -> bytes:
        loop, silence = asyncio.get_running_loop(), self.nodes.silence
        asked_s = loop.time()
        deadline = asked_s + call.timeout
        try:
            async with asyncio.timeout_at(deadline):
                reply = await self._try(call, body, deadline)
                for _ in range(MOST_REFUSALS - 1):
                    if reply.status != Expired.http_status:
                        break
                    reply = await self._try(call, body, deadline)
        except TimeoutError as error:
            silence.begins(self.node.uuid, call.name, asked_s)
            raise Unreachable(
                f"Node {self.peer} did not answer {call.name} within {call.timeout:g} seconds.",
                node=self.peer,
            ) from error
        except OSError as error:
            if loop.time() - asked_s > GLANCE_S:  # a router's word, perhaps, after seconds
                silence.begins(self.node.uuid, call.name, asked_s)
            stranger = isinstance(error, ssl.SSLCertVerificationError)
            raise Unreachable(
                _explain(self.node, call, error), node=self.peer, stranger=stranger
            ) from error
        silence.ends(self.node.uuid, call.name)
        self.nodes.heard.note(self.node.uuid, call, asked_s, reply)
        return reply.body

    async def _try(self, call: CallSpec, body: bytes, deadline_s: float) -> Reply:
        # Under an id of its own: the refusal of one before may be recorded.
        call_id = CallId(f"{self.nodes.random.getrandbits(128):032x}")
        try:
            return await self._send(call, call_id, body, deadline_s)
        except OSError as error:
            if not call.safe_to_repeat or not _may_pass(error):
                raise
        return await self._send(call, call_id, body, deadline_s)

    async def _send(self, call: CallSpec, call_id: CallId, body: bytes, deadline_s: float) -> Reply:
        clocks, loop = self.nodes.clocks, asyncio.get_running_loop()
        good_until = clocks.good_until(self.node.uuid, deadline_s, loop.time())
        envelope = Envelope(
            epoch=self.nodes.epoch, call=call_id, job=self.job, good_until=good_until
        )
        reply = await self.nodes.dial.send(self.node, call, envelope, body)
        if len(reply.body) > call.largest_answer:
            raise BadAnswer(
                f"{self.peer} answered {call.name} with {len(reply.body)} bytes, and "
                f"{call.largest_answer} are the most that are taken."
            )
        if reply.shown is not None:
            clocks.heard(self.node.uuid, reply.shown, loop.time())
            self.nodes.lives.heard(self.node.uuid, reply.shown.process, loop.time())
        return reply


class _Heeded:
    """A service that tells when its node obeys another master."""

    def __init__(self, service: NodeService, node: Node, heed: Heed) -> None:
        self._service, self._node, self._heed = service, node, heed

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._service, name)

        async def call(**arguments: Any) -> Any:
            try:
                return await method(**arguments)
            except Deposed as error:
                await self._heed(self._node, error)
                raise

        return call


def _may_pass(error: OSError) -> bool:
    """Tell whether trying again at once makes sense."""
    return not isinstance(error, TimeoutError | ConnectionRefusedError | ssl.SSLError)


def _explain(node: Node, call: CallSpec, error: OSError) -> str:
    where = f"Node {node.name} ({node.primary_ip}, port {node.port})"
    match error:
        case ConnectionRefusedError():
            return f"{where} refuses connections; is gantry-noded running there?"
        case ssl.SSLCertVerificationError():
            told = f"{where} has no valid certificate of this cluster: {_reason(error)}."
            wrong_time = getattr(error, "verify_code", 0) in (NOT_YET_VALID, EXPIRED)
            return f"{told} {CLOCKS}" if wrong_time else told
        case ssl.SSLError():
            return f"{where} ended the TLS handshake of {call.name}: {_reason(error)}."
        case _:
            return f"{where} is out of reach: {error.strerror or error}."


def _reason(error: ssl.SSLError) -> str:
    return getattr(error, "verify_message", None) or getattr(error, "reason", None) or str(error)
