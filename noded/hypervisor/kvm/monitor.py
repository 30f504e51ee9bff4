"""Talking to a running QEMU: short sessions over its QMP socket.

QEMU serves one client at a time and lets others wait, so a session is opened for a question
and closed again. That way nothing has to be brought back after noded was restarted.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from qemu.qmp import ExecuteError, QMPClient, QMPError

from common.errors import NodeFailure

ANSWER_S = 10.0  # a QEMU that has not answered by then hangs

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


class Monitor:
    """An open session; see ``monitor``."""

    def __init__(self, client: QMPClient, guest: str) -> None:
        self._client = client
        self._guest = guest

    async def ask(self, command: str, **arguments: Any) -> Any:
        """Execute a QMP command; underscores in names of arguments become dashes.

        Raises:
            CommandRefused: QEMU says no.
            Silent: no answer, or the connection broke.
        """
        told = {name.replace("_", "-"): value for name, value in arguments.items()}
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._client.execute(command, told or None)
        except ExecuteError as error:
            reason = error.error.error.desc.rstrip(".")
            raise CommandRefused(
                f"QEMU refuses {command} for {self._guest}: {reason}.",
                command=command,
                reason=reason,
            ) from error
        except _GONE as error:
            raise _silent(self._guest, error) from error


@contextlib.asynccontextmanager
async def monitor(socket: Path, guest: str) -> AsyncIterator[Monitor]:
    """Open a session with the QEMU behind ``socket``; ``guest`` is its name in errors.

    Raises:
        Silent: nobody answers.
    """
    client = QMPClient()
    try:
        try:
            async with asyncio.timeout(ANSWER_S):
                await client.connect(str(socket))
        except _GONE as error:
            raise _silent(guest, error) from error
        yield Monitor(client, guest)
    finally:
        # Also fetches what the client's own tasks failed with, or asyncio would complain.
        with contextlib.suppress(*_GONE):
            await client.disconnect()


def _silent(guest: str, error: Exception) -> Silent:
    why = "does not answer" if isinstance(error, TimeoutError) else "cannot be reached"
    return Silent(f"The QEMU of {guest} {why}; it may have ended just now.", instance=guest)
