"""What can go wrong with real guests only."""

import asyncio
import contextlib
import ctypes
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidRequest, NodeFailure
from common.names import MiB, NicId
from common.noderpc.instances import GuestState
from common.noderpc.network import NicSpec
from noded.hypervisor.kvm import home
from noded.network.tuntap import make_tap
from noded.storage.directories import path_of
from noded.system.execute import execute
from noded.system.process import Process
from tests.support.disks import file_disk
from tests.support.hypervisors import (
    WEB1,
    KvmRig,
    goes_on,
    has_qemu,
    report_of,
    run_kvm,
    state_of,
    until,
)
from tests.support.namespace import in_new_network
from tests.support.sequence import check
from tests.support.tiny_guest import DISK_MIB, SECTOR, kernel

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: the driver for real guests was not tested"
)
PIDFD_GETFD = 438  # of x86-64
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
