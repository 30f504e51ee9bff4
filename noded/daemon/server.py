"""The HTTPS server: a thin shell around a ``Node``, whatever that is a member of."""

import asyncio
import logging
import socket
import ssl

from common import web
from common.errors import GntError, InvalidRequest, NotFound
from common.paths import Paths
from common.rpc.clock import SHOWN
from common.rpc.envelope import read_headers
from common.rpc.server import Reply, refusal
from common.tasks import Background
from common.tls.context import AUTHORITY, Peer, load_identity, read_peer
from noded.daemon.gate import Gate
from noded.daemon.node import Node
from noded.handlers.console import PREFIX as CONSOLE_PREFIX
from noded.handlers.console import ConsoleStream

BODY_PATIENCE_S = 20.0

log = logging.getLogger(__name__)


class Server:
    """Serves a node on one port: join calls at first, everything else once it is a member."""

    def __init__(self, node: Node, paths: Paths, listener: socket.socket) -> None:
        """Take over ``listener``, which is bound."""
        self._node = node
        self._paths = paths
        self._gate = Gate(
            listener, self._handle, node.candidates.includes, node.candidates.has_revoked
        )
        self._consoles = ConsoleStream(node.consoles, node.check_caller)
        self._background = Background()
        self._context: ssl.SSLContext | None = None
        self._is_member = False
        self._trusted = self._read_trusted()

    async def open(self) -> None:
        """Begin to answer, and follow the node's identity from now on."""
        self._replace()
        self._node.identity.on_change = self._follow
        self._node.candidates.on_change = self._end_consoles

    async def close(self) -> None:
        """Stop answering; calls under way get a moment to end."""
        self._node.identity.on_change = lambda: None
        self._node.candidates.on_change = lambda: None
        await self._background.close()
        self._node.stop_watching()  # it would be waited for, and so would consoles
        await self._node.consoles.close()
        await self._gate.close()

    def _follow(self) -> None:
        known, self._trusted = self._trusted, self._read_trusted()
        if self._is_member and self._node.identity.member and known in self._trusted:
            assert self._context
            # Handshakes from now on use the new certificate; connections just go on.
            load_identity(self._context, self._paths.identity)
        else:
            # At once: whoever is told that this node has joined may call it in the next moment. And
            # a context goes on trusting whom it once did, so those who are out need another.
            self._replace()

    def _read_trusted(self) -> str:
        """Return the authorities whose signatures count, PEM; nothing in no cluster."""
        file = self._paths.identity / AUTHORITY
        return file.read_text(encoding="ascii") if file.exists() else ""

    def _end_consoles(self) -> None:
        self._background.start(self._consoles.end_refused(), name="end consoles")

    def _replace(self) -> None:
        """Answer with a context that fits the node's identity, and end what does not."""
        self._context = self._node.identity.server_context()
        self._is_member = self._node.identity.member is not None
        self._gate.open(self._context)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            if request.path.startswith(CONSOLE_PREFIX):
                return await self._consoles.serve(request, _caller(request))
            reply = await self._answer(request)
        except GntError as error:
            reply = refusal(error)
        response = web.Response(
            status=reply.status, body=reply.body, content_type="application/json"
        )
        if reply.shown is not None:
            response.headers[SHOWN] = reply.shown.header()
        if not request.content.is_eof():
            response.force_close()  # what is left of the request is not worth reading
        return response

    async def _answer(self, request: web.BaseRequest) -> Reply:
        _, _, rest = request.path.partition("/")
        service, _, method = rest.partition("/")
        if request.method != "PUT" or not method:
            raise NotFound("Calls are made with PUT /<service>/<call>.")
        envelope, caller = read_headers(request.headers), _caller(request)
        # Before a byte of the arguments is taken in: who may not ask shall cost no memory.
        call = self._node.expect(service, method, envelope, caller)
        body = await _read_body(request, call.largest_question)
        return await self._node.call(service, method, envelope, caller, body)


def _caller(request: web.BaseRequest) -> Peer | None:
    return read_peer(request.get_extra_info("ssl_object"))


class _TooLarge(InvalidRequest):
    code = "invalid-request.too-large"
    http_status = 413


class _TooSlow(InvalidRequest):
    code = "invalid-request.too-slow"
    http_status = 408


async def _read_body(request: web.BaseRequest, largest: int) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_PATIENCE_S):
            if (request.content_length or 0) > largest:
                raise _too_large(largest)
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > largest:
                    raise _too_large(largest)
    except TimeoutError as error:
        raise _TooSlow(
            f"The request was not complete after {BODY_PATIENCE_S:g} s, with {len(body)} bytes."
        ) from error
    except ConnectionError as error:  # nobody is left who would read an answer
        log.info("%s went away in the middle of a request, after %d B", request.remote, len(body))
        raise InvalidRequest("The request ended before it was complete.") from error
    return bytes(body)


def _too_large(largest: int) -> _TooLarge:
    return _TooLarge(f"This call may have {largest >> 10} KiB of arguments; it has more.")
