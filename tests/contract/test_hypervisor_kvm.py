"""What can go wrong with real guests only."""

import asyncio
import contextlib
import ctypes
import functools
import os
import shutil
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidRequest, NodeFailure
from common.model.kvm_words import Accelerator
from common.names import InstanceId, MiB, NicId
from common.noderpc.instances import GuestState, Reception
from common.noderpc.network import NicSpec
from common.tls.context import client_context, load_identity
from noded.hypervisor.kvm import commands, home
from noded.hypervisor.kvm.accelerator import Accelerators
from noded.hypervisor.kvm.boot_sector import boot_sector
from noded.hypervisor.kvm.driver import PROGRAM
from noded.hypervisor.kvm.greeting import ANSWER_BYTES, CHALLENGE_BYTES
from noded.hypervisor.kvm.monitor import monitor
from noded.network.tuntap import make_tap
from noded.storage.directories import path_of
from noded.system.execute import CommandFailed, execute
from noded.system.process import Process
from tests.support.disks import file_disk
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
from tests.support.namespace import in_new_network
from tests.support.relay import relay
from tests.support.sequence import check
from tests.support.tiny_guest import DISK_MIB, SECTOR, kernel, numbers

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: the driver for real guests was not tested"
)

PIDFD_GETFD = 438  # of x86-64
WEB2 = InstanceId("22222222-0000-4000-8000-000000000002")
QUITE_SLOW = {"migration_bandwidth": 3}
NIC = NicSpec(
    id=NicId("aaaaaaaa-bbbb-4ccc-8ddd-00000000000a"), instance=WEB1, mac="aa:00:00:00:00:01",
    mode="bridged", link="br0",
)  # fmt: skip


def at(root: Path, changes: dict[str, Any]) -> dict[str, Any]:
    """Fill in the directory of a test in paths."""
    if "disks" in changes:
        (disk,) = changes["disks"]
        path = path_of(disk).format(root=root)
        return {"disks": (file_disk(disk.id, path),)}
    if "parameters" in changes:
        (item,) = changes["parameters"].items()
        return {"parameters": {item[0]: item[1].format(root=root)}}
    return changes


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"parameters": {"kernel_path": "/no/vmlinuz"}}, "/no/vmlinuz may not be given"),
        ({"parameters": {"kernel_path": "{root}/vmlinuz"}}, "cannot open .*/vmlinuz: No such"),
        ({"parameters": {"kvm_path": "/no/qemu"}}, "no program /no/qemu; install QEMU"),
        ({"parameters": {"machine_version": "pc-i440fx-9999"}}, "machine_version or cpu_type"),
        ({"parameters": {"cpu_type": "z80"}}, "machine_version or cpu_type"),
        ({"disks": (file_disk("d", "{root}/none"),)}, "/none cannot be opened"),
        ({"memory": MiB(1 << 30)}, "not enough memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_guest_that_cannot_run_says_why_and_leaves_nothing(
    changes: dict[str, Any], says: str
) -> None:
    async def scenario(rig: KvmRig) -> None:
        with pytest.raises(NodeFailure, match=says) as caught:
            await rig.nodes["alpha"].ensure_running(rig.spec(**at(rig.root, changes)), ())
        assert "web1" in caught.value.message
        assert not rig.home("alpha").directory.exists()
        assert await rig.nodes["alpha"].guests() == ()

    run_kvm(scenario)


def test_parameter_without_meaning_is_refused() -> None:
    async def scenario(rig: KvmRig) -> None:
        with pytest.raises(InvalidRequest, match="disk_cache cannot be 'always'"):
            await rig.nodes["alpha"].check_startable(rig.spec(parameters={"disk_cache": "always"}))

    run_kvm(scenario)


def test_disk_in_use_is_not_shared_by_accident() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        with pytest.raises(NodeFailure, match="in use by another process"):
            await rig.nodes["beta"].ensure_running(rig.spec(), ())
        assert await rig.nodes["beta"].guests() == ()
        await goes_on(rig, "alpha")

    run_kvm(scenario)


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


def test_connection_that_breaks_at_the_very_end_leaves_one_guest() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with relay(await receive(rig)) as wire:
            wire.mute_after(1 << 20)
            task = asyncio.get_running_loop().create_task(send(rig, wire.reception))
            await until_arrived(rig)
            wire.cut()
            with pytest.raises(NodeFailure, match="web1"):
                await task
        await runs_on_alpha_alone(rig)

    run_kvm(scenario)


def test_move_that_is_cancelled_at_the_very_end_leaves_one_guest() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await goes_on(rig, "alpha")
        async with relay(await receive(rig)) as wire:
            wire.mute_after(1 << 20)
            task = asyncio.get_running_loop().create_task(send(rig, wire.reception))
            await until_arrived(rig)
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


