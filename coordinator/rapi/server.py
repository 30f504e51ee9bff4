"""The sockets of the REST interface: who may connect, for how long, and how many at once."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from common import web
from common.messages import to_json
from common.places import Places, source_of
from coordinator.rapi.failures import refused, told

IDLE_S = 75.0  # until a connection is closed on which nothing is asked
LARGEST_BODY = 8 << 20
LARGEST_IN_CHUNKS = 256 << 10  # of a body that does not tell its length, as many clients send it
MOST, MOST_FROM_ONE = 512, 384


def _in_json(status: int, why: str) -> tuple[bytes, str]:
    return to_json(told(refused(HTTPStatus(status), why))), "application/json"


class Clients(web.BoundedServer):
    """All connections; whoever comes when there are too many costs the greediest one its place."""

    def __init__(
        self, handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], most: int = MOST
    ) -> None:
        super().__init__(
            handle,
            idle_s=IDLE_S,
            most_body=LARGEST_BODY,
            most_in_chunks=LARGEST_IN_CHUNKS,
            explain=_in_json,
        )
        self._places: Places[web.RequestHandler] = Places(most, min(most, MOST_FROM_ONE))

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        goes = self._places.take(handler, source_of(transport.get_extra_info("peername")[0]))
        if goes is not None and goes.transport:
            goes.transport.abort()

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self._places.leave(handler)
