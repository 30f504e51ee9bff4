"""The stream of a guest's console: ``GET /console/<instance UUID>``, a WebSocket.

Binary messages both ways: what the guest writes, what is typed. It ends, with a sentence, when
the guest does. Several may look, and type, at once.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from aiohttp import ClientError, WSCloseCode, WSMsgType

from common import web
from common.errors import GntError, InvalidRequest
from common.names import InstanceId, is_uuid
from common.noderpc.instances import Instances
from common.rpc.declare import CallSpec
from common.rpc.server import refusal
from common.tls.context import Peer
from noded.guest_console import GuestConsoles, View

PREFIX = "/console/"
HEARTBEAT_S = 20.0
GOODBYE_S = 1.0  # for whoever has to go to say that it goes
LARGEST_MESSAGE_BYTES = 64 << 10  # typed or pasted at once
LONGEST_REASON_BYTES = 120  # RFC 6455, 5.5
CALL = Instances.calls["console"]

Check = Callable[[CallSpec, Peer | None], None]


class ConsoleStream:
    """Serves consoles to those who may ask for them: the master candidates."""

    def __init__(self, consoles: GuestConsoles, check: Check) -> None:
        """Take what refuses callers who may not look."""
        self._consoles = consoles
        self._check = check
        self._looking: dict[web.WebSocketResponse, Peer | None] = {}

    async def serve(self, request: web.BaseRequest, caller: Peer | None) -> web.StreamResponse:
        """Answer a request whose path begins with ``PREFIX``.

        Args:
            request: as it came.
            caller: by its certificate; None if it showed none.
        """
        try:
            self._check(CALL, caller)
            instance = InstanceId(request.path.removeprefix(PREFIX))
            if not is_uuid(instance):
                raise InvalidRequest(f"A console is asked for with GET {PREFIX}<instance UUID>.")
            socket = web.WebSocketResponse(
                heartbeat=HEARTBEAT_S, max_msg_size=LARGEST_MESSAGE_BYTES
            )
            if not socket.can_prepare(request):
                raise InvalidRequest("A console is a WebSocket; ask for an upgrade to one.")
            async with self._consoles.view(instance) as view:
                await socket.prepare(request)
                self._looking[socket] = caller
                try:
                    await _relay(socket, view)
                finally:
                    del self._looking[socket]
        except GntError as error:
            reply = refusal(error)
            return web.Response(
                status=reply.status, body=reply.body, content_type="application/json"
            )
        return socket

    async def end_refused(self) -> None:
        """Send those away who may not look any more, all at once: some may not want to go."""
        async with asyncio.TaskGroup() as group:
            for socket, caller in tuple(self._looking.items()):
                try:
                    self._check(CALL, caller)
                except GntError as error:
                    group.create_task(_send_away(socket, error))


async def _send_away(socket: web.WebSocketResponse, error: GntError) -> None:
    """Say why, and hang up, also on one that does not listen."""
    reason = error.message.encode()[:LONGEST_REASON_BYTES]
    with suppress(TimeoutError):
        async with asyncio.timeout(GOODBYE_S):
            await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=reason)


async def _relay(socket: web.WebSocketResponse, view: View) -> None:
    """Carry bytes both ways until either side ends."""
    async with asyncio.TaskGroup() as group:
        showing = group.create_task(_show(socket, view))
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                await view.write(message.data)
        showing.cancel()


async def _show(socket: web.WebSocketResponse, view: View) -> None:
    try:
        while data := await view.read():
            await socket.send_bytes(data)
        await socket.close(code=WSCloseCode.OK, message=b"The console has ended.")
    except (ClientError, ConnectionError):
        return  # the looker has gone, which the other direction sees, too
