"""A real noded behind real TLS: who gets in, who is refused, and with what words."""

import asyncio
import logging
import ssl
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, Deposed, Unreachable
from common.names import ClusterName, Epoch, NodeName
from common.noderpc.disks import Disks
from common.noderpc.identity import Identity
from common.noderpc.mastership import Mastership
from common.noderpc.replica import Replica
from common.noderpc.roster import Rosters
from common.tls.context import CERTIFICATE, KEY, client_context
from tests.support.https_node import (
    DISK,
    LOCALHOST,
    YEAR_S,
    TestCluster,
    beta,
    node_connections,
    run,
    served,
)


@pytest.mark.parametrize(
    ("stranger_kind", "why"),
    [
        ("other cluster", "self-signed certificate in certificate chain"),
        ("expired", "certificate has expired"),
        ("none", "peer did not return a certificate"),
    ],
)
def test_callers_without_a_good_certificate_are_refused(
    root: Path, cluster: TestCluster, tmp_path: Path, stranger_kind: str, why: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO)
    other = TestCluster(tmp_path / "other", ClusterName("one.example.com"))

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            match stranger_kind:
                case "other cluster":
                    identity = other.identity("alpha")
                case "expired":
                    identity = cluster.identity("alpha", age_s=6 * YEAR_S)
                case _:
                    identity = cluster.identity("alpha")
            context = client_context(identity)
            context.load_verify_locations(cluster.identity("alpha") / "authority.pem")
            if stranger_kind == "none":
                context = ssl.create_default_context(
                    cafile=str(cluster.identity("alpha") / "authority.pem")
                )
            reader, writer = await asyncio.open_connection(
                LOCALHOST, node.port, ssl=context, server_hostname="beta"
            )
            # With TLS 1.3 the client hears of its refusal when it reads.
            with pytest.raises((ssl.SSLError, ConnectionError)):
                writer.write(b"PUT /mastership/vote HTTP/1.1\r\nHost: beta\r\n\r\n")
                assert await reader.read() == b""
                raise ConnectionResetError
            writer.close()
            async with cluster.caller() as nodes:  # the others go on
                await beta(node, nodes, Mastership).vote()

    run(scenario())
    assert f"A connection from {LOCALHOST} was refused: {why}" in caplog.text


def test_the_caller_refuses_a_node_of_another_cluster_or_time_or_name(
    root: Path, cluster: TestCluster, tmp_path: Path
) -> None:
    other = TestCluster(tmp_path / "other")

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with other.caller() as nodes:
                with pytest.raises(Unreachable, match="no valid certificate of this cluster"):
                    await beta(node, nodes, Mastership).vote()
            async with cluster.caller() as nodes:
                with pytest.raises(Unreachable, match=r"no valid certificate.*mismatch"):
                    await nodes.service(Mastership, node.as_object("gamma")).vote()

    run(scenario())


@pytest.mark.parametrize("years", [-6, 6])
def test_a_clock_that_is_years_off_is_named_by_who_calls(
    root: Path, cluster: TestCluster, years: int
) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            # As if the clock of the node were off that far, the other way round.
            async with cluster.caller(age_s=years * YEAR_S) as nodes:
                with pytest.raises(Unreachable, match="compare the clocks of both nodes"):
                    await beta(node, nodes, Mastership).vote()

    run(scenario())


@pytest.mark.parametrize("years", [-6, 6])
def test_a_certificate_of_another_time_is_told_with_the_clocks(
    root: Path, cluster: TestCluster, years: int
) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            shown = cluster.identity("beta", age_s=years * YEAR_S)
            for name in (KEY, CERTIFICATE):
                (node.paths.identity / name).write_bytes((shown / name).read_bytes())
            node.node.identity.on_change()
            async with cluster.caller() as nodes:
                with pytest.raises(Unreachable, match=r"(yet valid|expired)\. Compare the clocks"):
                    await beta(node, nodes, Mastership).vote()

    run(scenario())


