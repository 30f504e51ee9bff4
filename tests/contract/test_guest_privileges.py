"""What a guest that has broken into its QEMU finds there: next to nothing."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import GntError, NodeFailure
from common.names import InstanceId, InstanceName
from common.noderpc.instances import GuestSpec, GuestState
from common.tls.context import KEY
from noded.hypervisor.kvm.user import NOBODY, ROOT
from noded.hypervisor.rules import Rules
from noded.storage.file_calls import write_label
from tests.support.disks import file_disk
from tests.support.hypervisors import (
    WEB1,
    KvmRig,
    goes_on,
    has_qemu,
    move,
    run_kvm,
    state_of,
)

WEB2 = InstanceId("22222222-0000-4000-8000-000000000002")
WEB3 = InstanceId("33333333-0000-4000-8000-000000000003")
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"

pytestmark = [
    pytest.mark.skipif(not has_qemu, reason="QEMU IS NOT INSTALLED: its rights were not tested"),
    pytest.mark.skipif(
        os.geteuid() != ROOT, reason="NOT ROOT: guests have no users of their own, nor were tested"
    ),
]


def status(rig: KvmRig, node: str, instance: InstanceId = WEB1) -> dict[str, str]:
    """Return what the kernel says of a guest's process."""
    found = rig.home(node, instance).process()
    assert found is not None
    with found:
        text = Path(f"/proc/{found.pid}/status").read_text()
    return {
        name: value.strip()
        for name, _, value in (line.partition(":") for line in text.splitlines())
    }


def check_powerless(told: dict[str, str]) -> int:
    """Return whose process it is, which has no right that anybody has not."""
    (user,) = {*told["Uid"].split(), *told["Gid"].split()}
    assert int(user) in Rules(source="").users
    assert told["Groups"] == ""
    assert {int(told[name], 16) for name in CAPABILITIES} == {0}
    assert told["NoNewPrivs"] == "1"
    assert told["Seccomp"] == "2"
    return int(user)


def test_each_guest_is_run_by_a_user_of_its_own_who_may_nothing() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(rig.spec(), ())
        await alpha.ensure_running(rig.spec(id=WEB2, name=InstanceName("web2"), disks=()), ())
        users = {check_powerless(status(rig, "alpha", each)) for each in (WEB1, WEB2)}
        assert len(users) == 2

    run_kvm(scenario)


def test_a_guest_that_moves_has_a_user_of_its_own_there_and_no_key() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        await move(rig)
        users = {check_powerless(status(rig, node)) for node in ("alpha", "beta")}
        assert len(users) == 2  # they are processes of one machine
        left = [path for path in rig.root.glob("*/run/**/*") if "key" in path.name]
        assert left == []

    run_kvm(scenario)


def test_the_user_of_a_guest_outlives_noded_and_is_free_again_with_the_guest() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        user = check_powerless(status(rig, "alpha"))
        await rig.restart_noded("alpha")
        record = rig.home("alpha").record()
        assert record is not None
        assert record.user == user
        await rig.nodes["alpha"].ensure_gone(WEB1)
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        assert check_powerless(status(rig, "alpha")) == user

    run_kvm(scenario)


def test_two_guests_never_share_the_last_user() -> None:
    async def scenario(rig: KvmRig) -> None:
        rig.rules.write_text("users 79000-79000\n")
        alpha = rig.nodes["alpha"]
        second = rig.spec(id=WEB2, name=InstanceName("web2"), disks=())
        loop = asyncio.get_running_loop()
        starts = [
            loop.create_task(alpha.ensure_running(spec, ()))
            for spec in (rig.spec(disks=()), second)
        ]
        await asyncio.wait(starts)
        (refused,) = filter(None, (start.exception() for start in starts))
        assert isinstance(refused, NodeFailure)
        assert "all user ids from 79000 to 79000 are in use" in refused.message
        assert len(await alpha.guests()) == 1

    run_kvm(scenario)


def test_nobody_but_root_reaches_a_guests_sockets_and_logs() -> None:
    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        home, user = rig.home("alpha"), check_powerless(status(rig, "alpha"))
        for stranger in (NOBODY, user):
            for socket in (home.qmp_socket, home.news_socket, home.serial_socket):
                denied = run_by(stranger, CONNECT, socket)
                assert "PermissionError" in denied
        assert {oct(path.stat().st_mode & 0o077) for path in home.directory.iterdir()} == {"0o0"}

    run_kvm(scenario)


def test_a_guest_whose_number_was_never_written_down_is_found() -> None:
    """As when noded is killed at the worst moment of a start."""

    async def scenario(rig: KvmRig) -> None:
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        rig.home("alpha").pid.unlink()
        await rig.restart_noded("alpha")
        assert await state_of(rig.nodes["alpha"]) is GuestState.RUNNING
        before = await goes_on(rig, "alpha")
        await rig.nodes["alpha"].ensure_running(rig.spec(), ())
        assert await goes_on(rig, "alpha") > before
        await rig.nodes["alpha"].ensure_gone(WEB1)
        await rig.nodes["beta"].ensure_running(rig.spec(), ())  # the disk is free

    run_kvm(scenario)


def link(disk: Path, other: Path) -> None:
    disk.symlink_to(other)