def test_number_of_a_stranger_is_not_killed() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        rig.crash("alpha")
        stranger = await asyncio.create_subprocess_exec("sleep", "60")
        rig.home("alpha").pid.write_text(f"{stranger.pid}\n")
        assert await state_of(alpha) is GuestState.STOPPED
        await alpha.ensure_gone(WEB1)
        assert stranger.returncode is None
        stranger.kill()
        await stranger.wait()

    run_kvm(scenario)


def test_guest_of_another_node_on_this_machine_is_not_killed() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        beta_home = rig.home("beta")
        beta_home.directory.mkdir(parents=True)
        beta_home.pid.write_bytes(rig.home("alpha").pid.read_bytes())
        await rig.nodes["beta"].ensure_gone(WEB1)
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_unreadable_record_hides_no_process_from_its_end() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        found = rig.home("alpha").process()
        assert found is not None
        with found:
            (rig.home("alpha").directory / "spec.json").write_text("{")
            assert await state_of(alpha) is GuestState.RUNNING
            rig.hang("alpha")
            assert await state_of(alpha) is GuestState.UNKNOWN
            await alpha.ensure_gone(WEB1)
            assert found.has_ended

    run_kvm(scenario)


def test_start_that_is_cancelled_leaves_nothing() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        task = asyncio.get_running_loop().create_task(alpha.ensure_running(rig.spec(), ()))
        await until(rig.home("alpha").directory.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await alpha.guests() == ()
        await rig.nodes["beta"].ensure_running(rig.spec(), ())  # the disk is free

    run_kvm(scenario)


def test_logs_stay_short_and_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "LOG_LIMIT", 200)
    monkeypatch.setattr(home, "LOG_KEPT", 90)

    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await until(lambda: rig.number("alpha") > 30)
        alpha = rig.home("alpha")
        with say_as_qemu(alpha) as say:
            say(b"nonsense\n" * 1000)
            alpha.trim_logs()
            assert alpha.serial_log.stat().st_size < 200
            assert alpha.log.stat().st_size < 200
            say(b"the last words\n")
        assert alpha.last_words().endswith("nonsense\nthe last words\n")
        assert rig.number("alpha") > 30
        await goes_on(rig, "alpha")

    run_kvm(scenario)


@contextlib.contextmanager
def say_as_qemu(guest: home.Home) -> Iterator[Callable[[bytes], int]]:
    """Write to the very file, and the place in it, to which a guest's QEMU complains."""
    found = guest.process()
    assert found is not None
    with found:
        descriptor = copy_of_descriptor(found, 2)
    try:
        yield functools.partial(os.write, descriptor)
    finally:
        os.close(descriptor)


