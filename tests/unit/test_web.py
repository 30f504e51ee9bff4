"""A server that looks at frames of requests loses nothing of those that it takes in."""

import asyncio
from typing import Any

import pytest

from common import web
from tests.support.clock import simulate

LARGE = 1 << 20  # bytes, many times of what aiohttp takes in before somebody reads it


class Wire(asyncio.Transport):
    """Carries pieces of a request to a server, when that wants them, and keeps its answer."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__()
        self.answer = bytearray()
        self.is_closed = asyncio.Event()
        self._pieces = pieces
        self._is_paused = False
        self._connection: web.RequestHandler | None = None

    def plug_in(self, connection: web.RequestHandler) -> None:
        self._connection = connection
        connection.connection_made(self)
        self._carry()

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        asyncio.get_running_loop().call_soon(self._carry)

    def write(self, data: Any) -> None:
        self.answer += data

    def close(self) -> None:
        self.is_closed.set()

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed.is_set()

    def _carry(self) -> None:
        assert self._connection is not None
        while self._pieces and not self._is_paused:
            self._connection.data_received(self._pieces.pop(0))


async def _count(request: web.BaseRequest) -> web.Response:
    """Answer with how many bytes have come."""
    await asyncio.sleep(1)  # others have their turn: the body is here before it is read
    count = 0
    async for chunk in request.content.iter_any():
        count += len(chunk)
    response = web.Response(text=f"{count} bytes")
    response.force_close()
    return response


async def _tell(pieces: list[bytes]) -> bytes:
    server = web.BoundedServer(_count, idle_s=60, most_in_chunks=LARGE)
    wire = Wire(pieces)
    wire.plug_in(server())
    await wire.is_closed.wait()
    return bytes(wire.answer)


def _cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1000, 16 << 10, 100_001, 256 << 10, 2 * LARGE])
def test_a_large_body_is_read_to_its_end_whatever_pieces_it_comes_in(size: int) -> None:
    request = b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % LARGE + bytes(LARGE)
    assert f"{LARGE} bytes".encode() in simulate(_tell(_cut(request, size)))


def test_a_large_body_in_chunks_is_read_to_its_end() -> None:
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (LARGE, bytes(LARGE))
    request = b"PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body
    assert f"{LARGE} bytes".encode() in simulate(_tell([request]))
