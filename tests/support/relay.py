"""A wire between two nodes that a test reads, mutes and cuts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from common.noderpc.instances import Reception
from tests.support.hypervisors import ADDRESSES

CHUNK = 1 << 16


class Wire:
    """Carries what alpha sends to beta, and what beta answers."""

    def __init__(self, reception: Reception) -> None:
        self.reception = reception  # of this end
        self.sent = bytearray()
        self._mute_after: int | None = None
        self._writers: list[asyncio.StreamWriter] = []

    def mute_after(self, size: int) -> None:
        """Keep back what beta says once alpha has sent this much."""
        self._mute_after = size

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    @property
    def is_mute(self) -> bool:
        return self._mute_after is not None and len(self.sent) >= self._mute_after

    async def carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
    ) -> None:
        there, beta = await asyncio.open_connection(ADDRESSES["beta"], port)
        self._writers += [writer, beta]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._forth(reader, beta))
            group.create_task(self._back(there, writer))

    async def _forth(self, alpha: asyncio.StreamReader, beta: asyncio.StreamWriter) -> None:
        while part := await _read(alpha):
            self.sent += part
            beta.write(part)
        beta.close()

    async def _back(self, beta: asyncio.StreamReader, alpha: asyncio.StreamWriter) -> None:
        while part := await _read(beta):
            if not self.is_mute:
                alpha.write(part)
        if not self.is_mute:
            alpha.close()


@asynccontextmanager
async def relay(reception: Reception) -> AsyncIterator[Wire]:
    """Put a wire before where beta receives; ``Wire.reception`` is its other end."""
    wire = Wire(reception)

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await wire.carry(reader, writer, reception.port)

    server = await asyncio.start_server(carry, ADDRESSES["beta"], 0)
    port = server.sockets[0].getsockname()[1]
    wire.reception = Reception(port=port, secret=reception.secret)
    async with server:
        yield wire
        wire.cut()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK)
    except OSError:
        return b""
