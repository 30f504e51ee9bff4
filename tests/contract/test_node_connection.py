"""Our own HTTP client against whatever a server may say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from common.errors import BadAnswer, Unreachable
from common.model.node import Node
from common.names import Epoch, GroupId, NodeId, NodeName
from common.noderpc.mastership import Mastership
from common.rpc.envelope import answer
from common.tls.context import server_context
from coordinator.nodes.calls import Nodes
from tests.support.https_node import LOCALHOST, TestCluster, run

BALLOT = answer({"node": "beta", "epoch": 3, "master": None, "stamp": None, "newest_job": None})


def told(body: bytes, *fields: str) -> bytes:
    head = "\r\n".join(("HTTP/1.1 200 OK", f"content-LENGTH:  {len(body)}", *fields, "\r\n"))
    return head.encode() + body


class Talker:
    """Answers each request with the next of ``says``; None: hang up. Keeps count."""

    def __init__(self, *says: bytes | None) -> None:
        self.says = list(says)
        self.connections = 0
        self.requests: list[bytes] = []
        self.heard = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.says:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.split(b"Content-Length: ")[1].split()[0]))
                self.requests.append(head + body)
                self.heard.set()
                said = self.says.pop(0)
                if said is None:
                    break
                writer.write(said)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def talking(talker: Talker, directory: Path) -> AsyncIterator[tuple[Mastership, Nodes]]:
    cluster = TestCluster(directory)
    context = server_context(cluster.identity("beta"))
    server = await asyncio.start_server(talker.serve, LOCALHOST, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    node = Node(
        uuid=NodeId("b"), name=NodeName("beta"), primary_ip=LOCALHOST, port=port, group=GroupId("g")
    )
    async with server, cluster.caller() as nodes:
        yield Nodes(nodes.dial, Epoch(3), Random(7)).service(Mastership, node), nodes


def test_calls_follow_one_another_on_one_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        talker = Talker(*[told(BALLOT)] * 3)
        async with talking(talker, tmp_path) as (mastership, _):
            for _ in range(3):
                assert (await mastership.vote()).epoch == 3
        assert talker.connections == 1
        assert talker.requests[0].startswith(b"PUT /mastership/vote HTTP/1.1\r\nHost: beta\r\n")
        assert b"\r\nGantry-Epoch: 3\r\n" in talker.requests[0]

    run(scenario())


def test_a_connection_that_the_node_closes_is_not_used_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        talker = Talker(told(BALLOT, "Connection: close"), told(BALLOT))
        async with talking(talker, tmp_path) as (mastership, _):
            await mastership.vote()
            await mastership.vote()
        assert talker.connections == 2

    run(scenario())


def test_a_hang_up_is_tried_once_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        talker = Talker(None, told(BALLOT))
        async with talking(talker, tmp_path) as (mastership, _):
            assert (await mastership.vote()).epoch == 3
        assert talker.connections == 2

    run(scenario())


@pytest.mark.parametrize(
    "nonsense",
    [
        b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"x" * 100_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"\xff" * 100_000 + b"\r\n\r\n",
        told(BALLOT, "Gantry-Clock: n\xf6 1.5"),
        told(BALLOT, "Gantry-Clock: a\nHost:b 1.5"),
    ],
)
def test_an_answer_that_is_none_is_told_as_such(tmp_path: Path, nonsense: bytes) -> None:
    async def scenario() -> None:
        async with talking(Talker(nonsense, nonsense), tmp_path) as (mastership, _):
            with pytest.raises(Unreachable, match="no answer of noded"):
                await mastership.vote()

    run(scenario())


def test_an_answer_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        huge = b"HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n"
        async with talking(Talker(huge), tmp_path) as (mastership, _):
            with pytest.raises(BadAnswer, match=r"with 60000000 bytes, and 1048576 are the most"):
                await mastership.vote()

    run(scenario())


def test_half_an_answer_is_none(tmp_path: Path) -> None:
    class HalfTalker(Talker):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(told(BALLOT)[:-5])
            writer.close()

    async def scenario() -> None:
        async with talking(HalfTalker(), tmp_path) as (mastership, _):
            with pytest.raises(Unreachable, match="hung up before it answered"):
                await mastership.vote()

    run(scenario())


def test_a_call_that_was_given_up_does_not_spoil_the_next(tmp_path: Path) -> None:
    async def scenario() -> None:
        talker = Talker(b"", told(BALLOT))  # the first gets no answer in time
        async with talking(talker, tmp_path) as (mastership, _):
            given_up = asyncio.ensure_future(mastership.vote())
            await talker.heard.wait()
            given_up.cancel()
            await asyncio.wait([given_up])
            assert (await mastership.vote()).epoch == 3
        assert talker.connections == 2

    run(scenario())
