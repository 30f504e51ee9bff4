"""The demo's guest: a real kernel, in real QEMU, under the real driver."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from common.names import MiB
from common.noderpc.instances import GuestSpec
from noded.system.execute import CommandFailed, execute
from tests.support.disks import file_disk
from tests.support.hypervisors import MOVE, KvmRig, has_qemu, run_kvm, send, until

BUILD = Path(__file__).parents[2] / "deploy/guest/build"
BOOT_S = 120.0  # 3 s on an idle machine
READY = b"going on from"

pytestmark = pytest.mark.skipif(
    not has_qemu, reason="QEMU IS NOT INSTALLED: no real guest was started"
)


def build(*arguments: str | Path) -> None:
    asyncio.run(execute(str(BUILD), *map(str, arguments), timeout_s=BOOT_S))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("guest")
    try:
        build(directory)
    except CommandFailed as error:
        pytest.skip(f"NO REAL KERNEL WAS BOOTED: {error}")
    return {
        "accelerator": "auto",
        "kernel_path": str(directory / "vmlinuz"),
        "initrd_path": str(directory / "initrd"),
        "kernel_args": "quiet panic=1",
    }


def linux(rig: KvmRig, kernel: dict[str, Any]) -> GuestSpec:
    rig.rules.write_text(f"image {Path(kernel['kernel_path']).parent}\n")
    disk = rig.root / "linux.img"
    if not disk.exists():
        disk.write_bytes(bytes(8 << 20))
    return rig.spec(
        memory=MiB(128),
        disks=(file_disk("disk", str(disk)),),
        parameters=kernel,
    )


def count_on_disk(rig: KvmRig) -> int:
    return int((rig.root / "linux.img").read_bytes()[:512])


async def wait_for(rig: KvmRig, node: str, pattern: bytes) -> None:
    """Wait until the console has said something that matches."""
    log = rig.home(node).serial_log
    await until(lambda: re.search(pattern, log.read_bytes()) is not None)


def test_linux_boots_obeys_and_powers_off(kernel: dict[str, Any]) -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha = rig.nodes["alpha"]
        await alpha.ensure_running(linux(rig, kernel), ())
        await wait_for(rig, "alpha", READY)
        await wait_for(rig, "alpha", rb"count 3\b")
        assert count_on_disk(rig) >= 3

        _, writer = await asyncio.open_unix_connection(rig.home("alpha").serial_socket)
        writer.write(b"echo 6 times 7 is $((6 * 7))\n")
        await wait_for(rig, "alpha", b"is 42")
        writer.close()  # not before: QEMU forgets what was typed by one who has left

        async with asyncio.timeout(BOOT_S):
            await alpha.shut_down(linux(rig, kernel).id, wait_s=600)
        reached = count_on_disk(rig)
        await alpha.ensure_running(linux(rig, kernel), ())
        await wait_for(rig, "alpha", READY + b" %d\\b" % reached)

    run_kvm(scenario)


def test_linux_moves_while_it_counts(kernel: dict[str, Any]) -> None:
    async def scenario(rig: KvmRig) -> None:
        alpha, beta = rig.nodes["alpha"], rig.nodes["beta"]
        spec = linux(rig, kernel)
        await alpha.ensure_running(spec, ())
        await wait_for(rig, "alpha", READY)
        await send(rig, await beta.ensure_receiving(spec, (), MOVE))
        await beta.ensure_resumed(spec.id, MOVE)
        await wait_for(rig, "beta", b"count")
        await alpha.ensure_gone(spec.id)
        await wait_for(rig, "beta", b"count")
        assert count_on_disk(rig) > 1

    run_kvm(scenario)


def test_guest_is_built_the_same_each_time(kernel: dict[str, Any], tmp_path: Path) -> None:
    build(tmp_path)
    assert (tmp_path / "initrd").read_bytes() == Path(kernel["initrd_path"]).read_bytes()


def test_missing_kernel_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="There is no Debian cloud kernel in"):
        build("--kernel-root", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
