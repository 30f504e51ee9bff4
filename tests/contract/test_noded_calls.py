"""A real noded behind real TLS: what becomes of the calls of those who may call."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from common.errors import Deposed, InvalidRequest, NodeFailure
from common.names import CallId, Epoch, NodeName
from common.noderpc.disks import Disks
from common.noderpc.facts import Facts
from common.noderpc.files import Files
from common.noderpc.mastership import Mastership
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope, open_answer
from common.tls.context import client_context
from coordinator.nodes.calls import Nodes
from tests.support.https_node import (
    DISK,
    HEAD,
    LOCALHOST,
    PATH,
    Served,
    TestCluster,
    beta,
    run,
    served,
)


def test_an_old_epoch_is_refused_and_told_who_is_master(root: Path, cluster: TestCluster) -> None:
    cluster.candidates = ("alpha", "gamma")

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller(epoch=7) as old, cluster.caller("gamma", epoch=8) as new:
                await beta(node, old, Disks).ensure_present(disk=DISK)
                await beta(node, new, Mastership).grant(epoch=Epoch(8), master=NodeName("gamma"))
                with pytest.raises(Deposed, match="obeys gamma, master since epoch 8") as caught:
                    await beta(node, old, Disks).ensure_absent(disk=DISK)
                assert caught.value.detail == {"epoch": 8, "master": "gamma"}
                await beta(node, new, Disks).ensure_absent(disk=DISK)
                assert (await beta(node, old, Mastership).vote()).master == "gamma"

    run(scenario())


async def send(
    nodes: Nodes, node: Served, call: CallSpec, call_id: str, body: bytes, epoch: int = 1
) -> Any:
    beta = node.as_object("beta")
    await nodes.service(Mastership, beta).vote()
    loop = asyncio.get_running_loop()
    good_until = nodes.clocks.good_until(beta.uuid, loop.time() + 10, loop.time())
    envelope = Envelope(epoch=Epoch(epoch), call=CallId(call_id), good_until=good_until)
    reply = await nodes.dial.send(beta, call, envelope, body)
    return open_answer(reply.body, call.returns, what="the answer")


def test_a_repeated_call_is_carried_out_once(root: Path, cluster: TestCluster) -> None:
    body = b'{"disk":' + _json(DISK) + b"}"
    present, absent = Disks.calls["ensure_present"], Disks.calls["ensure_absent"]

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller() as nodes:
                await send(nodes, node, present, "first", body)
                await send(nodes, node, absent, "second", body)
                await send(nodes, node, present, "first", body)  # was long on its way
                assert node.storage.shared.disks == {}
                await send(nodes, node, present, "third", body)
                assert PATH in node.storage.shared.disks
                with pytest.raises(InvalidRequest, match="id third was used for another call"):
                    await send(nodes, node, absent, "third", body)

    run(scenario())


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "“disks” is missing"),
        (b"[]", "it is an object, not a list"),
        (b"\xff\xfe", "Cannot read the call disks.find"),
        (b'{"disks":[],"more":1}', "there is no “more”.* Does its caller run another version"),
        (b'{"disks":' + b"[" * 100_000, "Cannot read the call"),
    ],
)
def test_malformed_arguments_are_refused_by_name(
    root: Path, cluster: TestCluster, body: bytes, why: str
) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller() as nodes:
                with pytest.raises(InvalidRequest, match=why):
                    await send(nodes, node, Disks.calls["find"], "a", body)

    run(scenario())


def test_whoever_may_not_ask_is_told_before_any_argument_is_read(
    root: Path, cluster: TestCluster
) -> None:
    request = HEAD.replace(b"mastership/vote", b"disks/find")

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            reader, writer = await asyncio.open_connection(
                LOCALHOST, node.port, server_hostname="beta",
                ssl=client_context(cluster.identity("gamma")),
            )  # fmt: skip
            writer.write(request + b"Content-Length: 1000\r\n\r\n")  # and no argument follows
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 409 ")
            assert b"gamma may not ask for disks.find" in answer
            writer.close()

    run(scenario())


def test_ssconf_files_have_fixed_names(root: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller() as nodes:
                files = beta(node, nodes, Files)
                await files.publish(files={"master_node": "alpha\n"})
                for name in ("../mastership.json", "/etc/passwd", "", "master_node/", "."):
                    with pytest.raises(InvalidRequest, match="no ssconf file"):
                        await files.publish(files={name: "x", "master_node": "x"})
                with pytest.raises(InvalidRequest, match="131072 are allowed"):
                    await files.publish(files={"node_list": "x" * 200_000})
                known, absent = await files.digests(names=("master_node", "node_list"))
                assert len(known.digest) == 64
                assert absent.digest == ""
                (node.paths.ssconf / "node_list").mkdir()
                with pytest.raises(NodeFailure, match="node_list: Is a directory"):
                    await files.publish(files={"node_list": "alpha\n"})
            assert (node.paths.ssconf / "master_node").read_text() == "alpha\n"

    run(scenario())


_audited: list[str] = []


_auditing = False


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _auditing and event in ("open", "import", "subprocess.Popen", "os.posix_spawn", "os.exec"):
        _audited.append(f"{event} {arguments[:1]}")


def test_a_powercycle_opens_imports_and_starts_nothing(root: Path, cluster: TestCluster) -> None:
    """Also not on a new connection: with the disk gone, that is how the order comes."""

    async def scenario() -> None:
        global _auditing  # noqa: PLW0603 -- a hook cannot be taken back
        sys.addaudithook(_audit)
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller() as nodes:
                await beta(node, nodes, Mastership).vote()  # of the caller's, imports are fine
            async with cluster.caller(epoch=0) as nodes:
                try:
                    _auditing = True
                    await beta(node, nodes, Facts).powercycle()
                    await node.power.pressed.wait()
                finally:
                    _auditing = False
        assert _audited == []

    run(scenario())


def _json(value: Any) -> bytes:
    from common.messages import to_json

    return to_json(value)
