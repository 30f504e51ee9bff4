"""Orders about guests: repeatable, one at a time for each guest, and nothing left behind."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NodeFailure, NotFound
from common.names import InstanceId, InstanceName, MiB, NicId, TaskId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec, GuestState, Instances, NoConsole, Reception
from common.noderpc.network import NicSpec
from common.noderpc.tasks import TaskState
from noded.handlers.instances import InstanceHandlers
from noded.hypervisor.fake import FakeHypervisor
from noded.hypervisor.fake_world import FakeWorld
from noded.network.fake import FakeNetwork
from noded.storage.directories import Directories
from noded.storage.fake import FakeFiles, FakeStorage
from noded.tasks.registry import TaskRegistry
from tests.support.clock import simulate
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


def test_starting_may_be_repeated() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, _ = machine.noded()
        await instances.ensure_running(guest=guest())
        await asyncio.sleep(10)
        before = machine.hypervisor.number(WEB1)
        await instances.ensure_running(guest=guest())
        assert machine.hypervisor.number(WEB1) >= before > 100
        assert await machine.inside() == RUNNING
        assert [report.name for report in await instances.guests()] == ["web1"]

    simulate(scenario())


def test_ending_may_be_repeated() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, _ = machine.noded()
        await instances.ensure_gone(instance=WEB1)
        await instances.ensure_running(guest=guest())
        await instances.ensure_gone(instance=WEB1)
        await instances.ensure_gone(instance=WEB1)
        assert await machine.inside() == NOTHING

    simulate(scenario())


Begin = Callable[[InstanceHandlers], Awaitable[object]]


@pytest.mark.parametrize(
    ("begin", "wanted"),
    [
        (lambda instances: instances.ensure_running(guest=guest()), RUNNING),
        (lambda instances: instances.ensure_receiving(guest=guest(), move=MOVE), INCOMING),
    ],
    ids=["running", "incoming"],
)
@pytest.mark.parametrize("steps", range(12))
def test_order_cut_short_anywhere_can_be_repeated_or_undone(
    begin: Begin, wanted: object, steps: int
) -> None:
    async def scenario() -> None:
        machine = Machine()
        for finish in (True, False):
            order = asyncio.ensure_future(begin(machine.noded()[0]))
            for _ in range(steps):
                await asyncio.sleep(0 if steps % 2 else 0.02)
            order.cancel()  # noded dies
            await asyncio.wait([order])
            instances, _ = machine.noded()
            if finish:
                await begin(instances)
                assert await machine.inside() == wanted
            await instances.ensure_gone(instance=WEB1)
            assert await machine.inside() == NOTHING

    simulate(scenario())


def test_orders_for_one_guest_take_turns() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, _ = machine.noded()
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(instances.ensure_running(guest=guest()))
                group.create_task(instances.ensure_gone(instance=WEB1))
            group.create_task(instances.ensure_running(guest=guest()))
        assert await machine.inside() == RUNNING

    simulate(scenario())


def test_running_guest_gets_disks_and_lets_them_go() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, _ = machine.noded()
        await instances.ensure_running(guest=guest())
        await instances.ensure_disks(guest=guest(disks=(DISK, OTHER_DISK)))
        assert machine.hypervisor.seen(WEB1) == {0: 8, 1: 8}
        await instances.ensure_disks(guest=guest(disks=(replace(OTHER_DISK, size=MiB(9)),)))
        assert machine.hypervisor.seen(WEB1) == {1: 9}
        astray = file_disk(OTHER_DISK.id, "/etc/shadow")
        with pytest.raises(InvalidRequest, match="not below"):
            await instances.ensure_disks(guest=guest(disks=(astray,)))

    simulate(scenario())


def test_running_guest_gets_nics_and_their_taps_and_lets_them_go() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, _ = machine.noded()

        async def taps() -> set[NicId]:
            return {tap.nic for tap in await machine.network.taps()}

        await instances.ensure_nics(guest=guest())
        assert await taps() == set()  # it does not run
        await instances.ensure_running(guest=guest(nics=(nic(NIC_A),)))
        await instances.ensure_nics(guest=guest(nics=(nic(NIC_A), nic(NIC_B))))
        assert await taps() == {NIC_A, NIC_B}
        machine.hypervisor.deafen(WEB1)
        with pytest.raises(NodeFailure, match="asked to let go"):
            await instances.ensure_nics(guest=guest(nics=(nic(NIC_B),)))
        assert await taps() == {NIC_A, NIC_B}
        with pytest.raises(NodeFailure, match="bridge 'br9' does not exist"):
            await instances.ensure_nics(guest=guest(nics=(nic(NIC_A, link="br9"),)))
        assert await taps() == {NIC_A, NIC_B}
        machine.hypervisor._guests[WEB1].is_deaf = False
        await instances.ensure_nics(guest=guest(nics=(nic(NIC_B),)))
        assert await taps() == {NIC_B}

    simulate(scenario())


def test_failed_start_leaves_no_taps() -> None:
    class Broken(FakeHypervisor):
        async def ensure_running(
            self, guest: GuestSpec, taps: tuple[str, ...], *, paused: bool = False
        ) -> None:
            raise NodeFailure("It died at once.")

        async def ensure_receiving(
            self, guest: GuestSpec, taps: tuple[str, ...], move: TaskId
        ) -> Reception:
            raise NodeFailure("It died at once.")

    async def scenario() -> None:
        machine = Machine()
        machine.hypervisor = Broken(FakeWorld(), "192.0.2.1")
        instances, _ = machine.noded()
        orders: tuple[Begin, ...] = (
            lambda instances: instances.ensure_running(guest=guest()),
            lambda instances: instances.ensure_receiving(guest=guest(), move=MOVE),
        )
        for order in orders:
            with pytest.raises(NodeFailure, match="died at once"):
                await order(instances)
            assert await machine.inside() == NOTHING
        with pytest.raises(NodeFailure, match="bridge"):
            await instances.ensure_running(guest=guest(nics=(nic(NIC_A), nic(NIC_B, link="br9"))))
        assert await machine.inside() == NOTHING

    simulate(scenario())


def test_refused_start_leaves_the_guest_its_taps() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, _ = machine.noded()
        await instances.ensure_receiving(guest=guest(), move=MOVE)
        with pytest.raises(Conflict):
            await instances.ensure_running(guest=guest())
        assert await machine.inside() == INCOMING

    simulate(scenario())


def test_guest_that_ended_by_itself_is_seen_until_it_is_cleared_away() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, _ = machine.noded()
        await instances.ensure_running(guest=guest())
        machine.hypervisor.crash(WEB1)
        assert [report.state for report in await instances.guests()] == [GuestState.STOPPED]
        await instances.ensure_gone(instance=WEB1)
        assert await machine.inside() == NOTHING

    simulate(scenario())


def test_shutdown_clears_away() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, tasks = machine.noded()
        await instances.ensure_running(guest=guest())
        await instances.begin_shutdown(instance=WEB1, wait_s=60, task=STOP)
        await instances.begin_shutdown(instance=WEB1, wait_s=60, task=STOP)
        assert await result(tasks, STOP) is TaskState.DONE
        assert await machine.inside() == NOTHING
        again = TaskId("again")
        await instances.begin_shutdown(instance=WEB1, wait_s=60, task=again)
        assert await result(tasks, again) is TaskState.DONE

    simulate(scenario())


def test_shutdown_does_not_hold_up_the_end() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, tasks = machine.noded()
        await instances.ensure_running(guest=guest())
        await instances.begin_shutdown(instance=WEB1, wait_s=60, task=STOP)
        await asyncio.sleep(0)
        async with asyncio.timeout(0.1):
            await instances.ensure_gone(instance=WEB1)
        assert await result(tasks, STOP) is TaskState.DONE

    simulate(scenario())


def test_start_overrules_an_earlier_shutdown() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, tasks = machine.noded()
        await instances.ensure_running(guest=guest())
        await instances.begin_shutdown(instance=WEB1, wait_s=60, task=STOP)
        await asyncio.sleep(0.1)
        await instances.ensure_gone(instance=WEB1)
        await instances.ensure_running(guest=guest())
        assert await result(tasks, STOP) is TaskState.CANCELLED
        await asyncio.sleep(100)
        assert await machine.inside() == RUNNING

    simulate(scenario())


async def moving(
    source: Machine, target: Machine
) -> tuple[InstanceHandlers, TaskRegistry, InstanceHandlers]:
    there, tasks = source.noded()
    here, _ = target.noded()
    await there.ensure_running(guest=guest())
    reception = await here.ensure_receiving(guest=guest(), move=MOVE)
    assert await here.ensure_receiving(guest=guest(), move=MOVE) == reception
    await there.begin_migration(
        instance=WEB1, host="192.0.2.2", peer="beta", port=reception.port,
        secret=reception.secret, parameters={}, live=True, task=MOVE,
    )  # fmt: skip
    return there, tasks, here


def test_migration_leaves_a_shell_that_can_be_cleared_away() -> None:
    async def scenario() -> None:
        world = FakeWorld()
        source, target = Machine(world, "192.0.2.1"), Machine(world, "192.0.2.2")
        there, tasks, here = await moving(source, target)
        assert await result(tasks, MOVE) is TaskState.DONE
        assert await source.inside() == ([GuestState.MIGRATED], [NIC_A, NIC_B])
        assert await target.inside() == INCOMING
        await here.ensure_resumed(instance=WEB1, move=MOVE)
        assert await target.inside() == RUNNING
        with pytest.raises(Conflict, match="left"):
            await there.ensure_not_migrating(instance=WEB1)
        await there.ensure_no_shell(instance=WEB1)
        with pytest.raises(Conflict, match="no mere remnant"):
            await here.ensure_no_shell(instance=WEB1)
        assert await source.inside() == NOTHING
        await here.ensure_running(guest=guest())
        assert await target.inside() == RUNNING

    simulate(scenario())


def test_migration_can_be_called_off() -> None:
    async def scenario() -> None:
        world = FakeWorld()
        source, target = Machine(world, "192.0.2.1"), Machine(world, "192.0.2.2")
        there, tasks, here = await moving(source, target)
        await asyncio.sleep(1)
        await there.ensure_not_migrating(instance=WEB1)
        await there.ensure_not_migrating(instance=WEB1)
        assert await result(tasks, MOVE) is TaskState.FAILED
        await here.ensure_no_shell(instance=WEB1)
        assert (await source.inside(), await target.inside()) == (RUNNING, NOTHING)

    simulate(scenario())


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (guest(id=InstanceId("../../etc")), InvalidRequest, "no UUID"),
        (guest(name="web1/../x"), InvalidRequest, "no instance name"),
        (guest(hypervisor="qemu"), InvalidRequest, "no hypervisor “qemu”"),
        (guest(hypervisor="kvm"), NodeFailure, "this node has no hypervisor “kvm”; it has fake"),
        (guest(parameters={"speed": 9}), InvalidRequest, "parameters of web1.*speed"),
        (
            guest(disks=(file_disk(DISK.id, "/etc/shadow"),)),
            InvalidRequest,
            "is not below",
        ),
        (
            guest(disks=(file_disk(DISK.id, "/srv/web2/disk0", instance=WEB2),)),
            InvalidRequest,
            "disk of web1 is said to be another instance's",
        ),
        (
            guest(nics=(nic(instance=InstanceId(NIC_A)),)),
            InvalidRequest,
            "another instance's",
        ),
        (guest(nics=(nic(link="br9"),)), NodeFailure, "br9"),
    ],
)
def test_senseless_guest_is_refused(bad: GuestSpec, kind: type[GntError], words: str) -> None:
    async def scenario() -> None:
        machine = Machine()
        instances, _ = machine.noded()
        for call in (
            instances.check_startable,
            instances.ensure_running,
            lambda guest: instances.ensure_receiving(guest=guest, move=MOVE),
        ):
            with pytest.raises(kind, match=words):
                await call(guest=bad)
        assert await machine.inside() == NOTHING

    simulate(scenario())


def test_no_order_takes_an_id_for_a_path() -> None:
    bad = InstanceId("../../../etc")
    orders: list[Callable[[Instances], Awaitable[object]]] = [
        lambda instances: instances.ensure_gone(instance=bad),
        lambda instances: instances.begin_shutdown(instance=bad, wait_s=1, task=STOP),
        lambda instances: instances.reset(instance=bad),
        lambda instances: instances.begin_migration(
            instance=bad,
            host="192.0.2.2",
            peer="beta",
            port=1,
            secret="",
            parameters={},
            live=True,
            task=MOVE,
        ),
        lambda instances: instances.ensure_resumed(instance=bad, move=MOVE),
        lambda instances: instances.ensure_no_shell(instance=bad),
        lambda instances: instances.ensure_not_migrating(instance=bad),
        lambda instances: instances.console(instance=bad),
    ]

    async def scenario() -> None:
        instances, tasks = Machine().noded()
        for order in orders:
            with pytest.raises(InvalidRequest, match="no UUID"):
                await order(instances)
        assert tasks.running == ()

    simulate(scenario())


def test_orders_for_a_guest_that_is_not_here() -> None:
    async def scenario() -> None:
        instances, _ = Machine().noded()
        with pytest.raises(Conflict):
            await instances.reset(instance=WEB1)
        with pytest.raises(NotFound):
            await instances.console(instance=WEB1)
        with pytest.raises(Conflict):
            await instances.ensure_not_migrating(instance=WEB1)
        with pytest.raises(Conflict):
            await instances.ensure_resumed(instance=WEB1, move=MOVE)
        await instances.ensure_no_shell(instance=WEB1)

    simulate(scenario())


def test_each_guest_is_found_at_its_hypervisor() -> None:
    async def scenario() -> None:
        machine, other = Machine(), FakeHypervisor(FakeWorld(), "192.0.2.1")
        hypervisors = {"kvm": other, "fake": machine.hypervisor}
        instances = InstanceHandlers(hypervisors, machine.network, TaskRegistry(), machine.storages)
        await instances.ensure_running(guest=guest(hypervisor="fake"))
        await asyncio.sleep(10)
        await instances.reset(instance=WEB1)
        assert machine.hypervisor.number(WEB1) == 0
        told = await instances.console(instance=WEB1)
        assert told == NoConsole(message="A fake instance has no console.")
        await instances.ensure_gone(instance=WEB1)
        assert await instances.guests() == ()
        with pytest.raises(NotFound):
            await instances.console(instance=WEB1)

    simulate(scenario())


def test_node_without_hypervisors_says_so() -> None:
    async def scenario() -> None:
        machine = Machine()
        instances = InstanceHandlers({}, machine.network, TaskRegistry(), machine.storages)
        with pytest.raises(NodeFailure, match="it has none"):
            await instances.ensure_running(guest=guest())
        with pytest.raises(NodeFailure, match="no hypervisor"):
            await instances.console(instance=WEB1)
        assert await instances.guests() == ()

    simulate(scenario())