def copy_of_descriptor(process: Process, number: int) -> int:
    """Return a copy of another process's descriptor. Source: pidfd_getfd(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    copy = int(libc.syscall(PIDFD_GETFD, process._pidfd, number, 0))
    if copy < 0:
        pytest.skip(f"NOT TRIED: {os.strerror(ctypes.get_errno())}")
    return copy


def test_displays_get_ports_of_their_own_and_are_told() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        parameters = {"vnc_bind_address": "127.0.0.1"}
        await alpha.ensure_running(rig.spec(parameters=parameters), ())
        second = rig.spec(id=WEB2, name="web2", disks=(), parameters=parameters)
        await alpha.ensure_running(second, ())
        await rig.restart_noded("alpha")
        displays = [guest.display for guest in await rig.nodes["alpha"].guests()]
        assert len(set(displays)) == 2
        for display in displays:
            host, _, port = display.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            assert (await reader.readexactly(4)) == b"RFB "
            writer.close()

    run_kvm(scenario)


def command_line(guest: home.Home) -> str:
    return Path(f"/proc/{int(guest.pid.read_text())}/cmdline").read_text()


def test_a_display_with_a_password_lets_in_nobody_without_it() -> None:
    """It wants one (security type 2 of RFC 6143), and no process shows it."""

    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        file = rig.root / "password"
        file.write_text("s3cret!\n")
        file.chmod(0o600)
        parameters = {"vnc_bind_address": "127.0.0.1", "vnc_password_file": str(file)}
        with pytest.raises(NodeFailure, match="may not be the password of a display here"):
            await alpha.ensure_running(rig.spec(parameters=parameters), ())
        with rig.rules.open("a") as rules:
            rules.write(f"secret {file}\n")
        await alpha.ensure_running(rig.spec(parameters=parameters), ())
        (guest,) = await alpha.guests()
        assert guest.display_wants_password
        host, _, port = guest.display.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(await reader.readexactly(12))  # the version
        count = (await reader.readexactly(1))[0]
        assert await reader.readexactly(count) == b"\x02"
        writer.write(b"\x02")
        challenge = await reader.readexactly(16)
        writer.write(challenge)  # which is not encrypted with the password
        assert await reader.readexactly(4) == b"\x00\x00\x00\x01"
        writer.close()
        assert "s3cret" not in command_line(rig.home("alpha"))

    run_kvm(scenario)


def test_nics_are_plugged_into_taps() -> None:
    root = Path(tempfile.mkdtemp(prefix="hv-"))

    async def scenario() -> None:
        rig = KvmRig(root)
        alpha = rig.nodes["alpha"]
        with pytest.raises(NodeFailure, match="network device gnt0 is not there"):
            await alpha.ensure_running(rig.spec(nics=(NIC,)), ("gnt0",))
        make_tap("gnt0")
        await alpha.ensure_running(rig.spec(nics=(NIC,)), ("gnt0",))
        with pytest.raises(NodeFailure, match="another process uses it"):
            await rig.nodes["beta"].ensure_running(rig.spec(nics=(NIC,), disks=()), ("gnt0",))
        (report,) = await alpha.guests()
        assert report.nics == (NIC.id,)
        await alpha.ensure_gone(WEB1)
        await alpha.close()

    try:
        in_new_network(scenario)
    finally:
        shutil.rmtree(root)


def test_program_that_tries_kvm_runs_to_its_end(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(boot_sector())

    async def scenario() -> None:
        with pytest.raises(CommandFailed) as caught:
            await execute(*commands.probe(PROGRAM, Accelerator.TCG, str(program)), timeout_s=20)
        assert caught.value.detail["status"] == commands.PROBE_PASSED

    asyncio.run(scenario())


def test_verdict_on_kvm_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        verdict = await Accelerators(tmp_path / "verdict").verdict(PROGRAM)
        assert bool(verdict.reason) != verdict.kvm
        monkeypatch.setattr(commands, "PROBE_CPU_S", 0)  # a second trial would fail
        assert await Accelerators(tmp_path / "verdict").verdict(PROGRAM) == verdict

    asyncio.run(scenario())


def test_machine_without_kvm_uses_tcg() -> None:
    async def scenario(rig: KvmRig) -> None:
        accelerators = Accelerators(rig.root / "verdict", device=rig.root / "no-kvm")
        assert not (await accelerators.verdict(PROGRAM)).kvm
        if (await Accelerators(rig.root / "verdict of here").verdict(PROGRAM)).kvm:
            pytest.skip("KVM works here: nothing to refuse")
        with pytest.raises(NodeFailure, match="wants KVM, which does not work here"):
            await rig.nodes["alpha"].ensure_running(rig.spec(parameters={"accelerator": "kvm"}), ())
        await rig.nodes["alpha"].ensure_running(rig.spec(parameters={"accelerator": "auto"}), ())
        (report,) = await rig.nodes["alpha"].guests()
        assert report.pinned["accelerator"] == "tcg"

    run_kvm(scenario)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_guest_whose_disk_finds_no_room_stands_still_and_goes_on_when_there_is_some() -> None:
    async def scenario(rig: KvmRig) -> None:
        room = rig.root / "room"
        room.mkdir()
        await mount("-t", "tmpfs", "-o", "size=16k,mode=755", "room", str(room))
        try:
            rig.rules.write_text(f"image {rig.root}\n")
            image = room / "thin.img"
            image.write_bytes(kernel()[:SECTOR])  # as make_disk, but thin
            os.truncate(image, DISK_MIB << 20)
            thin = rig.spec(disks=(file_disk("d", str(image)),))
            alpha = rig.nodes["alpha"]
            await alpha.ensure_running(thin, ())
            await until(lambda: lacks_space(rig))
            assert await state_of(alpha) is GuestState.PAUSED
            before = rig.number("alpha")
            await alpha.ensure_running(thin, ())  # in vain
            await until(lambda: lacks_space(rig))
            await mount("-o", "remount,size=4m", str(room))
            await alpha.ensure_running(thin, ())
            assert await goes_on(rig, "alpha") >= before
            written = check(image.read_bytes())
            assert (written.wrong, written.starts) == ((), 1)
            await alpha.ensure_gone(WEB1)
        finally:
            await execute("umount", "--lazy", str(room), timeout_s=10)

    run_kvm(scenario)


async def lacks_space(rig: KvmRig) -> bool:
    found = await report_of(rig.nodes["alpha"])
    return found is not None and found.lacks_space


async def mount(*words: str) -> None:
    await execute("mount", *words, timeout_s=10)
