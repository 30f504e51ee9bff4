"""A QEMU that goes away in the middle of a conversation is silent; that is no mistake of ours."""

import asyncio
import contextlib
import json
import socket
import tempfile
from pathlib import Path
from typing import cast

import pytest
import uvloop

from noded.hypervisor.kvm.monitor import Silent, monitor

GREETING = json.dumps({"QMP": {"version": {"qemu": {}, "package": ""}, "capabilities": []}})
DONE = json.dumps({"return": {}})
MORE_THAN_FITS = "x" * (4 << 20)  # into all that lies between two ends of a connection

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
        address = directory / "qmp.sock"
        qemu = DyingQemu(lines, pauses)
        async with await asyncio.start_unix_server(qemu.serve, address):
            with pytest.raises(Silent):
                async with monitor(address, "web1") as session:
                    await session.ask("query-status")

    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        asyncio.run(scenario(Path(directory)))


@pytest.mark.parametrize("pauses", range(12))
def test_so_is_one_that_has_gone_away_when_it_is_asked(pauses: int) -> None:
    async def scenario(directory: Path) -> None:
        address = directory / "qmp.sock"
        qemu = DyingQemu((GREETING, DONE), 1)
        async with await asyncio.start_unix_server(qemu.serve, address):
            with pytest.raises(Silent):
                async with monitor(address, "web1") as session:
                    assert session._client._writer is not None
                    session._client._writer.transport.abort()  # as the loop does when QEMU is gone
                    for _ in range(pauses):
                        await asyncio.sleep(0)
                    await session.ask("query-status")

    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        uvloop.run(scenario(Path(directory)))


def test_a_session_ends_though_qemu_takes_nothing_any_more() -> None:
    async def scenario(directory: Path) -> None:
        address, over = directory / "qmp.sock", asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(GREETING.encode() + b"\r\n")
            await reader.read(4096)
            writer.write(DONE.encode() + b"\r\n")
            cast("asyncio.Transport", writer.transport).pause_reading()  # as if it were frozen
            await over.wait()
            writer.close()

        async with await asyncio.start_unix_server(serve, address):
            with pytest.raises(Silent, match="does not answer"):
                async with monitor(address, "web1", patience_s=0.1) as session:
                    await session.ask("human-monitor-command", command_line=MORE_THAN_FITS)
            over.set()

    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        uvloop.run(scenario(Path(directory)))


@pytest.mark.parametrize("overtaken", ["the greeting", "the first answer"])
def test_an_event_that_overtakes_what_qemu_says_first_does_not_make_it_silent(
    overtaken: str,
) -> None:
    sessions = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sessions
        sessions += 1
        early = f"{EVENT}\r\n" if sessions < 3 else ""
        before = {overtaken: early}
        writer.write(f"{before.get('the greeting', '')}{GREETING}\r\n".encode())
        for _ in range(2):
            if not (asked := await reader.read(4096)):
                break
            answer = json.loads(DONE) | {"id": json.loads(asked).get("id")}
            writer.write(f"{before.get('the first answer', '')}{json.dumps(answer)}\r\n".encode())
        await reader.read()
        writer.close()

    async def scenario(directory: Path) -> None:
        address = directory / "qmp.sock"
        async with (
            await asyncio.start_unix_server(serve, address),
            monitor(address, "web1") as session,
        ):
            assert await session.ask("query-status") == {}
        assert sessions == 3

    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        asyncio.run(scenario(Path(directory)))


def test_who_finds_the_queue_full_gets_his_turn() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(GREETING.encode() + b"\r\n")
        for _ in range(2):
            if not (asked := await reader.read(4096)):
                break  # one of the crowd
            answer = json.loads(DONE) | {"id": json.loads(asked).get("id")}
            writer.write(f"{json.dumps(answer)}\r\n".encode())
        await reader.read()
        writer.close()

    async def scenario(path: Path) -> None:
        with socket.socket(socket.AF_UNIX) as listening, contextlib.ExitStack() as crowd:
            listening.bind(str(path))
            listening.listen(0)
            listening.settimeout(0)
            while True:
                waiting = crowd.enter_context(socket.socket(socket.AF_UNIX))
                waiting.settimeout(0)
                try:
                    waiting.connect(str(path))
                except BlockingIOError:
                    break
            loop = asyncio.get_running_loop()
            asked = loop.create_task(ask(path))
            refused = await asyncio.wait([asked], timeout=0.2)
            assert not refused[0]
            crowd.close()
            async with await asyncio.start_unix_server(serve, sock=listening):
                assert await asked == {}

    async def ask(path: Path) -> object:
        async with monitor(path, "web1") as session:
            return await session.ask("query-status")

    with tempfile.TemporaryDirectory(prefix="hv-") as directory:
        uvloop.run(scenario(Path(directory) / "qmp.sock"))
