"""The console stream through noded's real server: TLS, who may look, two at once."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from common.errors import Unreachable
from common.names import InstanceId
from common.noderpc.identity import Identity
from common.noderpc.roster import Rosters
from common.paths import Paths
from common.tls.context import client_context
from coordinator.cli import console as remote
from noded.hypervisor.interface import Console
from tests.support.https_node import LOCALHOST, Served, TestCluster, run, served

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Be a guest that writes what is typed, until a line says ``off``."""
    while (data := await reader.read(1000)) not in (b"", b"off\n"):
        writer.write(data)
    writer.close()


def console_of(node: Served, socket: Path) -> None:
    async def find(_instance: InstanceId) -> Console:
        return socket

    async def watched(_instance: InstanceId) -> None:
        pass

    node.node.consoles._find = find
    node.node.consoles._watched = watched


def test_master_candidates_look_and_type_over_tls(tmp_path: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        guest = await asyncio.start_unix_server(echo, str(tmp_path / "serial"))
        async with served(tmp_path / "beta") as node, aiohttp.ClientSession() as session:
            await cluster.join(node, "beta")
            console_of(node, tmp_path / "serial")
            url = f"https://{LOCALHOST}:{node.port}/console/{WEB1}"
            context = client_context(cluster.identity("alpha"))
            async with (
                session.ws_connect(url, ssl=context, server_hostname="beta") as first,
                session.ws_connect(url, ssl=context, server_hostname="beta") as second,
            ):
                await second.send_bytes(b"ls\n")
                assert await first.receive_bytes() == await second.receive_bytes() == b"ls\n"
                await first.send_bytes(b"off\n")
                for looker in (first, second):
                    assert (await looker.receive()).extra == "The console has ended."
        guest.close()

    run(scenario())


def test_nodes_that_are_no_candidates_do_not_look(tmp_path: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        async with served(tmp_path / "beta") as node, aiohttp.ClientSession() as session:
            await cluster.join(node, "beta")
            url = f"https://{LOCALHOST}:{node.port}/console/{WEB1}"
            context = client_context(cluster.identity("gamma"))
            async with session.get(url, ssl=context, server_hostname="beta") as response:
                told = await response.json()
            assert told["error"]["code"] == "conflict.not-listed"
            assert "no master candidate" in told["error"]["message"]

    run(scenario())


def test_a_demoted_candidate_stops_looking(tmp_path: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        guest = await asyncio.start_unix_server(echo, str(tmp_path / "serial"))
        async with served(tmp_path / "beta") as node, aiohttp.ClientSession() as session:
            await cluster.join(node, "beta")
            console_of(node, tmp_path / "serial")
            url = f"https://{LOCALHOST}:{node.port}/console/{WEB1}"
            context = client_context(cluster.identity("beta"))
            async with (
                cluster.caller("alpha") as nodes,
                session.ws_connect(url, ssl=context, server_hostname="beta") as looker,
            ):
                rosters = nodes.service(Rosters, node.as_object("beta"))
                await rosters.publish(roster=cluster.roster("alpha", serial=1))
                last = await looker.receive()
                assert last.type is aiohttp.WSMsgType.CLOSE
                assert "no master candidate" in str(last.extra)
        guest.close()

    run(scenario())


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Be a guest that writes more than lines and buffers hold, and then a full stop."""
    for _ in range(256):
        writer.write(b"x" * (64 << 10))
        await writer.drain()
    writer.write(b".")
    await reader.read()
    writer.close()


def test_one_who_takes_in_nothing_keeps_no_other_console(
    tmp_path: Path, cluster: TestCluster
) -> None:
    async def scenario() -> None:
        guest = await asyncio.start_unix_server(flood, str(tmp_path / "serial"))
        async with served(tmp_path / "beta") as node, aiohttp.ClientSession() as session:
            await cluster.join(node, "beta")
            console_of(node, tmp_path / "serial")
            url = f"https://{LOCALHOST}:{node.port}/console/{WEB1}"
            context = client_context(cluster.identity("beta"))
            deaf = await session.ws_connect(url, ssl=context, server_hostname="beta")
            connection = deaf._response.connection
            assert connection
            line = connection.transport
            assert line
            line.pause_reading()
            async with (
                cluster.caller("alpha") as nodes,
                session.ws_connect(
                    url, ssl=context, server_hostname="beta", max_msg_size=0
                ) as other,
            ):
                while not (await other.receive_bytes()).endswith(b"."):
                    pass
                rosters = nodes.service(Rosters, node.as_object("beta"))
                await rosters.publish(roster=cluster.roster("alpha", serial=1))
                async with asyncio.timeout(8):
                    assert (await other.receive()).type is aiohttp.WSMsgType.CLOSE
            line.abort()
            await deaf.close()
        guest.close()

    run(scenario())


def test_stopping_noded_ends_the_streams(tmp_path: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        guest = await asyncio.start_unix_server(echo, str(tmp_path / "serial"))
        async with aiohttp.ClientSession() as session:
            async with served(tmp_path / "beta") as node:
                await cluster.join(node, "beta")
                console_of(node, tmp_path / "serial")
                url = f"https://{LOCALHOST}:{node.port}/console/{WEB1}"
                context = client_context(cluster.identity("alpha"))
                socket = await session.ws_connect(url, ssl=context, server_hostname="beta")
            assert (await socket.receive()).type in (
                aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR,
            )  # fmt: skip
            await socket.close()
        guest.close()

    run(scenario())


@pytest.mark.parametrize("known", [True, False])
def test_nobody_but_the_node_with_its_key_shows_a_console(
    known: bool, tmp_path: Path, cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody with the authority's key could make a certificate in the name of beta."""
    here = Paths(str(tmp_path / "alpha"))
    here.state.mkdir(parents=True)
    here.identity.symlink_to(cluster.identity("alpha"))
    monkeypatch.setenv("GANTRY_ROOT", str(here.root))

    async def scenario() -> None:
        guest = await asyncio.start_unix_server(echo, str(tmp_path / "serial"))
        async with served(tmp_path / "beta") as node, cluster.caller() as nodes:
            await cluster.join(node, "beta")
            console_of(node, tmp_path / "serial")
            key = (await nodes.service(Identity, node.as_object("beta")).who()).key
            where = remote.Console(
                "web1", WEB1, LOCALHOST, node.port, "beta", key if known else cluster.key("beta")
            )
            if known:
                assert await remote.attach(where, 0.0) is remote.Ending.TIME_IS_UP
            else:
                with pytest.raises(Unreachable, match="its key is another one"):
                    await remote.attach(where, 0.0)
        guest.close()

    run(scenario())
