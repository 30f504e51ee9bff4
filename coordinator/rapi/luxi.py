"""Calls to the coordinator over its socket, as many at once as it bears."""

import asyncio
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from common.errors import Unreachable
from common.luxi.client import ConnectionLost, NoCoordinator
from common.luxi.failures import from_ganeti, from_wire
from common.luxi.framing import END, LARGEST, frame
from common.messages import Report, from_json

T = TypeVar("T")

AT_ONCE = 64  # calls; more wait here
ANSWER_S = 60.0

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Answer(Report):
    success: bool
    result: Raw = Raw(b"null")
    error: Any = None


class Luxi:
    """Connections to one socket, kept open for the next call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[Connection] = []
        self._places = asyncio.Semaphore(AT_ONCE)

    async def call(self, method: str, *args: Any, answer_s: float = ANSWER_S) -> Any:
        """Return the result of a call, as JSON values.

        Raises:
            NoCoordinator: nobody listens.
            ConnectionLost: what became of the request is unknown.
            Unreachable: no answer in time.
            GntError: as the coordinator raised it.
        """
        return await self.call_for(Any, method, *args, answer_s=answer_s)

    async def call_for(
        self, kind: type[T] | Any, method: str, *args: Any, answer_s: float = ANSWER_S
    ) -> T:
        """Return the result of a call as a ``kind``; raises as ``call`` does."""
        message = frame(msgspec.json.encode({"method": method, "args": args}))
        async with self._places:
            text = await self._exchange(message, method, answer_s)
        answer = from_json(text, _Answer, what=f"the answer to {method}")
        if answer.success:
            result: T = from_json(bytes(answer.result), kind, what=f"the answer to {method}")
            return result
        raise from_wire(answer.error) or from_ganeti(msgspec.json.decode(answer.result))

    async def close(self) -> None:
        """Hang up what is idle."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def _exchange(self, message: bytes, method: str, answer_s: float) -> bytes:
        reader, writer = await self._connection()
        try:
            async with asyncio.timeout(answer_s):
                writer.write(message)
                await writer.drain()
                text = await reader.readuntil(END)
        except TimeoutError as error:
            writer.transport.abort()
            raise Unreachable(
                f"The coordinator has not answered {method} within {answer_s:g} seconds."
            ) from error
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            writer.transport.abort()
            raise ConnectionLost(
                f"The coordinator hung up before it answered {method}; it may have been restarted."
            ) from error
        except asyncio.CancelledError:
            writer.transport.abort()  # a late answer must not be taken for the next one
            raise
        self._idle.append((reader, writer))
        return text[: -len(END)]

    async def _connection(self) -> Connection:
        while self._idle:
            reader, writer = self._idle.pop()
            if not (reader.at_eof() or writer.is_closing()):
                return reader, writer
            writer.close()
        try:
            return await asyncio.open_unix_connection(self._path, limit=LARGEST)
        except OSError as error:
            raise NoCoordinator(
                f"Cannot reach the coordinator at {self._path}: {error.strerror or error}."
            ) from error
