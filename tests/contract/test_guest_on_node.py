"""Real disks, real taps and real QEMU behind the real handlers, on the loop noded runs on."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from common.errors import NodeFailure
from common.names import DiskId, InstanceId, InstanceName, MiB, NicId, TaskId
from common.noderpc.instances import GuestSpec, GuestState
from common.noderpc.network import NicSpec
from common.noderpc.tasks import TaskState
from noded.guest_console import GuestConsoles
from noded.handlers.disks import DiskHandlers
from noded.handlers.instances import InstanceHandlers
from noded.hypervisor.interface import Surroundings
from noded.hypervisor.kvm.driver import KvmHypervisor
from noded.network.linux import LinuxNetwork
from noded.network.netlink import open_netlink
from noded.storage.directories import Directories
from noded.storage.file import FileStorage
from noded.system.turns import Turns
from noded.tasks.registry import TaskRegistry
from tests.support.disks import file_disk, only_files
from tests.support.namespace import in_new_network

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
DISK = DiskId("dddddddd-0000-4000-8000-00000000000a")
NIC = NicSpec(
    id=NicId("aaaaaaaa-bbbb-4ccc-8ddd-00000000000a"), instance=WEB1, mac="aa:00:00:00:00:01",
    mode="bridged", link="br0",
)  # fmt: skip
STOP = TaskId("stop")

pytestmark = pytest.mark.skipif(
    shutil.which("qemu-system-x86_64") is None,
    reason="QEMU IS NOT INSTALLED: no guest was run on real disks and taps",
)


def make_bridge() -> None:
    with open_netlink("make a bridge") as netlink:
        netlink._socket.link("add", ifname="br0", kind="bridge")


def carries(tap: str) -> bool:
    """Tell whether a tap is held open by a guest."""
    with open_netlink("look") as netlink:
        flags = netlink._socket.link("get", ifname=tap)[0]["flags"]
        return bool(flags & 0x10000)  # IFF_LOWER_UP


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory whose path is short enough for sockets in it."""
    with tempfile.TemporaryDirectory(prefix="gnt") as name:
        yield Path(name)


def test_guest_lives_and_leaves_nothing(root: Path) -> None:
    (root / "disks").mkdir()
    path = str(root / "disks/web1/disk0")
    disk = file_disk(DISK, path, instance=WEB1, size=16)
    guest = GuestSpec(
        id=WEB1, name=InstanceName("web1"), hypervisor="kvm", memory=MiB(32), vcpus=1,
        disks=(disk,), nics=(NIC,), parameters={"accelerator": "tcg"},
    )  # fmt: skip

    async def scenario() -> None:
        await asyncio.to_thread(make_bridge)
        network = LinuxNetwork()
        storage = FileStorage(lambda: Directories(local=str(root / "disks")))
        disks = DiskHandlers(only_files(storage), Turns())
        kvm = KvmHypervisor(
            Surroundings(
                instances=root / "run",
                identity=root / "none",
                address="127.0.0.1",
                rules=root / "no-rules",
                ifup=root / "no-script",
                open_disk=storage.open,
            )
        )
        tasks = TaskRegistry()
        instances = InstanceHandlers({"kvm": kvm}, network, tasks, only_files(storage))
        consoles = GuestConsoles(instances.find_console, instances.release)
        try:
            await disks.ensure_present(disk=disk)
            await instances.check_startable(guest=guest)
            await instances.ensure_running(guest=guest)
            await instances.ensure_running(guest=guest)
            assert [report.state for report in await instances.guests()] == [GuestState.RUNNING]
            (tap,) = await network.taps()
            assert await asyncio.to_thread(carries, tap.name)
            with pytest.raises(NodeFailure, match="in use by a running guest"):
                await disks.ensure_absent(disk=disk)

            async with consoles.view(WEB1) as first, consoles.view(WEB1) as second:
                await instances.ensure_gone(instance=WEB1)
                assert (await first.read(), await second.read()) == (b"", b"")

            await instances.ensure_running(guest=guest)
            await instances.begin_shutdown(instance=WEB1, wait_s=0.1, task=STOP)
            status = await tasks.watch(STOP, seen="", wait_s=20)
            while status.state is TaskState.RUNNING:
                status = await tasks.watch(STOP, seen=status.message, wait_s=20)
            assert status.state is TaskState.DONE
        finally:
            await instances.ensure_gone(instance=WEB1)
            await consoles.close()
            await tasks.close()
            await kvm.close()
        await disks.ensure_absent(disk=disk)
        assert (await instances.guests(), await network.taps()) == ((), ())

    in_new_network(scenario, loop_factory=uvloop.new_event_loop)
    assert list((root / "disks").iterdir()) == list((root / "run").iterdir()) == []
