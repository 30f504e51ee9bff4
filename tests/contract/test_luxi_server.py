"""The LUXI socket under bad input and bad luck, over a real unix socket."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coordinator.master.luxi_server as luxi_server
from common.errors import Conflict, NotFound
from common.execute import execute
from common.luxi.answers import Request
from coordinator.master.luxi_server import LuxiServer
from coordinator.operations.registry import load_all

END = b"\x03"
SOMEBODY = 65534


async def echo(request: Request) -> Any:
    match request.method:
        case "Echo":
            return list(request.args)
        case "Fail":
            raise NotFound("There is no such thing.")
        case "Count":
            return int(request.args[0])
        case "Slow":
            return await asyncio.Event().wait()
        case _:
            raise RuntimeError("a mistake of ours")


def serve(
    tmp_path: Path,
    scenario: Callable[[LuxiServer, Path], Awaitable[None]],
    *,
    kind: type[LuxiServer] = LuxiServer,
) -> None:
    async def run() -> None:
        path = tmp_path / "luxi.sock"
        server = kind(path)
        await server.start(echo)
        try:
            async with asyncio.timeout(20):
                await scenario(server, path)
        finally:
            await server.stop()

    asyncio.run(run())


async def exchange(path: Path, data: bytes) -> list[dict[str, Any]]:
    """Send bytes, hang up our side, and return the answers."""
    reader, writer = await asyncio.open_unix_connection(path, limit=2**24)
    writer.write(data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return [json.loads(text) for text in answer.split(END)[:-1]]


def request(method: str, *args: Any, **extra: Any) -> bytes:
    return json.dumps({"method": method, "args": args} | extra).encode() + END


def test_requests_are_answered_in_order(tmp_path: Path) -> None:
    async def scenario(_: LuxiServer, path: Path) -> None:
        answers = await exchange(path, request("Echo", 1) + request("Echo", "two"))
        assert [answer["result"] for answer in answers] == [[1], ["two"]]

    serve(tmp_path, scenario)


def test_version_of_the_client_is_echoed(tmp_path: Path) -> None:
    async def scenario(_: LuxiServer, path: Path) -> None:
        (answer,) = await exchange(path, request("Echo", version=3000000))
        assert answer["version"] == 3000000
        (answer,) = await exchange(path, request("Echo"))
        assert "version" not in answer

    serve(tmp_path, scenario)


def test_errors_reach_the_client_in_both_forms(tmp_path: Path) -> None:
    async def scenario(_: LuxiServer, path: Path) -> None:
        failed, bug, fine = await exchange(
            path, request("Fail") + request("Unheard") + request("Echo")
        )
        assert failed["result"] == ["OpPrereqError", ["There is no such thing.", "unknown_entity"]]
        assert failed["error"]["code"] == "not-found"
        assert bug["error"]["code"] == "bug"
        assert fine["success"]

    serve(tmp_path, scenario)


@pytest.mark.parametrize("number", [b'"x"', b"null", b"1e400", b"[]"])
def test_what_is_no_number_is_no_bug(tmp_path: Path, number: bytes) -> None:
    async def scenario(_: LuxiServer, path: Path) -> None:
        told = b'{"method": "Count", "args": [%b]}' % number + END
        (answer,) = await exchange(path, told)
        assert answer["error"]["code"] == "invalid-request"

    serve(tmp_path, scenario)


@pytest.mark.parametrize(
    "garbage",
    [
        b"garbage",
        b"",
        b"{}",
        b"[]",
        b"\xff\xfe\x00",
        b'{"method": 1, "args": []}',
        b'{"method": "Echo", "args": {}}',
        b'{"method": "Echo"',
        b"[" * 100_000,
    ],
)
def test_garbage_is_named_and_hung_up_on(tmp_path: Path, garbage: bytes) -> None:
    async def scenario(_: LuxiServer, path: Path) -> None:
        (answer,) = await exchange(path, garbage + END + request("Echo"))
        assert answer["success"] is False
        assert "LUXI request" in answer["result"]
        (answer,) = await exchange(path, request("Echo", "still here"))
        assert answer["result"] == ["still here"]

    serve(tmp_path, scenario)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=300))
def test_no_bytes_stop_the_server(tmp_path: Path, data: bytes) -> None:
    async def scenario(_: LuxiServer, path: Path) -> None:
        await exchange(path, data)
        (answer,) = await exchange(path, request("Echo"))
        assert answer["success"]

    serve(tmp_path, scenario)


def test_slow_request_holds_up_nobody_else(tmp_path: Path) -> None:
    async def scenario(server: LuxiServer, path: Path) -> None:
        _, writer = await asyncio.open_unix_connection(path)
        writer.write(request("Slow"))
        (answer,) = await exchange(path, request("Echo"))
        assert answer["success"]
        writer.close()

    serve(tmp_path, scenario)


def test_second_coordinator_is_refused_by_name(tmp_path: Path) -> None:
    async def scenario(_: LuxiServer, path: Path) -> None:
        with pytest.raises(Conflict, match="Another coordinator runs on this node"):
            await LuxiServer(path).check_free()
        (answer,) = await exchange(path, request("Echo"))
        assert answer["success"], "the first one was disturbed"

    serve(tmp_path, scenario)


def test_socket_left_by_a_killed_coordinator_is_replaced(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "luxi.sock"
        left = await asyncio.start_unix_server(lambda _, __: None, path)
        left.close()  # the file stays, as after kill -9
        assert path.exists()
        server = LuxiServer(path)
        await server.start(echo)
        (answer,) = await exchange(path, request("Echo"))
        assert answer["success"]
        await server.stop()
        assert not path.exists()

    asyncio.run(scenario())


def test_socket_is_open_to_its_group_only(tmp_path: Path) -> None:
    modes: list[int] = []

    async def scenario(_: LuxiServer, path: Path) -> None:
        modes.append(await asyncio.to_thread(lambda: path.stat().st_mode & 0o777))

    serve(tmp_path, scenario)
    assert modes == [0o660]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: cannot be somebody else")
def test_members_of_the_group_are_told_apart_from_root() -> None:
    """A process of another user, in the socket's group, asks for what is root's."""
    load_all()
    destroy = request("SubmitJob", [{"OP_ID": "OP_CLUSTER_DESTROY"}])
    program = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.connect(sys.argv[1])\n"
        "for asked in sys.argv[2:]:\n"
        "    s.sendall(asked.encode() + b'\\3')\n"
        "    print(s.recv(65536)[:-1].decode())\n"
    )
    asked = [text.decode() for text in (request("Echo", 1)[:-1], destroy[:-1])]
    words = ("setpriv", f"--reuid={SOMEBODY}", "--regid=0", "--clear-groups", sys.executable, "-Ic")

    async def scenario(_: LuxiServer, path: Path) -> None:
        done = await execute(*words, program, str(path), *asked, timeout_s=20)
        first, second = map(json.loads, done.stdout.splitlines())
        assert first["success"]
        assert not second["success"]
        assert "is for root of the master" in str(second["result"])
        (answer,) = await exchange(path, destroy)
        assert "a mistake of ours" in str(answer["result"])  # it has reached the handler

    with tempfile.TemporaryDirectory(prefix="luxi-") as name:
        Path(name).chmod(0o711)
        serve(Path(name), scenario)


async def asked(path: Path) -> asyncio.StreamWriter:
    """Connect and have one request answered."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b'{"method": "Echo", "args": [1]}' + END)
    assert json.loads((await reader.readuntil(END))[:-1])["success"]
    return writer


