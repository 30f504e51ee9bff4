"""A QEMU that goes away in the middle of a conversation is silent; that is no mistake of ours."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest

from noded.hypervisor.kvm.monitor import Silent, monitor

GREETING = json.dumps({"QMP": {"version": {"qemu": {}, "package": ""}, "capabilities": []}})
DONE = json.dumps({"return": {}})


class DyingQemu:
    """Says some lines, each when asked, and goes away ``pauses`` turns of the loop later."""

    def __init__(self, lines: tuple[str, ...], pauses: int) -> None:
        self._lines = lines
        self._pauses = pauses

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number, line in enumerate(self._lines):
            if number:
                await reader.read(4096)
            writer.write(line.encode() + b"\r\n")
        for _ in range(self._pauses):
            await asyncio.sleep(0)
        writer.transport.abort()


@pytest.mark.parametrize("pauses", range(6))
@pytest.mark.parametrize("lines", [(), (GREETING,), (GREETING, DONE), ("nonsense",)])
def test_qemu_that_goes_away_at_any_moment_is_silent(lines: tuple[str, ...], pauses: int) -> None:
    async def scenario(directory: Path) -> None:
        socket = directory / "qmp.sock"
        qemu = DyingQemu(lines, pauses)
        async with await asyncio.start_unix_server(qemu.serve, socket):
            with pytest.raises(Silent):
                async with monitor(socket, "web1") as session:
                    await session.ask("query-status")

    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        asyncio.run(scenario(Path(directory)))
