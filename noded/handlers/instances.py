"""Calls about the guests of this node."""

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from common.errors import GntError, InvalidRequest, NodeFailure
from common.model.hypervisors import hypervisor_parameters
from common.names import InstanceId, MiB, NicId, TaskId, check_name, is_uuid
from common.noderpc.instances import (
    ConsoleInfo,
    GuestReport,
    GuestSpec,
    GuestState,
    Instances,
    NoConsole,
    Reception,
    StreamConsole,
)
from noded.hypervisor.interface import Console, Hypervisor
from noded.network.interface import NetworkDriver
from noded.storage.storages import Storages
from noded.system.turns import Turns
from noded.tasks.registry import Progress, TaskRegistry


class InstanceHandlers(Instances):
    """Guests of all hypervisors, with their taps.

    Whatever starts or ends a guest holds the instance's turn over both, guest and taps. What
    takes long (powering off, sending memory) does not, so that it can be overruled.
    """

    def __init__(
        self,
        hypervisors: Mapping[str, Hypervisor],
        network: NetworkDriver,
        tasks: TaskRegistry,
        storages: Storages,
    ) -> None:
        self._hypervisors = hypervisors
        self._network = network
        self._tasks = tasks
        self._storages = storages
        self._turns = Turns()
        self._shutdowns: dict[TaskId, InstanceId] = {}  # those going on

    async def ensure_running(self, *, guest: GuestSpec, paused: bool = False) -> None:
        hypervisor = self._hypervisor_for(guest)
        async with self._turns.of(guest.id):
            await self._overrule_shutdowns(guest.id)
            try:
                taps = await self._network.ensure_taps(guest.nics)
                await hypervisor.ensure_running(guest, taps, paused=paused)
            except GntError:
                await self._remove_unused_taps(guest.id)
                raise

    async def ensure_gone(self, *, instance: InstanceId) -> None:
        _check_id(instance)
        async with self._turns.of(instance):
            for hypervisor in self._hypervisors.values():
                await hypervisor.ensure_gone(instance)
            await self._remove_taps(instance)

    async def begin_shutdown(self, *, instance: InstanceId, wait_s: float, task: TaskId) -> None:
        _check_id(instance)

        async def work(progress: Progress) -> None:
            if wait_s > 0:
                progress.tell(f"It has {wait_s:g} s to power off.")
            self._shutdowns[task] = instance
            try:
                await (await self._hypervisor_of(instance)).shut_down(instance, wait_s)
                await self.ensure_gone(instance=instance)
            finally:
                del self._shutdowns[task]

        self._tasks.begin(task, work)

    async def reset(self, *, instance: InstanceId) -> None:
        await (await self._hypervisor_of(instance)).reset(instance)

    async def ensure_disks(self, *, guest: GuestSpec) -> None:
        hypervisor = self._hypervisor_for(guest)
        async with self._turns.of(guest.id):
            await hypervisor.ensure_disks(guest)

    async def set_memory(self, *, instance: InstanceId, memory: MiB) -> None:
        if memory < 1:
            raise InvalidRequest("A guest uses at least 1 MiB of its memory.")
        await (await self._hypervisor_of(instance)).set_memory(instance, memory)

    async def ensure_nics(self, *, guest: GuestSpec) -> None:
        hypervisor = self._hypervisor_for(guest)
        async with self._turns.of(guest.id):
            try:
                taps = await self._network.ensure_taps(guest.nics)
                await hypervisor.ensure_nics(guest, taps)
            finally:
                await self._remove_unused_taps(guest.id)

    async def guests(self) -> tuple[GuestReport, ...]:
        reports = [
            report
            for hypervisor in self._hypervisors.values()
            for report in await hypervisor.guests()
        ]
        return tuple(sorted(reports, key=lambda report: report.name))

    async def check_startable(self, *, guest: GuestSpec) -> None:
        await self._hypervisor_for(guest).check_startable(guest)
        await self._network.check(guest.nics)

    async def ensure_receiving(self, *, guest: GuestSpec, move: TaskId) -> Reception:
        hypervisor = self._hypervisor_for(guest)
        async with self._turns.of(guest.id):
            await self._overrule_shutdowns(guest.id)
            try:
                taps = await self._network.ensure_taps(guest.nics)
                return await hypervisor.ensure_receiving(guest, taps, move)
            except GntError:
                await self._remove_unused_taps(guest.id)
                raise

    async def begin_migration(
        self,
        *,
        instance: InstanceId,
        host: str,
        peer: str,
        port: int,
        secret: str,
        parameters: dict[str, Any],
        live: bool,
        task: TaskId,
    ) -> None:
        reception = Reception(port=port, secret=secret)
        hypervisor = await self._hypervisor_of(instance)

        async def work(progress: Progress) -> None:
            await hypervisor.migrate(
                instance,
                host=host,
                peer=peer,
                reception=reception,
                parameters=parameters,
                live=live,
                move=task,
                tell=progress.tell,
            )

        self._tasks.begin(task, work)

    async def ensure_resumed(self, *, instance: InstanceId, move: TaskId) -> None:
        hypervisor = await self._hypervisor_of(instance)
        async with self._turns.of(instance):
            await hypervisor.ensure_resumed(instance, move)

    async def await_rest(self, *, instance: InstanceId, move: TaskId) -> Reception:
        return await (await self._hypervisor_of(instance)).await_rest(instance, move)

    async def send_rest(
        self, *, instance: InstanceId, host: str, port: int, secret: str, move: TaskId
    ) -> None:
        hypervisor = await self._hypervisor_of(instance)
        reception = Reception(port=port, secret=secret)
        await hypervisor.send_rest(instance, host=host, reception=reception, move=move)

    async def ensure_no_shell(self, *, instance: InstanceId) -> None:
        _check_id(instance)
        async with self._turns.of(instance):
            for hypervisor in self._hypervisors.values():
                await hypervisor.ensure_no_shell(instance)
            await self._remove_taps(instance)

    async def ensure_not_migrating(self, *, instance: InstanceId) -> None:
        await (await self._hypervisor_of(instance)).ensure_not_migrating(instance)

    async def console(self, *, instance: InstanceId) -> ConsoleInfo:
        match await self.find_console(instance):
            case NoConsole() as none:
                return none
            case Path():
                return StreamConsole()

    async def find_console(self, instance: InstanceId) -> Console:
        """Tell where on this node the guest's console is.

        Raises:
            NotFound: the guest is not on this node.
        """
        return await (await self._hypervisor_of(instance)).console(instance)

    async def release(self, instance: InstanceId) -> None:
        """Have a guest run that was started paused; any other is left alone.

        Raises:
            NodeFailure: it does not answer.
        """
        await (await self._hypervisor_of(instance)).release(instance)

    def _hypervisor_for(self, guest: GuestSpec) -> Hypervisor:
        """Check an order as far as it can be without looking; return who will carry it out."""
        _check_id(guest.id)
        check_name(guest.name, "instance")
        what = f"the hypervisor parameters of {guest.name}"
        hypervisor_parameters(guest.hypervisor, guest.parameters, what=what)
        if any(disk.instance != guest.id for disk in guest.disks):
            raise InvalidRequest(f"A disk of {guest.name} is said to be another instance's.")
        for disk in guest.disks:
            self._storages.of(disk).check_place(disk)
        if any(nic.instance != guest.id for nic in guest.nics):
            raise InvalidRequest(f"A nic of {guest.name} is said to be another instance's.")
        if guest.hypervisor not in self._hypervisors:
            known = ", ".join(sorted(self._hypervisors)) or "none"
            raise NodeFailure(
                f"{guest.name} cannot run here: this node has no hypervisor "
                f"“{guest.hypervisor}”; it has {known}.",
                hypervisor=guest.hypervisor,
            )
        return self._hypervisors[guest.hypervisor]

    async def _hypervisor_of(self, instance: InstanceId) -> Hypervisor:
        """Return the one that has the guest; if none has, one that will say so."""
        _check_id(instance)
        if not self._hypervisors:
            raise NodeFailure("This node has no hypervisor.")
        first, *others = self._hypervisors.values()
        for hypervisor in others:
            if any(report.id == instance for report in await hypervisor.guests()):
                return hypervisor
        return first

    async def _overrule_shutdowns(self, instance: InstanceId) -> None:
        """End the tasks of earlier shutdowns: they must not kill the guest that starts now."""
        for task in [task for task, whose in self._shutdowns.items() if whose == instance]:
            await self._tasks.cancel(task)

    async def _remove_unused_taps(self, instance: InstanceId) -> None:
        """Clear up what its guest does not have; it may run, or be on its way in."""
        there = [
            each
            for each in await self.guests()
            if each.id == instance and each.state is not GuestState.STOPPED
        ]
        if all(each.nic_slots is not None for each in there):  # else it is not known which it has
            await self._remove_taps(instance, kept={nic for each in there for nic in each.nics})

    async def _remove_taps(self, instance: InstanceId, kept: Container[NicId] = ()) -> None:
        taps = await self._network.taps()
        unwanted = (tap.nic for tap in taps if tap.instance == instance and tap.nic not in kept)
        await self._network.remove_taps(tuple(unwanted))


def _check_id(instance: InstanceId) -> None:
    # It becomes the name of a directory that is made and deleted.
    if not is_uuid(instance):
        raise InvalidRequest(f"{instance!r} is no UUID of an instance.")
