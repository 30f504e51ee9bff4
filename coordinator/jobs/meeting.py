"""A socket at which a program that follows a job meets it, once: to look on, or to end a wait.

It is Ganeti's way of having somebody look at a job at a certain moment: the job logs where the
socket is, and goes on when somebody has connected and then has hung up, or said something.
"""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path
from typing import Self

from common.unix_socket import listen


class SocketMeeting:
    """Listens inside of ``with``; there is one visitor, the first to come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._visitor: socket.socket | None = None

    @property
    def path(self) -> str:
        return str(self._path)

    async def arrival(self) -> None:
        self._visitor, _ = await asyncio.get_running_loop().sock_accept(self._listener)
        self._stop_listening()

    async def departure(self) -> None:
        assert self._visitor is not None, "who leaves has come"
        with suppress(ConnectionError):  # whoever is gone has left, too
            await asyncio.get_running_loop().sock_recv(self._visitor, 1)

    def __enter__(self) -> Self:
        self._listener = listen(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_listening()
        if self._visitor is not None:
            self._visitor.close()

    def _stop_listening(self) -> None:
        self._listener.close()
        self._path.unlink(missing_ok=True)
