"""The orders about guests of one node, on what nodes are made of in tests."""

from common.names import InstanceId, InstanceName, MiB, NicId, TaskId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec, GuestState
from common.noderpc.network import NicSpec
from common.noderpc.tasks import TaskState
from noded.handlers.instances import InstanceHandlers
from noded.hypervisor.fake import FakeHypervisor
from noded.hypervisor.fake_world import FakeWorld
from noded.network.fake import FakeNetwork
from noded.storage.directories import Directories
from noded.storage.fake import FakeFiles, FakeStorage
from noded.tasks.registry import TaskRegistry
from tests.support.disks import file_disk, only_files

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
WEB2 = InstanceId("22222222-0000-4000-8000-000000000002")
NIC_A = NicId("aaaaaaaa-bbbb-4ccc-8ddd-00000000000a")
NIC_B = NicId("bbbbbbbb-bbbb-4ccc-8ddd-00000000000b")
DISK = file_disk("dddddddd-0000-4000-8000-00000000000a", "/srv/web1/disk0")
OTHER_DISK = file_disk("dddddddd-0000-4000-8000-00000000000b", "/srv/web1/disk1")
STOP, MOVE = TaskId("stop"), TaskId("move")


def nic(id: NicId = NIC_A, *, instance: InstanceId = WEB1, link: str = "br0") -> NicSpec:
    return NicSpec(id=id, instance=instance, mac="aa:00:00:00:00:01", mode="bridged", link=link)


def guest(
    *, id: InstanceId = WEB1, name: str = "web1", hypervisor: str = "fake",
    nics: tuple[NicSpec, ...] = (nic(NIC_A), nic(NIC_B)), disks: tuple[DiskSpec, ...] = (DISK,),
    parameters: dict[str, object] | None = None,
) -> GuestSpec:  # fmt: skip
    return GuestSpec(
        id=id, name=InstanceName(name), hypervisor=hypervisor, memory=MiB(128), vcpus=1,
        nics=nics, disks=disks, parameters=parameters or {},
    )  # fmt: skip


class Machine:
    """What stays when noded is replaced."""

    def __init__(self, world: FakeWorld | None = None, address: str = "192.0.2.1") -> None:
        self.hypervisor = FakeHypervisor(world or FakeWorld(), address)
        self.network = FakeNetwork("br0")
        self.storage = FakeStorage(
            lambda: Directories(local="/srv"), local=FakeFiles(), shared=FakeFiles()
        )
        self.storages = only_files(self.storage)

    def noded(self) -> tuple[InstanceHandlers, TaskRegistry]:
        tasks = TaskRegistry()
        hypervisors = {"fake": self.hypervisor}
        return InstanceHandlers(hypervisors, self.network, tasks, self.storages), tasks

    async def inside(self) -> tuple[list[GuestState], list[NicId]]:
        """Return the states of its guests and the nics that have taps."""
        states = [report.state for report in await self.hypervisor.guests()]
        return states, [tap.nic for tap in await self.network.taps()]


RUNNING = ([GuestState.RUNNING], [NIC_A, NIC_B])
INCOMING = ([GuestState.INCOMING], [NIC_A, NIC_B])
NOTHING: tuple[list[GuestState], list[NicId]] = ([], [])


async def result(tasks: TaskRegistry, task: TaskId) -> TaskState:
    status = await tasks.watch(task, seen="", wait_s=30)
    while status.state is TaskState.RUNNING:
        status = await tasks.watch(task, seen=status.message, wait_s=30)
    return status.state
