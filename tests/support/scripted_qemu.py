"""A QEMU that is but its monitor: answers what it is told to, and can have its main loop hang."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

GREETING = {"QMP": {"version": {"qemu": {}, "package": ""}, "capabilities": ["oob"]}}


class ScriptedQemu:
    """Answers each command as ``answers`` say, others with nothing; ``told`` has what it did.

    Of a list it answers one after the other, the last for ever.

    Attributes:
        hangs: it obeys only what is to be obeyed at once.
        sessions: how often somebody came.
        unheard: what it was told in vain.
    """

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = dict(answers or {})
        self.told: list[str] = []
        self.unheard: list[str] = []
        self.hangs = False
        self.sessions = 0

    @asynccontextmanager
    async def at(self, *sockets: Path) -> AsyncIterator[None]:
        """Be reached by these until the end of the block."""
        servers = [await asyncio.start_unix_server(self._serve, each) for each in sockets]
        try:
            yield
        finally:
            for server in servers:
                server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.sessions += 1
        _say(writer, GREETING)
        pending = ""
        while part := await reader.read(4096):
            pending = (pending + part.decode()).lstrip()
            while pending:
                asked, end = json.JSONDecoder().raw_decode(pending)
                pending = pending[end:].lstrip()
                self._obey(asked, writer)
        writer.close()

    def _obey(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        command = asked.get("exec-oob")
        if command is None:
            if self.hangs:
                self.unheard.append(asked["execute"])
                return
            command = asked["execute"]
        self.told.append(command)
        answer = self.answers.get(command, {})
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        _say(writer, {"return": answer, "id": asked.get("id")})


def _say(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(json.dumps(message).encode() + b"\r\n")
