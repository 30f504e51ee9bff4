"""A real noded behind real TLS: its port bears whatever comes."""

import asyncio
import socket
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

import common.porch as porch_module
import noded.daemon.gate as gate_module
import noded.daemon.server as server_module
from common.noderpc.mastership import Mastership
from common.tls.context import client_context
from coordinator.nodes.calls import Nodes
from tests.support.https_node import HEAD, LOCALHOST, Served, TestCluster, beta, run, served


async def raw(node: Served, cluster: TestCluster, request: bytes) -> bytes:
    """Send ``request`` as a good caller's bytes and return all that comes back."""
    reader, writer = await asyncio.open_connection(
        LOCALHOST, node.port, ssl=client_context(cluster.identity("alpha")), server_hostname="beta"
    )
    answer = bytearray()
    writer.write(request)
    with suppress(ConnectionError):
        while chunk := await reader.read(65536):
            answer += chunk
    writer.close()
    return bytes(answer)


CHUNK = b"10000\r\n" + bytes(0x10000) + b"\r\n"


@pytest.mark.parametrize(
    ("rest", "status", "why"),
    [
        (
            b"Content-Length: %d\r\n\r\n" % (1 << 40) + bytes(1000),
            b"413", b"may have 1 KiB of arguments; it has more",
        ),
        (b"Transfer-Encoding: chunked\r\n\r\n" + CHUNK * 20, b"400", b""),
    ],
)  # fmt: skip
def test_a_huge_body_is_refused_without_being_taken_in(
    root: Path, cluster: TestCluster, rest: bytes, status: bytes, why: bytes
) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            answer = await raw(node, cluster, HEAD + rest)
            assert answer.split()[1] == status
            assert why in answer

    run(scenario())


@pytest.mark.parametrize(
    ("request_bytes", "patched", "answer"),
    [
        (b"", (gate_module, "IDLE_S"), b""),
        (HEAD, (gate_module, "IDLE_S"), b""),
        (
            HEAD + b"Content-Length: 10\r\n\r\n{",
            (server_module, "BODY_PATIENCE_S"),
            b"HTTP/1.1 408 ",
        ),
    ],
)
def test_an_unfinished_request_is_ended(
    root: Path, cluster: TestCluster, monkeypatch: pytest.MonkeyPatch,
    request_bytes: bytes, patched: tuple[Any, str], answer: bytes,
) -> None:  # fmt: skip
    monkeypatch.setattr(*patched, 0.2)

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            assert (await raw(node, cluster, request_bytes)).startswith(answer)

    run(scenario())


def test_a_caller_that_goes_away_in_a_body_is_a_line_of_the_log(
    root: Path,
    cluster: TestCluster,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    heard = asyncio.Event()

    def note(text: str, *told: object) -> None:
        said.append(text % told)
        heard.set()

    monkeypatch.setattr(server_module.log, "info", note)

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            context = client_context(cluster.identity("alpha"))
            _, writer = await asyncio.open_connection(
                LOCALHOST, node.port, ssl=context, server_hostname="beta"
            )
            writer.write(HEAD + b"Content-Length: 10\r\n\r\n{")
            await writer.drain()
            writer.close()
            async with asyncio.timeout(20):
                await heard.wait()

    run(scenario())
    assert said == ["127.0.0.1 went away in the middle of a request, after 1 B"]
    assert not [record for record in caplog.records if record.exc_info]


def test_of_what_is_refused_no_more_is_decrypted(root: Path, cluster: TestCluster) -> None:
    """The kernel's buffers take ten MiB or so; what is sent beyond that was read by noded."""

    def send(port: int) -> int:
        """Send without listening, as long as it is taken in; return how many bytes were."""
        sent, context = 0, client_context(cluster.identity("alpha"))
        with (
            socket.create_connection((LOCALHOST, port)) as connection,
            context.wrap_socket(connection, server_hostname="beta") as tls,
        ):
            tls.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            with suppress(OSError):
                while sent < 64 << 20:
                    tls.sendall(CHUNK)
                    sent += len(CHUNK)
        return sent

    async def scenario() -> int:
        async with served(root) as node:
            await cluster.join(node, "beta")
            return await asyncio.to_thread(send, node.port)

    assert run(scenario()) < 32 << 20


def test_whoever_never_shakes_hands_is_cut_off(
    root: Path, cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(porch_module, "SILENCE_S", 0.2)

    async def scenario() -> None:
        async with served(root) as node:
            reader, writer = await asyncio.open_connection(LOCALHOST, node.port)
            assert await reader.read() == b""
            writer.close()

    run(scenario())


def test_more_callers_than_places_are_all_served_in_turn(
    root: Path, cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_module, "MOST_CANDIDATES", 4)
    most = 0

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")

            async def vote(nodes: Nodes) -> None:
                nonlocal most
                await beta(node, nodes, Mastership).vote()
                most = max(most, len(node.server._gate._candidates))

            async with cluster.caller() as nodes, asyncio.TaskGroup() as group:
                for _ in range(40):
                    group.create_task(vote(nodes))
            assert 1 < most <= 4
            async with cluster.caller() as nodes:  # and nobody kept a place
                for _ in range(5):
                    async with asyncio.TaskGroup() as group:
                        for _ in range(4):
                            group.create_task(vote(nodes))

    run(scenario())


@pytest.mark.parametrize("is_member", [False, True])
def test_garbage_on_the_port_harms_nobody(
    root: Path, cluster: TestCluster, is_member: bool
) -> None:
    random = Random(7)
    pieces = [b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\xff\xff", bytes(5000), b"\x80\x00"]
    pieces += [random.randbytes(random.randrange(1, 3000)) for _ in range(20)]

    async def scenario() -> None:
        async with served(root) as node:
            if is_member:
                await cluster.join(node, "beta")
            for piece in pieces:
                reader, writer = await asyncio.open_connection(LOCALHOST, node.port)
                writer.write(piece)
                with suppress(OSError):  # it may have been reset already
                    writer.write_eof()
                    await reader.read()
                writer.close()
            if not is_member:
                await cluster.join(node, "beta")
            async with cluster.caller() as nodes:
                await beta(node, nodes, Mastership).vote()

    run(scenario())


@pytest.mark.parametrize(
    ("request_bytes", "status", "why"),
    [
        (b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", b"404", b"PUT /<service>/<call>"),
        (b"PUT /mastership/vote HTTP/1.1\r\nHost: b\r\n\r\n", b"400", b"lacks a good header"),
        (HEAD.replace(b"vote", b"elect") + b"\r\n", b"404", b"knows no call"),
        (HEAD.replace(b"vote", b"__init__") + b"\r\n", b"404", b"knows no call"),
        (HEAD.replace(b"Epoch: 1", b"Epoch: one") + b"\r\n", b"400", b"lacks a good header"),
        (b"PUT / HTTP/9.9\r\nX" + bytes(100) + b"\r\n\r\n", b"400", b""),
        (b"PUT /a/" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", b"400", b""),
    ],
)
def test_odd_requests_get_an_answer(
    root: Path, cluster: TestCluster, request_bytes: bytes, status: bytes, why: bytes
) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            request = request_bytes.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            answer = await raw(node, cluster, request)
            assert answer.startswith((b"HTTP/1.1 " + status, b"HTTP/1.0 " + status))
            assert why in answer

    run(scenario())
