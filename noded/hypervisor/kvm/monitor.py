"""Talking to a running QEMU: short sessions over its QMP sockets.

QEMU serves one client at a time on a socket and lets others wait, so a session is opened for a
question and closed again. That way nothing has to be brought back after noded was restarted.
"""

import array
import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from qemu.qmp import ConnectError, ExecuteError, QMPClient, QMPError
from qemu.qmp.qmp_client import GreetingError, NegotiationError

from common.errors import NodeFailure

ANSWER_S = 10.0  # a QEMU that has not answered by then hangs
GREETINGS = 5  # times a session is begun anew when an event came in between
CROWD_S = 0.05  # between two tries to get into the queue of those who want a session

# What becomes of a conversation whose other end goes away. The library finds itself in a state
# it holds for impossible when that happens at the very moment of connecting (qemu.qmp 0.0.6,
# ``AsyncProtocol.connect``): its assertion tells of QEMU's end, not of a mistake of ours.
_GONE = (QMPError, EOFError, OSError, TimeoutError, AssertionError)

# Its own reports of a connection's end; what matters of them is in our errors.
logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)


class CommandRefused(NodeFailure):
    """QEMU understood a command and could not do it; detail ``reason`` says why."""

    code = "node-failure.hypervisor-refused"


class Silent(NodeFailure):
    """QEMU does not answer: it hangs, has just ended, or was never there."""

    code = "node-failure.hypervisor-silent"


class HungUp(Silent):
    """Nobody listens, or whoever did has closed the connection: most probably QEMU ends."""


class Monitor:
    """An open session; see ``monitor``."""

    def __init__(self, client: QMPClient, guest: str, patience_s: float) -> None:
        self._client = client
        self._guest = guest
        self._patience_s = patience_s

    async def ask(self, command: str, **arguments: Any) -> Any:
        """Execute a QMP command; underscores in names of arguments become dashes.

        Raises:
            CommandRefused: QEMU says no.
            Silent: no answer, or the connection broke.
        """
        return await self._ask(command, arguments)

    async def ask_at_once(self, command: str, **arguments: Any) -> Any:
        """Execute one of the few commands for which QEMU does not have to get to its main loop.

        Raises:
            CommandRefused, Silent: as ``ask``.
        """
        return await self._ask(command, arguments, at_once=True)

    async def _ask(
        self, command: str, arguments: Mapping[str, Any], *, at_once: bool = False
    ) -> Any:
        told = {name.replace("_", "-"): value for name, value in arguments.items()}
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._client.execute(command, told or None, oob=at_once)
        except ExecuteError as error:
            reason = error.error.error.desc.rstrip(".")
            raise CommandRefused(
                f"QEMU refuses {command} for {self._guest}: {reason}.",
                command=command,
                reason=reason,
            ) from error
        except _GONE as error:
            raise _silent(self._guest, error) from error

    async def give(self, name: str, line: socket.socket) -> None:
        """Give QEMU a copy of a connection, to be called ``name`` in this session.

        Raises:
            CommandRefused, Silent: as ``ask``.
        """
        await self.lend(name, line.fileno())
        # QEMU makes what it is given blocking (``qio_channel_socket_copy_fds``), and would wait in
        # its main thread, guest and monitor with it, for a peer that says nothing in the TLS
        # handshake. Both copies share this. Once the handshake is over it sets what it needs.
        line.settimeout(0)

    async def lend(self, name: str, descriptor: int) -> None:
        """Give QEMU a copy of a descriptor, for a command that calls it ``name``.

        Raises:
            CommandRefused, Silent: as ``ask``.
        """
        self._hand(descriptor)
        await self.ask("getfd", fdname=name)

    async def add(self, descriptor: int) -> int:
        """Give QEMU a copy of a descriptor to keep; return the number of the set it is in.

        Raises:
            CommandRefused, Silent: as ``ask``.
        """
        self._hand(descriptor)
        return int((await self.ask("add-fd"))["fdset-id"])

    def _hand(self, descriptor: int) -> None:
        """Send a descriptor ahead of the command that takes it."""
        writer = self._client._writer  # noqa: SLF001 -- its own way needs an asyncio of before 3.11
        if writer is None:
            raise _silent(self._guest, EOFError())
        ours = writer.get_extra_info("socket").fileno()
        try:
            with socket.socket(fileno=os.dup(ours)) as qmp:
                rights = array.array("i", [descriptor])
                qmp.sendmsg([b" "], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except OSError as error:
            raise _silent(self._guest, error) from error

    async def news(self, wait_s: float) -> None:
        """Return when QEMU tells of an event, or after ``wait_s``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._client.events.get()


@contextlib.asynccontextmanager
async def monitor(
    address: Path, guest: str, *, patience_s: float | None = None
) -> AsyncIterator[Monitor]:
    """Open a session with the QEMU behind ``address``.

    Args:
        address: the socket.
        guest: its name in errors.
        patience_s: how long each answer is waited for; ``ANSWER_S`` if not told.

    Raises:
        Silent: nobody answers.
    """
    patience_s = ANSWER_S if patience_s is None else patience_s
    client = QMPClient()
    try:
        try:
            async with asyncio.timeout(patience_s):
                await _begin(client, str(address))
        except _GONE as error:
            raise _silent(guest, error) from error
        yield Monitor(client, guest, patience_s)
    finally:
        # Also fetches what the client's own tasks failed with, or asyncio would complain. Such a
        # task may have written to a connection whose end it had not been told of yet, which uvloop
        # takes for a mistake and not for an error of the connection.
        with contextlib.suppress(*_GONE, RuntimeError):
            await _end(client, patience_s)


async def _begin(client: QMPClient, address: str) -> None:
    """Begin a session; anew, if QEMU tells of an event before it greets or answers.

    It does now and then, from whichever thread has news: from the moment in which the session is
    accepted until it is reset, and again once the first command is carried out. The library takes
    that for nonsense, and is as it was before. QEMU's queue is short, too: a caller who finds it
    full tries again for as long as his patience lasts.
    """
    left = GREETINGS
    while True:
        try:
            return await client.connect(address)
        except ConnectError as error:
            match error.exc:
                case GreetingError() | NegotiationError() if left > 1:
                    left -= 1
                case BlockingIOError():
                    await asyncio.sleep(CROWD_S)
                case _:
                    raise


async def _end(client: QMPClient, patience_s: float) -> None:
    """End a session; QEMU may not even take what it was told, and is not waited for then."""
    breaking_off = asyncio.get_running_loop().call_later(patience_s, _break_off, client)
    try:
        await client.disconnect()
    finally:
        breaking_off.cancel()


def _break_off(client: QMPClient) -> None:
    if (writer := client._writer) is not None:  # noqa: SLF001 -- it would flush, for ever
        writer.transport.abort()


def _silent(guest: str, error: Exception) -> Silent:
    if isinstance(error, TimeoutError):
        return Silent(f"The QEMU of {guest} does not answer.", instance=guest)
    return HungUp(
        f"The QEMU of {guest} cannot be reached; it may have ended just now.", instance=guest
    )
