"""Share the serial console of a guest among all who look at it.

QEMU talks to one listener at a time, and holds the guest up when that one does not read. So
this node reads, always, and passes on what comes; the slow lose the oldest part of it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from common.errors import Conflict, GntError, NodeFailure
from common.names import InstanceId
from common.noderpc.instances import NoConsole
from common.tasks import Background
from noded.hypervisor.interface import Console
from noded.system.turns import Turns

CHUNK_BYTES = 16 << 10
RECENT_BYTES = 16 << 10  # shown to those who come later
WAITING_BYTES = 1 << 20  # kept for one who reads slowly

log = logging.getLogger(__name__)


class View:
    """One looker's side of a console."""

    def __init__(self, shared: "_Shared") -> None:
        self._shared = shared
        self._waiting = bytearray(shared.recent)
        self._news = asyncio.Event()

    async def read(self) -> bytes:
        """Return what the guest has written since; nothing when its console has ended."""
        while not self._waiting and not self._shared.has_ended:
            self._news.clear()
            await self._news.wait()
        data = bytes(self._waiting)
        self._waiting.clear()
        return data

    async def write(self, data: bytes) -> None:
        """Type something; lost if the guest has ended."""
        await self._shared.write(data)

    def tell(self, data: bytes) -> None:
        self._waiting += data
        del self._waiting[:-WAITING_BYTES]
        self._news.set()


class GuestConsoles:
    """The consoles of this node's guests that somebody looks at."""

    def __init__(
        self,
        find: Callable[[InstanceId], Awaitable[Console]],
        watched: Callable[[InstanceId], Awaitable[None]],
    ) -> None:
        """Look at consoles through two calls of whoever runs guests.

        Args:
            find: tells where a guest's console is, or raises NotFound.
            watched: is called when somebody begins to look at it, before anything is lost.
        """
        self._find = find
        self._watched = watched
        self._shared: dict[InstanceId, _Shared] = {}
        self._turns = Turns()
        self._background = Background()

    @asynccontextmanager
    async def view(self, instance: InstanceId) -> AsyncIterator[View]:
        """Look at a console, from a little back if others do already.

        Raises:
            NotFound: the guest is not on this node.
            Conflict: it has no console, or is not running.
            NodeFailure: its console does not answer.
        """
        async with self._turns.of(instance):
            shared = self._shared.get(instance)
            if shared is None or shared.has_ended:
                shared = self._shared[instance] = await self._open(instance)
            view = View(shared)
            shared.views.add(view)
        try:
            yield view
        finally:
            shared.views.discard(view)
            if not shared.views:
                await shared.close()
                if self._shared.get(instance) is shared:
                    del self._shared[instance]

    async def close(self) -> None:
        """End all views."""
        await self._background.close()

    async def _open(self, instance: InstanceId) -> "_Shared":
        console = await self._find(instance)
        if isinstance(console, NoConsole):
            raise Conflict(console.message or "The instance has no console.", instance=instance)
        reader, writer = await _connect(console)
        try:
            await self._watched(instance)
        except GntError:
            writer.close()
            raise
        shared = _Shared(writer)
        shared.pump = self._background.start(shared.run(reader), name=f"console of {instance}")
        return shared


class _Shared:
    """The one connection to a guest's console, and those who look through it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.views: set[View] = set()
        self.recent = bytearray()
        self.has_ended = False
        self.pump: asyncio.Task[None] | None = None
        self._writer = writer

    async def run(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                self.recent += data
                del self.recent[:-RECENT_BYTES]
                for view in self.views:
                    view.tell(data)
        except ConnectionError:
            pass  # it was killed; that is an end like any other
        finally:
            self._end()

    async def write(self, data: bytes) -> None:
        if self.has_ended:
            return
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            log.info("something typed did not reach a guest, whose console has ended")

    async def close(self) -> None:
        self._end()  # at once, so that nobody joins what is being closed
        if self.pump:
            self.pump.cancel()
            await asyncio.wait([self.pump])

    def _end(self) -> None:
        self.has_ended = True
        for view in self.views:
            view.tell(b"")
        self._writer.close()


async def _connect(socket: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_unix_connection(socket)
    except OSError as error:
        raise NodeFailure(
            f"The guest's console does not answer: {error.strerror or error}; has it just ended?"
        ) from error
