"""What can go wrong with moves of real guests only."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import NodeFailure
from common.noderpc.instances import GuestState, Reception
from common.tls.context import client_context, load_identity
from noded.hypervisor.kvm.greeting import ANSWER_BYTES, CHALLENGE_BYTES
from noded.hypervisor.kvm.monitor import monitor
from tests.support.https_node import TestCluster
from tests.support.hypervisors import (
    ADDRESSES,
    MOVE,
    WEB1,
    KvmRig,
    goes_on,
    has_qemu,
    move,
    moving,
    receive,
    report_of,
    run_kvm,
    send,
    state_of,
    until,
)
from tests.support.relay import Wire, relay
from tests.support.sequence import check
from tests.support.tiny_guest import numbers

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: the driver for real guests was not tested"
)

QUITE_SLOW = {"migration_bandwidth": 3}


def test_nothing_written_is_lost_in_a_move() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        await move(rig)
        await goes_on(rig, "beta")
        consoles = [rig.home(node).serial_log.read_bytes() for node in ADDRESSES]
        told = numbers(b"".join(consoles))
        assert told == list(range(1, len(told) + 1))
        written = check(rig.image.read_bytes())
        assert (written.wrong, written.starts) == ((), 1)
        assert written.whole_to >= told[-1]

    run_kvm(scenario)


def test_guest_is_moved_as_it_is_configured_by_then() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        how = {
            "migration_bandwidth": 2, "migration_downtime": 170,
            "migration_caps": "auto-converge:xbzrle",
        }  # fmt: skip
        async with moving(rig, await receive(rig), parameters=how) as task:
            async with monitor(rig.home("alpha").qmp_socket, "web1") as session:
                told = await session.ask("query-migrate-parameters")
                able = await session.ask("query-migrate-capabilities")
            assert (told["max-bandwidth"], told["downtime-limit"]) == (2 << 20, 170)
            assert {"xbzrle", "auto-converge"} <= {c["capability"] for c in able if c["state"]}
            await task
        await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")

    run_kvm(scenario)


def test_noded_that_comes_back_has_a_guest_go_on_that_stood_still_to_move() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].prepare()  # whether KVM works; it may take longer than the move
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        slow = {"migration_bandwidth": 1}
        async with moving(rig, await receive(rig), parameters=slow, live=False) as task:
            await rig.restart_noded("alpha")
            before = rig.number("alpha")

            async def is_awake() -> bool:  # the old one's call is still there, and may be asking
                await rig.nodes["alpha"].prepare()
                return rig.number("alpha") > before

            await until(is_awake)
            await rig.nodes["alpha"].ensure_not_migrating(WEB1)
            with contextlib.suppress(NodeFailure):
                await task
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_noded_that_comes_back_does_not_wake_what_has_left() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        await send(rig, await receive(rig), live=False)
        rig.home("alpha").stand_still()  # as if it had died before it could forget that
        before = rig.number("alpha")
        await rig.restart_noded("alpha")
        await rig.nodes["alpha"].prepare()
        assert await state_of(rig.nodes["alpha"]) is GuestState.MIGRATED
        await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")
        assert rig.number("alpha") == before

    run_kvm(scenario)


def test_who_opens_its_console_does_not_wake_what_was_started_paused_and_has_left() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        await send(rig, await receive(rig))
        home = rig.home("alpha")
        record = home.record()
        assert record
        home.write(replace(record, held=True))  # it was started paused, and released by others
        await alpha.release(WEB1)
        async with monitor(home.qmp_socket, "web1") as session:
            assert (await session.ask("query-status"))["status"] == "postmigrate"

    run_kvm(scenario)


def test_noded_killed_during_a_move_can_end_it_afterwards() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        async with moving(rig, await receive(rig), parameters={"migration_bandwidth": 1}) as task:
            await rig.restart_noded("alpha")  # the old one's call is still there, as in no crash
            assert await state_of(rig.nodes["alpha"]) is GuestState.RUNNING
            await rig.nodes["alpha"].ensure_not_migrating(WEB1)
            with contextlib.suppress(NodeFailure):
                await task
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_memory_is_sent_in_secret() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with relay(await receive(rig)) as wire:
            await send(rig, wire.reception)
        assert len(wire.sent) > 1 << 20
        for secret in (b"virtio-blk", b"pc-i440fx", b"QEVM"):  # as in every transfer in clear
            assert secret not in wire.sent
        await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
        assert not rig.home("beta").tls.exists()
        assert not rig.home("alpha").tls.exists()

    run_kvm(scenario)


def test_an_impostor_with_the_authoritys_key_gets_no_memory(tmp_path: Path) -> None:
    """It makes a certificate in the target's name; what it lacks is the secret of the move."""
    cluster = TestCluster(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_identity(context, cluster.identity("beta"))
    handshakes: asyncio.Queue[str] = asyncio.Queue()

    async def pose(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(CHALLENGE_BYTES))
        await reader.readexactly(ANSWER_BYTES)  # proves nothing to it, and it takes anything
        try:
            await writer.start_tls(context)
            handshakes.put_nowait("done")
        except OSError:
            handshakes.put_nowait("refused")
        writer.close()

    async def ask_for_a_certificate(port: int) -> None:
        reader, writer = await asyncio.open_connection(ADDRESSES["beta"], port)
        await reader.readexactly(CHALLENGE_BYTES)
        writer.write(bytes(ANSWER_BYTES))
        await writer.start_tls(client_context(cluster.identity("alpha")), server_hostname="beta")
        writer.close()

    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with await asyncio.start_server(pose, ADDRESSES["beta"]) as impostor:
            port = impostor.sockets[0].getsockname()[1]
            await ask_for_a_certificate(port)
            assert await handshakes.get() == "done", "it convinces whoever asks for no more"
            with pytest.raises(NodeFailure, match="web1"):
                await send(rig, Reception(port=port, secret="00" * 32))
            assert await handshakes.get() == "refused"
        await goes_on(rig, "alpha")

    run_kvm(scenario)


async def until_arrived(rig: KvmRig) -> None:
    async def has_arrived() -> bool:
        report = await report_of(rig.nodes["beta"])
        return report is not None and report.arrived

    await until(has_arrived)


async def runs_on_alpha_alone(rig: KvmRig) -> None:
    await goes_on(rig, "alpha")
    assert await state_of(rig.nodes["alpha"]) is GuestState.RUNNING
    assert await state_of(rig.nodes["beta"]) is GuestState.INCOMING
    assert rig.number("beta") == 0
    # It has its disk, and can have it: nobody else took the lock.
    told = numbers(rig.home("alpha").serial_log.read_bytes())
    assert told == list(range(1, len(told) + 1))
    assert check(rig.image.read_bytes()).whole_to >= told[-1]
    await rig.nodes["beta"].ensure_no_shell(WEB1)
    await goes_on(rig, "alpha")


@contextlib.asynccontextmanager
async def almost_moved(rig: KvmRig) -> AsyncIterator[tuple[Wire, asyncio.Task[None]]]:
    """Have a guest arrive from alpha on beta, while nothing is heard of that on alpha."""
    await rig.nodes["alpha"].ensure_running(rig.spec(), ())
    await goes_on(rig, "alpha")
    async with relay(await receive(rig)) as wire:
        wire.mute_after(1 << 20)
        task = asyncio.get_running_loop().create_task(send(rig, wire.reception))
        await until_arrived(rig)
        yield wire, task


def test_connection_that_breaks_at_the_very_end_leaves_one_guest() -> None:
    async def scenario(rig: KvmRig) -> None:
        async with almost_moved(rig) as (wire, task):
            wire.cut()
            with pytest.raises(NodeFailure, match="web1"):
                await task
        await runs_on_alpha_alone(rig)

    run_kvm(scenario)


def test_move_that_is_cancelled_at_the_very_end_leaves_one_guest() -> None:
    async def scenario(rig: KvmRig) -> None:
        async with almost_moved(rig) as (_, task):
            await rig.nodes["alpha"].ensure_not_migrating(WEB1)
            with pytest.raises(NodeFailure, match="web1"):
                await task
        await runs_on_alpha_alone(rig)

    run_kvm(scenario)


def test_target_that_falls_silent_before_the_first_byte_does_not_hold_the_guest() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with relay(await receive(rig)) as wire:
            wire.mute_after(1)  # it has greeted, and never answers what QEMU says
            task = asyncio.get_running_loop().create_task(send(rig, wire.reception))
            await until(lambda: len(wire.sent) > ANSWER_BYTES)
            await goes_on(rig, "alpha")
            report = await report_of(rig.nodes["alpha"])
            assert report is not None
            assert (report.state, report.silent_s) == (GuestState.RUNNING, 0.0)
            await rig.nodes["alpha"].ensure_not_migrating(WEB1)
            with pytest.raises(NodeFailure, match="web1"):
                await task
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_strangers_do_not_hold_up_a_move() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        reception = await receive(rig)
        strangers = []
        for number in range(200):  # more than are listened to at once
            line = await asyncio.open_connection(ADDRESSES["beta"], reception.port)
            strangers.append(line)
            if number % 2:
                line[1].write(b"\x16\x03\x01" * 100)
        report = await report_of(rig.nodes["beta"])
        assert report is not None
        assert (report.state, report.silent_s) == (GuestState.INCOMING, 0.0)
        await send(rig, reception)
        await rig.nodes["beta"].ensure_resumed(WEB1, MOVE)
        await goes_on(rig, "beta")
        for _, writer in strangers:
            writer.transport.abort()
            with contextlib.suppress(OSError):  # the other side may have hung up first
                await writer.wait_closed()

    run_kvm(scenario)


def test_receiver_that_hangs_is_known_as_one() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        async with moving(rig, await receive(rig), parameters=QUITE_SLOW) as task:
            rig.hang("beta")
            report = await report_of(rig.nodes["beta"])
            assert report is not None
            assert (report.state, report.silent_s > 0) == (GuestState.INCOMING, True)
            await rig.nodes["alpha"].ensure_not_migrating(WEB1)
            with pytest.raises(NodeFailure):
                await task
        await goes_on(rig, "alpha")

    run_kvm(scenario)
