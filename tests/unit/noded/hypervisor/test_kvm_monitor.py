"""A QEMU that goes away in the middle of a conversation is silent; that is no mistake of ours."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest

from noded.hypervisor.kvm.monitor import Silent, monitor

GREETING = json.dumps({"QMP": {"version": {"qemu": {}, "package": ""}, "capabilities": []}})
DONE = json.dumps({"return": {}})


EVENT = json.dumps({"event": "RESUME", "timestamp": {"seconds": 1, "microseconds": 2}})


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


def test_an_event_that_overtakes_the_first_answer_does_not_make_qemu_silent() -> None:
    sessions = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sessions
        sessions += 1
        writer.write(GREETING.encode() + b"\r\n")
        for _ in range(2):
            if not (asked := await reader.read(4096)):
                break
            answer = json.loads(DONE) | {"id": json.loads(asked).get("id")}
            early = f"{EVENT}\r\n" if sessions < 3 else ""
            writer.write(f"{early}{json.dumps(answer)}\r\n".encode())
        await reader.read()
        writer.close()

    async def scenario(directory: Path) -> None:
        socket = directory / "qmp.sock"
        async with (
            await asyncio.start_unix_server(serve, socket),
            monitor(socket, "web1") as session,
        ):
            assert await session.ask("query-status") == {}
        assert sessions == 3

    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        asyncio.run(scenario(Path(directory)))
