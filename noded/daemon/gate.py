"""The port: shakes hands, and lets in no more than the locked memory can bear."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable

from common.tasks import Background
from noded import web

MOST_CONNECTIONS = 64  # each is a third of a MiB, nearly all of it buffers for TLS
HANDSHAKE_PATIENCE_S = 10.0
IDLE_S = 60.0  # until a connection is closed on which no whole request head arrived
GOODBYE_S = 2.0  # for answers under way when connections are closed
PAUSE_S = 1.0  # when the system has no descriptors left

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)


class Gate:
    """Accepts connections on one port, with a TLS context that can be replaced.

    Whoever comes when all places are taken waits in the kernel's queue. Connections whose
    request was answered give up their places then.
    """

    def __init__(self, listener: socket.socket, handle: Handle) -> None:
        """Take over ``listener``, which is bound; ``handle`` answers requests."""
        listener.settimeout(0)
        self._listener = listener
        self._handle = handle
        self._background = Background()
        self._places = asyncio.Semaphore(MOST_CONNECTIONS)
        self._idle: dict[web.RequestHandler, None] = {}  # between two requests; in order
        self._http: _Http | None = None

    async def open(self, context: ssl.SSLContext) -> None:
        """Let in whoever shakes hands with ``context``; returns when all others have left."""
        before, self._http = self._http, _Http(self._answer, context, self._lost)
        if before is None:
            self._background.start(self._accept(), name="accept connections")
        else:
            await before.shutdown(GOODBYE_S)

    async def close(self) -> None:
        """Let nobody in any more, and send away those who are."""
        await self._background.close()
        if self._http:
            await self._http.shutdown(GOODBYE_S)
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._places.locked():
                self._close_one_idle()
            await self._places.acquire()
            try:
                connection, address = await loop.sock_accept(self._listener)
            except OSError as error:  # the caller has gone already, or no descriptors are left
                self._places.release()
                log.warning("Cannot accept a connection: %s.", error)
                await asyncio.sleep(PAUSE_S)
            else:
                self._background.start(self._let_in(connection, address[0]), name="shake hands")

    async def _let_in(self, connection: socket.socket, host: str) -> None:
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
            self._places.release()
            log.info("A connection from %s was refused: %s.", host, _reason(error))

    def _close_one_idle(self) -> None:
        if self._idle:
            connection = next(iter(self._idle))
            del self._idle[connection]
            connection.force_close()

    def _lost(self, connection: web.RequestHandler) -> None:
        self._idle.pop(connection, None)
        self._places.release()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._idle.pop(request.protocol, None)
        response = await self._handle(request)
        if self._places.locked():
            response.force_close()  # others wait
        elif request.transport is not None:
            self._idle[request.protocol] = None
        return response


def _reason(error: OSError) -> str:
    """Say why a handshake failed; a caller who only looks whether the port is open says nothing."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error) or "it ended without a word"


class _Http(web.Server):
    """The HTTP side of all connections that were made with one context."""

    def __init__(
        self, answer: Handle, context: ssl.SSLContext, lost: Callable[[web.RequestHandler], None]
    ) -> None:
        super().__init__(answer, access_log=None, keepalive_timeout=IDLE_S, lingering_time=1.0)
        self.context = context
        self._lost = lost

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self._lost(handler)
