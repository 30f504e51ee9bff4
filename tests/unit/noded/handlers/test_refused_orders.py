"""Orders about guests that are refused: senseless ones, and those for who is not here."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from common.errors import Conflict, GntError, InvalidRequest, NodeFailure, NotFound
from common.names import InstanceId
from common.noderpc.instances import GuestSpec, Instances, NoConsole
from noded.handlers.instances import InstanceHandlers
from noded.hypervisor.fake import FakeHypervisor
from noded.hypervisor.fake_world import FakeWorld
from noded.tasks.registry import TaskRegistry
from tests.support.clock import simulate
from tests.support.disks import file_disk
from tests.support.guest_orders import (
    DISK,
    MOVE,
    NIC_A,
    NOTHING,
    STOP,
    WEB1,
    WEB2,
    Machine,
    guest,
    nic,
)


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
