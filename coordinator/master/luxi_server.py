"""The LUXI socket: how commands on the master talk to the coordinator.

Access is governed by the socket's file mode, and for what is root's by who has connected.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from common.errors import Bug, Conflict, GntError, InvalidRequest
from common.luxi.answers import Request, failure, read_request, success, unreadable
from common.luxi.framing import Decoder
from common.places import Places
from common.unix_socket import listen
from coordinator.master.roots_own import check_may, user_behind

log = logging.getLogger(__name__)

CHUNK = 65536
MOST_CONNECTIONS, MOST_OF_ONE_USER = 512, 384
READING_PATIENCE_S = 30.0  # for a client to take its answer out of our memory

Handle = Callable[[Request], Awaitable[object]]


class LuxiServer:
    """Listens, reads requests, and answers those of one connection in order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._places: Places[asyncio.Task[None]] = Places(MOST_CONNECTIONS, MOST_OF_ONE_USER)

    async def check_free(self) -> None:
        """Refuse to be the second one on this socket.

        Raises:
            Conflict: another coordinator listens there.
        """
        try:
            _, writer = await asyncio.open_unix_connection(self._path)
        except OSError:
            return  # nobody, or a file that one left behind
        writer.close()
        raise Conflict(
            f"Another coordinator runs on this node: it listens on {self._path}. "
            "There can be only one; stop it first."
        )

    async def start(self, handle: Handle) -> None:
        """Begin to listen; a socket that nobody listens on any more is replaced.

        Raises:
            Conflict: another coordinator listens there.
        """
        self._handle = handle
        await self.check_free()
        self._server = await asyncio.start_unix_server(self._serve, sock=listen(self._path))

    async def stop(self) -> None:
        """Stop listening and end all connections."""
        if self._server is None:
            return
        self._server.close()
        for connection in tuple(self._connections):
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        user = user_behind(writer.get_extra_info("socket"))
        self._connections.add(task)
        try:
            if (goes := self._places.take(task, str(user))) is not None:
                log.info("a connection of user %s is closed: too many are open", user)
                goes.cancel()
            await self._talk(reader, writer, user)
            await self._take_leave(writer)
        except TimeoutError:
            log.info("a connection of user %s is closed: it does not take its answer", user)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or has to go, or we are going
        finally:
            self._places.leave(task)
            self._connections.discard(task)
            writer.transport.abort()  # an answer that is still here would stay, and nobody count it

    async def _take_leave(self, writer: asyncio.StreamWriter) -> None:
        """Wait until the client, which says no more, has taken what it was answered."""
        writer.close()
        async with asyncio.timeout(READING_PATIENCE_S):
            await writer.wait_closed()

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: int
    ) -> None:
        decoder = Decoder()
        while data := await reader.read(CHUNK):
            try:
                requests = [read_request(text) for text in decoder.feed(data)]
            except GntError as error:
                writer.write(unreadable(error))
                return
            for request in requests:
                writer.write(await self._answer(request, user))
                async with asyncio.timeout(READING_PATIENCE_S):
                    await writer.drain()

    async def _answer(self, request: Request, user: int) -> bytes:
        try:
            check_may(request, user)
            return success(await self._handle(request), request)
        except GntError as error:
            return failure(error, request)
        except (TypeError, ValueError, OverflowError) as error:
            log.info("bad arguments for %s: %s", request.method, error)
            told = InvalidRequest(f"The arguments of {request.method} do not fit: {error}.")
            return failure(told, request)
        except Exception as error:
            log.exception("the request %s failed unexpectedly", request.method)
            told_bug = Bug(f"An internal error: {type(error).__name__}: {error}.")
            return failure(told_bug, request)
