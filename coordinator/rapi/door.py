"""Where clients come in: those who have said hello, a few at a time.

What has not begun a handshake waits on the porch and costs a descriptor.
"""

import asyncio
import socket
import ssl
from contextlib import suppress

from common.errors import NodeFailure
from common.porch import Porch
from common.refusals import Refusals
from common.tasks import Background
from coordinator.rapi.server import Clients

MOST_SHAKING, MOST_SHAKING_EACH = 32, 16
HANDSHAKE_S = 10.0
HURRY_S = 1.0  # for a handshake when others wait
GOODBYE_S = 2.0


class Door:
    """Shakes hands on one port, with a context whose certificate may change."""

    def __init__(self, listener: socket.socket, clients: Clients, context: ssl.SSLContext) -> None:
        """Take over ``listener``, which is bound."""
        self._clients, self._context = clients, context
        self._background, self._refusals = Background(), Refusals()
        self._porch = Porch(listener, self._refusals, self._let_in)
        self._shaking: dict[socket.socket, tuple[str, float]] = {}  # source, since; oldest first
        self._hurry: asyncio.TimerHandle | None = None

    def open(self) -> None:
        self._porch.open()

    async def close(self) -> None:
        """Let nobody in any more."""
        self._porch.close()
        if self._hurry:
            self._hurry.cancel()
        await self._background.close()
        self._refusals.close()

    def _let_in(self) -> None:
        while len(self._shaking) < MOST_SHAKING and (source := self._next()) is not None:
            connection = self._porch.take(source)
            self._shaking[connection] = source, asyncio.get_running_loop().time()
            self._background.start(self._shake(connection, source), name="shake hands")
        if self._porch.sources and not self._hurry:
            self._hurry = asyncio.get_running_loop().call_later(HURRY_S / 4, self._hurry_up)

    def _next(self) -> str | None:
        begun = [source for source, _ in self._shaking.values()]
        waiting = self._porch.sources
        return next((each for each in waiting if begun.count(each) < MOST_SHAKING_EACH), None)

    def _hurry_up(self) -> None:
        """Cut off handshakes that take their time while others wait."""
        self._hurry = None
        if self._porch.sources:
            over = asyncio.get_running_loop().time() - HURRY_S
            for connection, (_, since) in self._shaking.items():
                if since < over:
                    with suppress(OSError):  # it has gone already
                        connection.shutdown(socket.SHUT_RDWR)
            self._let_in()

    async def _shake(self, connection: socket.socket, source: str) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._clients,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=GOODBYE_S,
            )
        except OSError as error:
            self._refusals.add(source, str(error) or "it ended without a word")
        finally:
            del self._shaking[connection]
            self._let_in()


def bound(address: str | None, port: int) -> socket.socket:
    """Return a socket on an address, or on all of this machine.

    Raises:
        NodeFailure: it is taken, or there is no such address.
    """
    shown = f"{address or 'all addresses'} port {port}"
    try:
        if address is None and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, reuse_port=False
            )
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server((address or "", port), family=found[0][0])
    except OSError as error:
        raise NodeFailure(f"Cannot listen on {shown}: {error.strerror or error}.") from error
