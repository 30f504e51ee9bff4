"""The stream of a guest's console: ``GET /console/<instance UUID>``, a WebSocket.

Binary messages both ways: what the guest writes, what is typed. It ends, with a sentence, when
the guest does. Several may look, and type, at once.
"""

import asyncio
from collections.abc import Callable

from aiohttp import ClientError, WSCloseCode, WSMsgType

from common.errors import GntError, InvalidRequest
from common.names import ClusterName, InstanceId, is_uuid
from common.noderpc.instances import Instances
from common.rpc.server import refusal
from common.tls.context import Peer
from noded import web
from noded.calls.caller import check_caller
from noded.guest_console import GuestConsoles, View

PREFIX = "/console/"
HEARTBEAT_S = 20.0
LARGEST_MESSAGE_BYTES = 64 << 10  # typed or pasted at once


class ConsoleStream:
    """Serves consoles to those who may ask for them: the master candidates."""

    def __init__(self, consoles: GuestConsoles, cluster: Callable[[], ClusterName | None]) -> None:
        self._consoles = consoles
        self._cluster = cluster

    async def serve(self, request: web.BaseRequest, caller: Peer | None) -> web.StreamResponse:
        """Answer a request whose path begins with ``PREFIX``.

        Args:
            request: as it came.
            caller: by its certificate; None if it showed none.
        """
        try:
            check_caller(Instances.calls["console"], caller, self._cluster())
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
                await _relay(socket, view)
        except GntError as error:
            reply = refusal(error)
            return web.Response(
                status=reply.status, body=reply.body, content_type="application/json"
            )
        return socket


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
