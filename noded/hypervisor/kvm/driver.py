"""Guests in QEMU: the one place where all is that can be asked of them."""

import asyncio
from collections.abc import Mapping
from typing import Any

from common.errors import NotFound
from common.messages import from_builtins
from common.model.kvm import KvmParameters
from common.names import InstanceId, MiB, TaskId
from common.noderpc.instances import GuestReport, GuestSpec, GuestState, NoConsole, Reception
from common.tasks import Background
from noded.hypervisor.interface import Console, Surroundings, Tell
from noded.hypervisor.kvm import commands
from noded.hypervisor.kvm.accelerator import Accelerators
from noded.hypervisor.kvm.arrivals import Arrivals
from noded.hypervisor.kvm.disk_plugging import settle_disks
from noded.hypervisor.kvm.guests import Guests, name_of
from noded.hypervisor.kvm.home import homes
from noded.hypervisor.kvm.ifup import Ifup
from noded.hypervisor.kvm.launch import Launcher
from noded.hypervisor.kvm.lives import Lives
from noded.hypervisor.kvm.memory import set_memory
from noded.hypervisor.kvm.moves import Moves
from noded.hypervisor.kvm.nic_plugging import settle_nics
from noded.hypervisor.kvm.parse import parse_version
from noded.hypervisor.kvm.report import report
from noded.hypervisor.kvm.standstill import Standstill
from noded.hypervisor.kvm.ways import Line, Manner
from noded.system.execute import CommandFailed, execute

PROGRAM = KvmParameters().kvm_path


class KvmHypervisor:
    """QEMU on this node: with KVM where that works, else with TCG; see ``Hypervisor``."""

    def __init__(self, node: Surroundings) -> None:
        """Keep each guest in a directory of its own."""
        self._open_disk = node.open_disk
        self._ifup = Ifup(node.ifup)
        self._background = Background()
        self._guests = Guests(node.instances, self._background)
        self._accelerators = Accelerators(node.instances.parent / "accelerator.json")
        self._launcher = Launcher(
            node.instances,
            self._accelerators,
            rules=node.rules,
            open_disk=node.open_disk,
            ifup=self._ifup,
            never=(node.identity,),
        )
        arrivals = Arrivals(node.address, self._background)
        self._standstill = Standstill(self._guests)
        self._lives = Lives(self._guests, self._launcher, self._standstill, arrivals)
        self._moves = Moves(self._guests, self._lives, self._standstill, arrivals)

    async def version(self) -> str:
        try:
            finished = await execute(*commands.version(PROGRAM), timeout_s=10)
        except CommandFailed:
            return ""
        return parse_version(finished.stdout.decode(errors="replace"))

    async def prepare(self) -> None:
        await self._standstill.end_what_was_left()
        await self._moves.prepare()
        await self._accelerators.verdict(PROGRAM)

    async def check_startable(self, guest: GuestSpec) -> None:
        await self._launcher.check_startable(guest)

    async def ensure_running(
        self, guest: GuestSpec, taps: tuple[str, ...], *, paused: bool = False
    ) -> None:
        await self._lives.ensure_running(guest, taps, paused=paused)

    async def release(self, instance: InstanceId) -> None:
        await self._lives.release(instance)

    async def ensure_gone(self, instance: InstanceId) -> None:
        await self._lives.ensure_gone(instance)

    async def ensure_no_shell(self, instance: InstanceId) -> None:
        await self._lives.ensure_no_shell(instance)

    async def shut_down(self, instance: InstanceId, wait_s: float) -> None:
        await self._lives.shut_down(instance, wait_s)

    async def reset(self, instance: InstanceId) -> None:
        await self._lives.reset(instance)

    async def ensure_disks(self, guest: GuestSpec) -> None:
        home = self._guests.home(guest.id)
        async with self._guests.turns.of(guest.id):
            if parameters := await self._guests.as_it_runs(home, guest, "disks"):
                await settle_disks(home, guest, parameters, self._open_disk)

    async def ensure_nics(self, guest: GuestSpec, taps: tuple[str, ...]) -> None:
        home = self._guests.home(guest.id)
        async with self._guests.turns.of(guest.id):
            if parameters := await self._guests.as_it_runs(home, guest, "nics"):
                await settle_nics(home, guest, taps, parameters, self._ifup)

    async def set_memory(self, instance: InstanceId, memory: MiB) -> None:
        home = self._guests.home(instance)
        lives = GuestState.RUNNING, GuestState.PAUSED
        async with self._guests.turns.of(instance):
            record = await self._guests.in_state(home, "given other memory", *lives)
            await set_memory(home, record, memory)

    async def stand_still(self, instance: InstanceId) -> None:
        await self._standstill.stand_still(instance)

    async def go_on(self, instance: InstanceId) -> None:
        await self._standstill.go_on(instance)

    async def freeze(self, instance: InstanceId) -> int:
        return await self._standstill.freeze(instance)

    async def thaw(self, instance: InstanceId) -> None:
        await self._standstill.thaw(instance)

    async def guests(self) -> tuple[GuestReport, ...]:
        self._lives.ensure_trimmed()
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(report(home, self._guests.pulses, self._guests.agents))
                for home in homes(self._guests.directory)
            ]
        reports = [told for task in asked if (told := task.result())]
        return tuple(sorted(reports, key=lambda told: told.name))

    async def ensure_receiving(
        self, guest: GuestSpec, taps: tuple[str, ...], move: TaskId
    ) -> Reception:
        return await self._moves.ensure_receiving(guest, taps, move)

    async def migrate(
        self,
        instance: InstanceId,
        *,
        host: str,
        peer: str,
        reception: Reception,
        parameters: Mapping[str, Any],
        live: bool,
        move: TaskId,
        tell: Tell,
    ) -> None:
        what = f"the hypervisor parameters of {name_of(self._guests.home(instance))}"
        manner = Manner(from_builtins(parameters, KvmParameters, what=what), live)
        line = Line(host, peer, reception)
        await self._moves.migrate(instance, line, manner, move=move, tell=tell)

    async def ensure_resumed(self, instance: InstanceId, move: TaskId) -> None:
        await self._moves.ensure_resumed(instance, move)

    async def await_rest(self, instance: InstanceId, move: TaskId) -> Reception:
        return await self._moves.await_rest(instance, move)

    async def send_rest(
        self, instance: InstanceId, *, host: str, reception: Reception, move: TaskId
    ) -> None:
        await self._moves.send_rest(instance, host, reception, move)

    async def ensure_not_migrating(self, instance: InstanceId) -> None:
        await self._moves.ensure_not_migrating(instance)

    async def console(self, instance: InstanceId) -> Console:
        home = self._guests.home(instance)
        record = home.record()
        if record is None:
            raise NotFound("The instance is not on this node.", instance=instance)
        if await self._guests.state(home) is GuestState.STOPPED:
            return NoConsole(message=f"{record.name} is not running.")
        if not record.parameters.get("serial_console", True):
            return NoConsole(message=f"{record.name} has no serial console (serial_console=no).")
        return home.serial_socket

    async def close(self) -> None:
        await self._background.close()