def directory_link(disk: Path, other: Path) -> None:
    disk.parent.rmdir()
    disk.parent.symlink_to(other.parent)
    other.rename(other.parent / disk.name)


def device(disk: Path, other: Path) -> None:
    os.mknod(disk, 0o60600, os.makedev(7, 0))  # a block device, of a loop


def pipe(disk: Path, other: Path) -> None:
    os.mkfifo(disk)


def another_disk(disk: Path, other: Path) -> None:
    other.rename(disk)
    with disk.open("r+b") as file:
        write_label(file.fileno(), "another", WEB2)


@pytest.mark.parametrize("planted", [link, directory_link, device, pipe, another_disk])
def test_what_was_planted_in_the_place_of_a_disk_is_not_opened(planted: object) -> None:
    async def scenario(rig: KvmRig) -> None:
        disk = rig.root / "web1" / "disk"
        other = rig.root / "elsewhere" / "other"
        for path in (disk, other):
            path.parent.mkdir()
        other.write_bytes(b"secret".ljust(1 << 20))
        assert callable(planted)
        planted(disk, other)
        spec = rig.spec(disks=(file_disk("d", str(disk)),))
        with pytest.raises(GntError, match=r"web1 cannot be started here: .*(disk|link)"):
            await rig.nodes["alpha"].ensure_running(spec, ())
        assert await rig.nodes["alpha"].guests() == ()

    run_kvm(scenario)


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A program that leaves a trace if it is ever run."""
    program, trace = tmp_path / "program", tmp_path / "trace"
    program.write_text(f"#!/bin/sh\ntouch {trace}\n")
    program.chmod(0o755)
    yield program, trace
    assert not trace.exists()


def test_a_program_that_root_of_the_node_did_not_name_is_not_run(trap: tuple[Path, Path]) -> None:
    program, _ = trap

    async def scenario(rig: KvmRig) -> None:
        spec = rig.spec(parameters={"kvm_path": str(program), "accelerator": "auto"})
        for refused in (
            rig.nodes["alpha"].check_startable(spec),
            rig.nodes["alpha"].ensure_running(spec, ()),
        ):
            with pytest.raises(NodeFailure, match=f"{program} may not run guests here; root of"):
                await refused

    run_kvm(scenario)


def test_the_key_of_a_node_is_given_to_no_guest_whatever_its_rules_say() -> None:
    async def scenario(rig: KvmRig) -> None:
        key = rig.root / "alpha" / KEY
        key.write_text("secret")
        key.chmod(0o644)  # the last fence but one
        linked = rig.root / "initrd"
        linked.symlink_to(key)
        kernel = rig.root / "kernel"
        kernel.write_bytes(b"")
        rig.rules.write_text("image /\n")
        for path in (key, linked):
            parameters = {"kernel_path": str(kernel), "initrd_path": str(path)}
            with pytest.raises(NodeFailure, match=f"{path} may not be given to guests"):
                await rig.nodes["alpha"].ensure_running(rig.spec(parameters=parameters), ())

    run_kvm(scenario)


def run_by(user: int, program: str, *arguments: Path) -> str:
    """Return what a program of Python says when somebody else runs it."""
    words = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", sys.executable)
    done = subprocess.run(  # noqa: TID251 -- there is nobody to hold up
        (*words, "-I", "-c", program, *map(str, arguments)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def of_pool(rig: KvmRig, *pool: tuple[int, int], **changes: Any) -> GuestSpec:
    return rig.spec(parameters={"security_model": "pool"}, users=pool, **changes)


def test_guests_of_a_pool_have_its_users_and_never_the_same() -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        pool = ((79_100, 79_100), (79_200, 79_200), (90_000, 90_010))
        await alpha.ensure_running(of_pool(rig, *pool), ())
        await rig.restart_noded("alpha")
        alpha = rig.nodes["alpha"]
        second = of_pool(rig, *pool, id=WEB2, name=InstanceName("web2"), disks=())
        await alpha.ensure_running(second, ())
        first, other = (check_powerless(status(rig, "alpha", each)) for each in (WEB1, WEB2))
        assert {first, other} == {79_100, 79_200}
        third = of_pool(rig, *pool, id=WEB3, name=InstanceName("web3"), disks=())
        with pytest.raises(NodeFailure, match=r"from 79100 to 79100 and .* the cluster's pool"):
            await alpha.ensure_running(third, ())
        await alpha.ensure_gone(WEB1)
        await alpha.ensure_running(third, ())
        assert check_powerless(status(rig, "alpha", WEB3)) == first

    run_kvm(scenario)


@pytest.mark.parametrize(
    ("pool", "says"),
    [((), "has no pool of user ids"), (((5_000, 5_009),), "whose root allows 70000 to 79999")],
)
def test_a_pool_without_a_user_that_the_node_allows_starts_no_guest(
    pool: tuple[tuple[int, int], ...], says: str
) -> None:
    async def scenario(rig: KvmRig) -> None:
        for order in (
            rig.nodes["alpha"].check_startable(of_pool(rig, *pool)),
            rig.nodes["alpha"].ensure_running(of_pool(rig, *pool), ()),
        ):
            with pytest.raises(NodeFailure, match=says):
                await order
        assert await rig.nodes["alpha"].guests() == ()

    run_kvm(scenario)