def test_only_candidates_are_listened_to(root: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller("gamma") as nodes:
                with pytest.raises(Conflict, match=r"gamma may not ask for disks\.ensure_present"):
                    await beta(node, nodes, Disks).ensure_present(disk=DISK)
                with pytest.raises(Conflict, match="no master candidate"):
                    await beta(node, nodes, Mastership).grant(
                        epoch=Epoch(9), master=NodeName("gamma")
                    )
                with pytest.raises(Conflict, match="no master candidate"):
                    await beta(node, nodes, Mastership).vote()
            assert node.storage.shared.disks == {}

    run(scenario())


def test_a_demoted_candidate_is_refused_on_the_connection_that_it_has(
    root: Path, cluster: TestCluster
) -> None:
    cluster.candidates = ("alpha", "gamma")

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller(epoch=1) as master, cluster.caller("gamma", epoch=9) as other:
                await beta(node, other, Mastership).vote()
                before = node_connections(other)
                await beta(node, master, Rosters).publish(roster=cluster.roster("alpha", serial=5))
                disks, replica, rosters, mastership = (
                    beta(node, other, kind) for kind in (Disks, Replica, Rosters, Mastership)
                )
                for refused in (
                    disks.ensure_present(disk=DISK),
                    replica.read(after=None, limit=1),
                    rosters.publish(roster=cluster.roster("gamma", epoch=9)),
                    mastership.grant(epoch=Epoch(9), master=NodeName("gamma")),
                ):
                    with pytest.raises(Conflict, match="gamma may not ask for"):
                        await refused
                assert node_connections(other) == before  # it was on this one
                assert (await beta(node, master, Mastership).vote()).epoch == 1
        async with served(root) as node, cluster.caller("gamma", epoch=9) as other:
            with pytest.raises(Conflict, match="gamma may not ask for"):
                await beta(node, other, Mastership).vote()

    run(scenario())


def test_the_authoritys_key_alone_makes_nobody_a_candidate(
    root: Path, cluster: TestCluster, tmp_path: Path
) -> None:
    forger = TestCluster(tmp_path / "forged")
    forger.authority = cluster.authority  # from the state that a candidate had

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with forger.caller("alpha", epoch=9) as nodes:
                with pytest.raises(Conflict, match="no master candidate with this key"):
                    await beta(node, nodes, Mastership).grant(
                        epoch=Epoch(9), master=NodeName("alpha")
                    )

    run(scenario())


def test_the_caller_refuses_a_node_whose_key_is_another_than_when_it_joined(
    root: Path, cluster: TestCluster
) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller() as nodes:
                known = node.as_object("beta")
                key = (await nodes.service(Identity, known).who()).key
                await nodes.service(Mastership, replace(known, key=key)).vote()
                with pytest.raises(Unreachable, match="its key is another one") as caught:
                    other = replace(known, key=cluster.key("beta"))
                    await nodes.service(Mastership, other).vote()
                assert caught.value.detail["stranger"]

    run(scenario())


def test_a_suspended_master_that_was_replaced_and_demoted_hears_that_it_is_none(
    root: Path, cluster: TestCluster
) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            cluster.candidates = ("alpha", "gamma")
            async with cluster.caller("alpha", epoch=1) as old, cluster.caller(epoch=2) as new:
                await beta(node, new, Mastership).grant(epoch=Epoch(2), master=NodeName("alpha"))
                await beta(node, new, Rosters).publish(roster=cluster.roster("gamma", epoch=2))
                with pytest.raises(Deposed, match="epoch 1 is over"):
                    await beta(node, old, Replica).append(commits=())

    run(scenario())


def test_a_removed_nodes_certificate_gets_no_answer_at_all(
    root: Path, cluster: TestCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            revoked = replace(cluster.roster("alpha", serial=5), revoked=(cluster.key("gamma"),))
            async with cluster.caller("gamma") as regular, cluster.caller(epoch=1) as master:
                with pytest.raises(Conflict, match="no master candidate"):
                    await beta(node, regular, Mastership).vote()
                await beta(node, master, Rosters).publish(roster=revoked)
                with pytest.raises(Conflict, match="no master candidate"):
                    await beta(node, regular, Mastership).vote()  # on the connection that it had
            async with cluster.caller("gamma") as removed, cluster.caller("delta") as other:
                with pytest.raises(Unreachable):
                    await beta(node, removed, Mastership).vote()
                with pytest.raises(Conflict, match="no master candidate"):
                    await beta(node, other, Mastership).vote()

    run(scenario())
    assert "the certificate of gamma is revoked" in caplog.text
