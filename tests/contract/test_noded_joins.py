"""A real noded behind real TLS: how it joins a cluster, and leaves it."""

import asyncio
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from common.errors import Conflict, GntError, InvalidRequest
from common.messages import to_builtins
from common.names import ClusterName, Epoch, NodeName
from common.noderpc.disks import Disks
from common.noderpc.facts import Facts
from common.noderpc.identity import Identity, Join
from common.noderpc.mastership import Mastership
from common.rpc.client import stub
from common.tasks import Background
from common.tls.context import client_context
from coordinator.nodes.stranger import stranger
from tests.support.https_node import DISK, LOCALHOST, PATH, YEAR_S, TestCluster, beta, run, served

T = TypeVar("T")


def test_a_node_joins_by_its_token_and_then_takes_orders(root: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            token_file = node.paths.join_token
            assert token_file.read_text() == f"{node.token}\n"
            assert token_file.stat().st_mode & 0o777 == 0o600
            await cluster.join(node, "beta")
            async with cluster.caller() as nodes:
                facts = await beta(node, nodes, Facts).facts()
                assert facts.name == "beta"
                await beta(node, nodes, Mastership).grant(epoch=Epoch(1), master=NodeName("alpha"))
                await beta(node, nodes, Disks).ensure_present(disk=DISK)
            assert PATH in node.storage.shared.disks
            assert (node.paths.ssconf / "cluster_name").read_text() == "one.example.com\n"
            assert not token_file.exists()
        async with served(root) as node, cluster.caller() as nodes:  # after a restart
            ballot = await beta(node, nodes, Mastership).vote()
            assert (ballot.master, ballot.epoch) == ("alpha", 1)

    run(scenario())


def test_an_unjoined_node_shows_its_fingerprint_and_wants_its_secret(
    root: Path, cluster: TestCluster
) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            target = node.as_object("beta")
            fooled = stub(Join, stranger(target, bytes(32)))
            with pytest.raises(InvalidRequest, match="another certificate than the join token"):
                await fooled.request(node=target.name, proof="")
            join = stub(Join, stranger(target, node.token.fingerprint))
            with pytest.raises(InvalidRequest, match="not beta's"):
                await join.request(node=target.name, proof="0" * 64)
            facts = stub(Facts, stranger(target, node.token.fingerprint))
            with pytest.raises(Conflict, match="in no cluster yet"):
                await facts.facts()

    run(scenario())


def test_who_is_told_that_a_node_has_joined_can_call_it_at_once(
    root: Path, cluster: TestCluster
) -> None:
    """However long noded takes to get to what can be done later, say on a busy machine."""

    class Late(Background):
        def start(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
            async def later() -> T:
                try:
                    await asyncio.sleep(60.0)
                    return await work
                finally:
                    work.close()

            return super().start(later(), name=name)

    async def scenario() -> None:
        async with served(root) as node:
            node.server._background = Late()
            await cluster.join(node, "beta")
            context = client_context(cluster.identity("alpha"))
            _, writer = await asyncio.open_connection(
                LOCALHOST, node.port, ssl=context, server_hostname="beta"
            )
            writer.close()

    run(scenario())


def test_a_certificate_that_does_not_fit_leaves_the_node_unjoined(
    root: Path, cluster: TestCluster, tmp_path: Path
) -> None:
    other = TestCluster(tmp_path / "other")

    async def scenario() -> None:
        async with served(root) as node:
            join = stub(Join, stranger(node.as_object("beta"), node.token.fingerprint))
            proof = node.token.prove("join.request", {"node": "beta"})
            csr = (await join.request(node=NodeName("beta"), proof=proof)).csr
            for certificate in (
                cluster.issue(csr, "gamma"),
                other.issue(csr, "beta"),
                cluster.issue(csr, "beta", age_s=6 * YEAR_S),
                "garbage",
            ):
                membership = cluster.membership("beta", certificate)
                proof = node.token.prove("join.accept", {"membership": to_builtins(membership)})
                with pytest.raises(InvalidRequest):
                    await join.accept(membership=membership, proof=proof)
            assert node.node.identity.member is None
            await cluster.join(node, "beta")

    run(scenario())


def test_a_member_cannot_be_joined_again(root: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            token = node.token
            await cluster.join(node, "beta")
            proof = token.prove("join.request", {"node": "beta"})
            with pytest.raises(InvalidRequest, match="the token is of another node, or was used"):
                await stub(Join, stranger(node.as_object("beta"), token.fingerprint)).request(
                    node=NodeName("beta"), proof=proof
                )
            async with cluster.caller() as nodes:
                with pytest.raises(Conflict, match=r"in the cluster one\.example\.com already"):
                    await beta(node, nodes, Join).request(node=NodeName("beta"), proof=proof)

    run(scenario())


def test_who_shook_hands_with_a_node_before_it_joined_is_sent_away(
    root: Path, cluster: TestCluster
) -> None:
    """The node was none of the cluster's when the handshake began, and is when it ends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def scenario() -> None:
        async with served(root) as node:
            reader, writer = await asyncio.open_connection(LOCALHOST, node.port)
            from_node, to_node = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(from_node, to_node)
            with pytest.raises(ssl.SSLWantReadError):
                tls.do_handshake()
            writer.write(to_node.read())
            from_node.write(await reader.read(65536))
            tls.do_handshake()
            await cluster.join(node, "beta")
            tls.write(b"GET / HTTP/1.1\r\nHost: b\r\n\r\n")
            said = b""
            with suppress(ConnectionError):
                writer.write(to_node.read())  # it ends the handshake, and asks
                while not said and (data := await reader.read(65536)):
                    from_node.write(data)
                    with suppress(ssl.SSLError):
                        said += tls.read()
            writer.close()
            assert said == b""

    run(scenario())


def test_a_node_that_leaves_forgets_and_can_join_another_cluster(
    root: Path, cluster: TestCluster, tmp_path: Path
) -> None:
    other = TestCluster(tmp_path / "other", ClusterName("two.example.com"))

    async def scenario() -> None:
        async with served(root) as node:
            token = node.token
            await cluster.join(node, "beta")
            async with cluster.caller(epoch=7) as nodes:
                await beta(node, nodes, Mastership).grant(epoch=Epoch(7), master=NodeName("alpha"))
                await beta(node, nodes, Identity).leave()
            assert not node.paths.identity.exists()
            assert not node.paths.grants.exists()
            assert not node.paths.ssconf.exists()
            assert node.token.secret != token.secret
            async with cluster.caller() as nodes:
                with pytest.raises(GntError):
                    await beta(node, nodes, Mastership).vote()
            await other.join(node, "beta2")
            async with other.caller(epoch=1) as nodes:
                service = nodes.service(Mastership, node.as_object("beta2"))
                assert (await service.vote()).epoch == 0

    run(scenario())
