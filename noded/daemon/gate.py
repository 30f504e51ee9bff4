"""The port: shakes hands, and lets in no more than the locked memory can bear.

Memory is spent on those who are known. Strangers wait on the porch, few shake hands at a time,
and whoever has shown a certificate gets a place among those of its kind: what nodes that are no
candidates, or strangers to a node of no cluster, do with theirs is no concern of candidates.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

from common import web
from common.places import Places, source_of
from common.porch import Porch
from common.refusals import Refusals
from common.tasks import Background
from common.tls.context import Peer, read_peer

# Each connection past the porch is a third of a MiB, nearly all of it buffers for TLS.
MOST_SHAKING = 8
KEPT_SHAKING = 2  # of these, for where candidates have been seen
MOST_SHAKING_EACH = 3  # with others
MOST_CANDIDATES = 64
MOST_OTHERS, MOST_EACH_OTHER = 6, 3
MOST_BODY_OTHER = 256 << 10  # bytes; large calls are those of candidates
MOST_KNOWN = 64  # sources of candidates that are remembered
HANDSHAKE_PATIENCE_S = 10.0
HURRY_S = 1.0  # for a handshake when others wait
IDLE_S = 60.0  # until a connection is closed on which no whole request head arrived
GOODBYE_S = 2.0  # for answers under way when connections are closed

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Gate:
    """Accepts connections on one port, with a TLS context that can be replaced.

    Who shows the certificate of a node that was removed is sent away as soon as that is seen.
    Candidates who come when all their places are taken wait on the porch, until one whose
    request was answered can give up its own.
    """

    def __init__(
        self,
        listener: socket.socket,
        handle: Handle,
        is_candidate: Callable[[Peer], bool],
        is_revoked: Callable[[Peer], bool],
    ) -> None:
        """Take over ``listener``, which is bound; ``handle`` answers requests."""
        self._handle = handle
        self._is_candidate, self._is_revoked = is_candidate, is_revoked
        self._background = Background()
        self._refusals = Refusals()
        self._porch = Porch(listener, self._refusals, self._let_in)
        self._shaking: dict[socket.socket, tuple[str, float]] = {}  # source, since; oldest first
        self._known: dict[str, None] = {}  # where candidates came from, the latest last
        self._candidates: Places[web.RequestHandler] = Places(MOST_CANDIDATES)
        self._others: Places[web.RequestHandler] = Places(MOST_OTHERS, MOST_EACH_OTHER)
        self._hurry: asyncio.TimerHandle | None = None
        self._http: _Http | None = None

    def open(self, context: ssl.SSLContext) -> None:
        """From now on, let in whoever shakes hands with ``context``; all others have to leave."""
        before, self._http = self._http, _Http(self._answer, context, self._came, self._lost)
        if before is None:
            self._porch.open()
        else:
            self._background.start(before.shutdown(GOODBYE_S), name="say goodbye")

    async def close(self) -> None:
        """Let nobody in any more, and send away those who are."""
        self._porch.close()
        if self._hurry:
            self._hurry.cancel()
        await self._background.close()
        if self._http:
            await self._http.shutdown(GOODBYE_S)
        self._refusals.close()

    def _let_in(self) -> None:
        """Shake hands with as many as may."""
        while (source := self._next()) is not None:
            connection = self._porch.take(source)
            self._shaking[connection] = source, asyncio.get_running_loop().time()
            self._background.start(self._shake(connection, source), name="shake hands")
        if self._porch.sources and not self._hurry:
            self._hurry = asyncio.get_running_loop().call_later(HURRY_S / 4, self._hurry_up)

    def _next(self) -> str | None:
        """Choose whose turn it is: candidates' sources first, then all others in their order."""
        free = MOST_SHAKING - len(self._shaking)
        if free <= 0 or self._candidates.held + len(self._shaking) >= MOST_CANDIDATES:
            return None
        sources = self._porch.sources
        if known := next((each for each in sources if each in self._known), None):
            return known
        if free <= KEPT_SHAKING:
            return None
        begun = [source for source, _ in self._shaking.values()]
        return next((each for each in sources if begun.count(each) < MOST_SHAKING_EACH), None)

    def _hurry_up(self) -> None:
        """Cut off handshakes that take their time while others wait."""
        self._hurry = None
        if self._porch.sources:
            over = asyncio.get_running_loop().time() - HURRY_S
            for connection, (_, since) in self._shaking.items():
                if since < over:
                    _hang_up(connection)
            self._let_in()

    async def _shake(self, connection: socket.socket, source: str) -> None:
        http = self._http
        assert http  # nothing is accepted before
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                http,
                connection,
                ssl=http.context,
                ssl_handshake_timeout=HANDSHAKE_PATIENCE_S,
                ssl_shutdown_timeout=GOODBYE_S,
            )
        except OSError as error:
            self._refusals.add(source, _reason(error))
        finally:
            del self._shaking[connection]
            self._let_in()

    def _came(
        self, http: "_Http", connection: web.RequestHandler, transport: asyncio.Transport
    ) -> None:
        """Give a place to one that has shaken hands, unless the context was replaced meanwhile."""
        if http is not self._http:  # this node has joined a cluster, or left one, since it came
            transport.abort()
            return
        peer = read_peer(transport.get_extra_info("ssl_object"))
        source = source_of(transport.get_extra_info("peername")[0])
        if peer and self._is_revoked(peer):
            self._refusals.add(source, f"the certificate of {peer.node} is revoked")
            transport.abort()
            return
        if peer and self._is_candidate(peer):
            self._know(source)
            if (goes := self._candidates.take(connection, peer.node)) is not None:
                goes.force_close()
            self._candidates.hold(connection)  # its first request is on its way
        elif (goes := self._others.take(connection, peer.node if peer else source)) is not None:
            self._refusals.add(source, "others took its place")
            if goes.transport:
                goes.transport.abort()
        if peer and not self._is_candidate(peer) and isinstance(connection, web.BoundedHandler):
            connection.most_body = MOST_BODY_OTHER

    def _know(self, source: str) -> None:
        self._known.pop(source, None)
        self._known[source] = None
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def _lost(self, connection: web.RequestHandler) -> None:
        self._candidates.leave(connection)
        self._others.leave(connection)
        self._let_in()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._candidates.hold(request.protocol)
        try:
            return await self._handle(request)
        finally:
            self._candidates.release(request.protocol)
            self._let_in()


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # it has gone already
        connection.shutdown(socket.SHUT_RDWR)


def _reason(error: OSError) -> str:
    """Say why a handshake failed; a caller who only looks whether the port is open says nothing."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error) or "it ended without a word"


class _Http(web.BoundedServer):
    """The HTTP side of all connections that were made with one context."""

    def __init__(
        self,
        answer: Handle,
        context: ssl.SSLContext,
        came: Callable[["_Http", web.RequestHandler, asyncio.Transport], None],
        lost: Callable[[web.RequestHandler], None],
    ) -> None:
        super().__init__(answer, idle_s=IDLE_S)
        self.context = context
        self._came, self._lost = came, lost

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._came(self, handler, transport)

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self._lost(handler)
