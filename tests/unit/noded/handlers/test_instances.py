"""Orders about guests: repeatable, one at a time for each guest, and nothing left behind."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.names import MiB, NicId, TaskId
from common.noderpc.instances import GuestSpec, GuestState, Reception
from common.noderpc.tasks import TaskState
from noded.handlers.instances import InstanceHandlers
from noded.hypervisor.fake import FakeHypervisor
from noded.hypervisor.fake_world import FakeWorld
from noded.tasks.registry import TaskRegistry
from tests.support.clock import simulate
from tests.support.disks import file_disk
from tests.support.guest_orders import (
    DISK,
    INCOMING,
    MOVE,
    NIC_A,
    NIC_B,
    NOTHING,
    OTHER_DISK,
    RUNNING,
    STOP,
    WEB1,
    Machine,
    guest,
    nic,
    result,
)


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