def test_whoever_opens_too_many_connections_loses_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(luxi_server, "MOST_OF_ONE_USER", 3)

    async def scenario(server: LuxiServer, path: Path) -> None:
        first, first_writer = await asyncio.open_unix_connection(path)
        opened = [await asked(path) for _ in range(20)]
        assert await first.read() == b""
        assert len(server._connections) <= 4
        for writer in (first_writer, *opened):
            writer.close()

    serve(tmp_path, scenario)


def test_an_answer_that_nobody_takes_does_not_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(luxi_server, "READING_PATIENCE_S", 0.1)

    async def scenario(server: LuxiServer, path: Path) -> None:
        reader, writer = await asyncio.open_unix_connection(path, limit=1)
        writer.write(b'{"method": "Echo", "args": ["' + b"x" * (4 << 20) + b'"]}' + END)
        await reader.read(1)  # and no more of it
        [talking] = server._connections
        await asyncio.wait([talking])  # the limit of all scenarios ends it otherwise
        writer.close()

    serve(tmp_path, scenario)


@pytest.mark.parametrize("then", ["says no more", "is unreadable", "has to go"])
def test_a_connection_that_ends_leaves_no_answer_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    patience_s = 60.0 if then == "has to go" else 0.1
    monkeypatch.setattr(luxi_server, "READING_PATIENCE_S", patience_s)
    answered: list[asyncio.StreamWriter] = []

    class Remembering(LuxiServer):
        async def _talk(
            self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: int
        ) -> None:
            writer.transport.set_write_buffer_limits(high=1 << 30)  # for one that never waits
            answered.append(writer)
            await super()._talk(reader, writer, user)

    async def scenario(server: LuxiServer, path: Path) -> None:
        reader, writer = await asyncio.open_unix_connection(path, limit=1)
        writer.write(b'{"method": "Echo", "args": ["' + b"x" * (4 << 20) + b'"]}' + END)
        await reader.read(1)  # and no more of it
        [talking] = server._connections
        match then:
            case "says no more":
                writer.write_eof()
            case "is unreadable":
                writer.write(b"?" + END)
            case _:
                talking.cancel()
        await asyncio.wait([talking])
        [theirs] = answered
        assert theirs.transport.get_write_buffer_size() == 0
        writer.close()

    serve(tmp_path, scenario, kind=Remembering)
