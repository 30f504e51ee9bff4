"""A real noded gets another certificate, key, name or authority while it is called."""

import asyncio
import ssl
from contextlib import nullcontext, suppress
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, Unreachable
from common.names import Epoch, NodeName
from common.noderpc.facts import Facts
from common.noderpc.identity import Identity
from common.noderpc.mastership import Mastership
from common.tls.context import KEY, client_context
from common.tls.keys import make_request
from coordinator.nodes.calls import Nodes
from coordinator.nodes.https import HttpsDial
from tests.support.https_node import (
    LOCALHOST,
    Served,
    TestCluster,
    beta,
    node_connections,
    run,
    served,
)


def test_a_certificate_is_renewed_under_open_connections(root: Path, cluster: TestCluster) -> None:
    async def shown(node: Served) -> bytes:
        _, writer = await asyncio.open_connection(
            LOCALHOST, node.port, ssl=client_context(cluster.identity("alpha")),
            server_hostname="beta",
        )  # fmt: skip
        shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return shown

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller() as nodes:
                before = await shown(node)
                csr = (await beta(node, nodes, Identity).request()).csr
                for bad in (cluster.issue(csr, "gamma"), "garbage"):
                    with pytest.raises(InvalidRequest):
                        await beta(node, nodes, Identity).renew(certificate=bad)
                assert await shown(node) == before
                await beta(node, nodes, Identity).renew(certificate=cluster.issue(csr, "beta"))
                kept = node_connections(nodes)
                assert await shown(node) != before
                await beta(node, nodes, Mastership).vote()
                assert node_connections(nodes) == kept  # it was never closed
                assert len(kept) == 1
            after = await shown(node)
        async with served(root) as node:
            assert await shown(node) == after

    run(scenario())


def test_a_key_is_replaced_under_open_connections_and_the_former_one_is_not_believed(
    root: Path, cluster: TestCluster
) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller() as nodes:
                former = (await beta(node, nodes, Identity).who()).key
                kept = node_connections(nodes)
                for _ in range(2):  # a repeat changes nothing
                    csr = (await beta(node, nodes, Identity).request(instead_of=former)).csr
                    await beta(node, nodes, Identity).renew(certificate=cluster.issue(csr, "beta"))
                assert node_connections(nodes) == kept  # it was never closed
                after = (await beta(node, nodes, Identity).who()).key
                assert after != former
            for known, is_believed in (
                ({"key": former}, False),
                ({"key": former, "next_key": after}, True),
                ({"key": after}, True),
            ):
                async with cluster.caller() as nodes:
                    there = replace(node.as_object("beta"), **known)
                    with nullcontext() if is_believed else pytest.raises(Unreachable):
                        await nodes.service(Mastership, there).vote()
        async with served(root) as node, cluster.caller() as nodes:  # after a restart
            assert (await beta(node, nodes, Identity).who()).key == after

    run(scenario())


def test_a_node_is_reached_by_both_its_names_while_it_is_renamed_and_by_the_new_one_then(
    root: Path, cluster: TestCluster
) -> None:
    async def reached(node: Served) -> list[str]:
        """Return the names by which the node is reached, each tried on a new connection."""
        found = []
        for name in ("beta", "bernd"):
            with suppress(ssl.SSLCertVerificationError):
                _, writer = await asyncio.open_connection(
                    LOCALHOST, node.port, ssl=client_context(cluster.identity("alpha")),
                    server_hostname=name,
                )  # fmt: skip
                writer.close()
                found.append(name)
        return found

    async def scenario() -> None:
        async with served(root) as node, cluster.caller() as nodes:
            await cluster.join(node, "beta")
            assert await reached(node) == ["beta"]
            identity = beta(node, nodes, Identity)
            csr = (await identity.request()).csr
            with pytest.raises(InvalidRequest, match="does not make beta bernd"):
                await identity.rename(node=NodeName("bernd"))
            await identity.renew(certificate=cluster.issue(csr, "beta", also="bernd"))
            assert await reached(node) == ["beta", "bernd"]
            renamed = node.as_object("bernd")
            for _ in range(2):
                await nodes.service(Identity, renamed).rename(node=NodeName("bernd"))
            assert (await nodes.service(Facts, renamed).facts()).name == "bernd"
            await nodes.service(Identity, renamed).renew(certificate=cluster.issue(csr, "bernd"))
            assert await reached(node) == ["bernd"]
        async with served(root) as node:  # after a restart
            assert await reached(node) == ["bernd"]

    run(scenario())


def test_an_authority_is_replaced_without_a_moment_in_which_nodes_are_strangers(
    root: Path, cluster: TestCluster, tmp_path: Path
) -> None:
    following = TestCluster(tmp_path / "following")
    former = cluster.authority.certificate
    both = former + following.authority.certificate
    key = (cluster.identity("alpha") / KEY).read_text()
    after = following.issue(make_request(key, NodeName("alpha")), "alpha")

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            context = client_context(cluster.identity("alpha"))
            async with HttpsDial(context, cluster.identity("alpha") / KEY) as dial:
                nodes = Nodes(dial, Epoch(1), Random(1))
                identity = beta(node, nodes, Identity)

                async def ask_anew() -> None:
                    for connection in node_connections(nodes):
                        connection.abort()
                    await beta(node, nodes, Mastership).vote()

                csr = (await identity.request()).csr
                await identity.renew(certificate=cluster.issue(csr, "beta"), authority=both)
                await ask_anew()
                dial.trust(both)
                await identity.renew(certificate=following.issue(csr, "beta"), authority=both)
                await ask_anew()
                dial.show(after)
                await ask_anew()
                with pytest.raises(InvalidRequest):  # it would not trust itself
                    await identity.renew(certificate=following.issue(csr, "beta"), authority=former)
                only = following.authority.certificate
                await identity.renew(certificate=following.issue(csr, "beta"), authority=only)
                await ask_anew()
            context = client_context(cluster.identity("alpha"))
            context.load_verify_locations(cadata=both)
            async with HttpsDial(context) as old:
                with pytest.raises(Unreachable):
                    await beta(node, Nodes(old, Epoch(1), Random(1)), Mastership).vote()

    run(scenario())
