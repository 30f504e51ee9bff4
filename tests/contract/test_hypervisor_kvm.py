"""What can go wrong with real guests only."""

import asyncio
import contextlib
import ctypes
import functools
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidRequest, NodeFailure
from common.model.parameters import Accelerator
from common.names import ClusterName, DiskId, InstanceId, MiB, NicId
from common.noderpc.instances import GuestDisk, GuestState
from common.noderpc.network import NicSpec
from common.tls.authority import make_authority
from noded.hypervisor.kvm import commands, home
from noded.hypervisor.kvm.accelerator import Accelerators
from noded.hypervisor.kvm.boot_sector import boot_sector
from noded.hypervisor.kvm.driver import PROGRAM
from noded.hypervisor.kvm.process import Process
from noded.network.tuntap import make_tap
from noded.system.execute import CommandFailed, execute
from tests.support.hypervisors import (
    ADDRESSES,
    NOW,
    WEB1,
    KvmRig,
    goes_on,
    has_qemu,
    move,
    moving,
    run_kvm,
    state_of,
    until,
)
from tests.support.namespace import in_new_network
from tests.support.sequence import check
from tests.support.tiny_guest import numbers

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: the driver for real guests was not tested"
)

PIDFD_GETFD = 438  # of x86-64
WEB2 = InstanceId("22222222-0000-4000-8000-000000000002")
LONG_AGO = NOW - 6 * 365 * 86400  # a certificate of then has run out
NIC = NicSpec(
    id=NicId("aaaaaaaa-bbbb-4ccc-8ddd-00000000000a"), instance=WEB1, mac="aa:00:00:00:00:01",
    mode="bridged", link="br0",
)  # fmt: skip


def at(root: Path, changes: dict[str, Any]) -> dict[str, Any]:
    """Fill in the directory of a test in paths."""
    if "disks" in changes:
        (disk,) = changes["disks"]
        path = disk.path.format(root=root)
        return {"disks": (GuestDisk(id=disk.id, path=path),)}
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
        ({"disks": (GuestDisk(id=DiskId("d"), path="{root}/none"),)}, "/none cannot be opened"),
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
        with pytest.raises(InvalidRequest, match="disk_cache cannot be “always”"):
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
        await move(rig, await rig.nodes["beta"].ensure_incoming(rig.spec(), ()))
        await goes_on(rig, "beta")
        consoles = [rig.home(node).serial_log.read_bytes() for node in ADDRESSES]
        told = numbers(b"".join(consoles))
        assert told == list(range(1, len(told) + 1))
        written = check(rig.disk.read_bytes())
        assert (written.wrong, written.starts) == ((), 1)
        assert written.whole_to >= told[-1]

    run_kvm(scenario)


def test_noded_killed_during_a_move_can_end_it_afterwards() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(parameters={"migration_bandwidth": 1}), ())
        port = await rig.nodes["beta"].ensure_incoming(rig.spec(), ())
        async with moving(rig, port) as task:
            await rig.restart_noded("alpha")  # the old one's call is still there, as in no crash
            assert await state_of(rig.nodes["alpha"]) is GuestState.RUNNING
            await rig.nodes["alpha"].ensure_not_migrating(WEB1)
            with contextlib.suppress(NodeFailure):
                await task
        await goes_on(rig, "alpha")

    run_kvm(scenario)


@pytest.mark.parametrize("node", ["alpha", "beta"])
def test_guest_moves_within_its_cluster_only(node: str) -> None:
    async def scenario(rig: KvmRig) -> None:
        rig.write_identity(node, make_authority(ClusterName("other"), now=NOW))
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        port = await rig.nodes["beta"].ensure_incoming(rig.spec(), ())
        with pytest.raises(NodeFailure, match="web1"):
            await move(rig, port)
        await goes_on(rig, "alpha")
        assert rig.number("beta") == 0

    run_kvm(scenario)


def test_guest_moves_to_the_node_that_was_meant() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        port = await rig.nodes["beta"].ensure_incoming(rig.spec(), ())
        with pytest.raises(NodeFailure, match="does not match the hostname gamma"):
            await move(rig, port, peer="gamma")
        await goes_on(rig, "alpha")

    run_kvm(scenario)


def test_expired_certificate_is_named() -> None:
    async def scenario(rig: KvmRig) -> None:
        rig.write_identity("beta", rig.authority, now=LONG_AGO)
        with pytest.raises(NodeFailure, match="expired"):
            await rig.nodes["beta"].ensure_incoming(rig.spec(), ())
        assert await rig.nodes["beta"].guests() == ()

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


def test_hanging_qemu_is_reported_and_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noded.hypervisor.kvm.monitor.ANSWER_S", 0.3)

    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        rig.signal("alpha", signal.SIGSTOP)
        assert await state_of(alpha) is GuestState.RUNNING
        await alpha.ensure_gone(WEB1)
        assert await alpha.guests() == ()

    run_kvm(scenario)


def test_unreadable_record_hides_no_process_from_its_end() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        found = rig.home("alpha").process()
        assert found is not None
        with found:
            (rig.home("alpha").directory / "spec.json").write_text("{")
            assert await alpha.guests() == ()
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
        if await rig.nodes["alpha"].accelerator() == "kvm":
            pytest.skip("KVM works here: nothing to refuse")
        with pytest.raises(NodeFailure, match="wants KVM, which does not work here"):
            await rig.nodes["alpha"].ensure_running(rig.spec(parameters={"accelerator": "kvm"}), ())
        await rig.nodes["alpha"].ensure_running(rig.spec(parameters={"accelerator": "auto"}), ())
        (report,) = await rig.nodes["alpha"].guests()
        assert report.accelerator == "tcg"

    run_kvm(scenario)
