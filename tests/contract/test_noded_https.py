"""A real noded behind real TLS: who gets in, who is refused, and with what words."""

import asyncio
import logging
import ssl
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

import noded.daemon.gate as gate_module
import noded.daemon.porch as porch_module
import noded.daemon.server as server_module
from common.errors import Conflict, Deposed, GntError, InvalidRequest, NodeFailure, Unreachable
from common.messages import to_builtins
from common.model.disk import FileBacking
from common.names import CallId, ClusterName, DiskId, Epoch, InstanceId, MiB, NodeName
from common.noderpc.disks import Disks, DiskSpec
from common.noderpc.facts import Facts
from common.noderpc.files import Files
from common.noderpc.identity import Identity, Join
from common.noderpc.mastership import Mastership
from common.noderpc.replica import Replica
from common.noderpc.roster import Rosters
from common.rpc.client import stub
from common.rpc.declare import CallSpec
from common.rpc.envelope import Envelope, open_answer
from common.tasks import Background
from common.tls.context import CERTIFICATE, KEY, client_context
from coordinator.nodes.calls import Nodes
from coordinator.nodes.connection import Connection
from coordinator.nodes.https import HttpsDial
from coordinator.nodes.stranger import stranger
from tests.support.https_node import LOCALHOST, Served, TestCluster, run, served

T = TypeVar("T")

YEAR_S = 365 * 86_400.0
PATH = "/srv/shared/web1/disk0"
DISK = DiskSpec(
    id=DiskId("6f1c2f3e-0000-4000-8000-000000000001"),
    instance=InstanceId("6f1c2f3e-0000-4000-8000-000000000002"),
    size=MiB(64), backing=FileBacking(path=PATH, shared=True),
)  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path) -> TestCluster:
    return TestCluster(tmp_path / "identities")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "beta"


def beta(node: Served, nodes: Nodes, kind: type[Any]) -> Any:
    return nodes.service(kind, node.as_object("beta"))


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
        (b'{"disks":[],"more":1}', "there is no “more”"),
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


HEAD = b"PUT /mastership/vote HTTP/1.1\r\nHost: beta\r\nGantry-Epoch: 1\r\nGantry-Call: a\r\n"


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


def node_connections(nodes: Nodes) -> list[Connection]:
    assert isinstance(nodes.dial, HttpsDial)
    return [connection for idle in nodes.dial._idle.values() for connection in idle]


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
