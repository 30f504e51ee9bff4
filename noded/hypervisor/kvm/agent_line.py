"""Talking to the agent in a guest, of which nothing is taken on trust.

Where there is no agent, or it hangs, nobody says anything; and what was asked before and not
waited for may be answered now. So a session begins with a number that has to come back, behind a
byte that is in no JSON. Source: docs/interop/qemu-ga-ref of QEMU 7.2, guest-sync-delimited.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from msgspec import UNSET, UnsetType, field

from common.errors import InvalidRequest, NodeFailure
from common.messages import Report, from_json
from common.printable import one_line

SYNC = b"\xff"
LARGEST_ANSWER = 1 << 16  # bytes
LARGEST_REST = 1 << 20  # of what was left unsaid before
ANSWER_S = 2.0  # an agent that is there answers at once
_TOLD_LIMIT = 200  # characters of the agent's words that go into an error


class AgentSilent(NodeFailure):
    """There is no agent in the guest, or it says nothing that can be understood."""

    code = "node-failure.agent-silent"


class AgentRefused(NodeFailure):
    """The agent understood a command, and did not do it; detail ``reason`` says why."""

    code = "node-failure.agent-refused"


class AgentLine:
    """An open session; see ``agent``."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, guest: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._guest = guest

    async def ask(self, command: str, *, patience_s: float | None = None) -> Any:
        """Have the agent do something, and return what it answers, unchecked.

        Raises:
            AgentRefused: it says no.
            AgentSilent: no answer in time, or none that can be read.
        """
        with _about(self._guest):
            async with asyncio.timeout(ANSWER_S if patience_s is None else patience_s):
                await self._send({"execute": command})
                answer = self._read(await self._reader.readuntil(b"\n"))
        if answer.error is not None:
            reason = one_line(answer.error.desc)[:_TOLD_LIMIT].rstrip(".")
            raise AgentRefused(
                f"The agent in {self._guest} refuses {command}: {reason}.",
                command=command,
                reason=reason,
            )
        return answer.value

    async def tell(self, command: str, **arguments: Any) -> None:
        """Have the agent do what it does not answer.

        Raises:
            AgentSilent: its line is closed.
        """
        with _about(self._guest):
            async with asyncio.timeout(ANSWER_S):
                await self._send({"execute": command, "arguments": arguments})

    async def synchronise(self, patience_s: float) -> None:
        """Find out that the agent is there, and throw away what it had to say before.

        Raises:
            AgentSilent: it is not.
        """
        number = secrets.randbelow(1 << 31)
        order = {"execute": "guest-sync-delimited", "arguments": {"id": number}}
        with _about(self._guest):
            async with asyncio.timeout(patience_s):
                await self._send(order, before=SYNC)
                left = LARGEST_REST
                while left > 0:
                    left -= await self._skip()
                    line = await self._reader.readuntil(b"\n")
                    with contextlib.suppress(InvalidRequest):  # of another session, cut off
                        if self._read(line).value == number:
                            return
        raise AgentSilent(f"The agent in {self._guest} talks on and on.")

    async def _send(self, order: dict[str, Any], *, before: bytes = b"") -> None:
        self._writer.write(before + json.dumps(order).encode() + b"\n")
        await self._writer.drain()

    async def _skip(self) -> int:
        """Skip all before the next answer to a number; return how much that was."""
        try:
            return len(await self._reader.readuntil(SYNC))
        except asyncio.LimitOverrunError as error:
            return len(await self._reader.readexactly(error.consumed))

    def _read(self, line: bytes) -> "_Answer":
        return from_json(line, _Answer, what=f"what the agent in {self._guest} says")


class _Error(Report):
    desc: str = "it does not say why"


class _Answer(Report):
    value: Any | UnsetType = field(default=UNSET, name="return")
    error: _Error | None = None


@contextlib.asynccontextmanager
async def agent(
    address: Path, guest: str, *, patience_s: float | None = None
) -> AsyncIterator[AgentLine]:
    """Open a session with the agent behind ``address``.

    Args:
        address: the socket.
        guest: its name in errors.
        patience_s: how long it is waited for; ``ANSWER_S`` if not told.

    Raises:
        AgentSilent: nobody answers.
    """
    patience_s = ANSWER_S if patience_s is None else patience_s
    with _about(guest):
        async with asyncio.timeout(patience_s):
            reader, writer = await asyncio.open_unix_connection(address, limit=LARGEST_ANSWER)
    try:
        line = AgentLine(reader, writer, guest)
        await line.synchronise(patience_s)
        yield line
    finally:
        writer.transport.abort()  # what QEMU has not taken is not meant for the next agent


@contextlib.contextmanager
def _about(guest: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise AgentSilent(f"The agent in {guest} does not answer.", instance=guest) from error
    except (OSError, EOFError) as error:
        raise AgentSilent(f"The line to the agent in {guest} is closed.") from error
    except (InvalidRequest, asyncio.LimitOverrunError) as error:
        raise AgentSilent(f"The agent in {guest} says what nobody understands.") from error
