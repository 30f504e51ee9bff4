"""Guests in QEMU."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure, NotFound
from common.messages import from_builtins
from common.model.kvm import KvmParameters
from common.names import InstanceId, MiB, TaskId
from common.noderpc.instances import GuestReport, GuestSpec, GuestState, NoConsole, Reception
from common.tasks import Background
from noded.hypervisor.interface import Console, Surroundings, Tell
from noded.hypervisor.kvm import commands, migration
from noded.hypervisor.kvm.accelerator import Accelerators
from noded.hypervisor.kvm.agents import Agents
from noded.hypervisor.kvm.arrivals import Arrivals
from noded.hypervisor.kvm.disk_plugging import settle_disks
from noded.hypervisor.kvm.ending import Besides, clear, let_end, power_off
from noded.hypervisor.kvm.going_on import GoingOn
from noded.hypervisor.kvm.guest_parameters import parameters_of, running_parameters
from noded.hypervisor.kvm.home import PASSABLE, Home, Record, homes
from noded.hypervisor.kvm.launch import Launcher
from noded.hypervisor.kvm.looks import Seen, look
from noded.hypervisor.kvm.memory import set_memory
from noded.hypervisor.kvm.monitor import monitor
from noded.hypervisor.kvm.nic_plugging import settle_nics
from noded.hypervisor.kvm.parse import Transfer, lacks_space, parse_version
from noded.hypervisor.kvm.pulse import Pulses
from noded.hypervisor.kvm.report import report
from noded.system.execute import CommandFailed, execute
from noded.system.process import Process
from noded.system.turns import Turns

PROGRAM = KvmParameters().kvm_path
TRIM_EVERY_S = 10.0

_WHY = {
    GuestState.INCOMING: "it waits for its memory from another node, or to be told to run",
    GuestState.MIGRATED: "its memory has left this node",
    GuestState.UNKNOWN: "its process is there and does not answer",
}

log = logging.getLogger(__name__)


class KvmHypervisor:
    """QEMU on this node: with KVM where that works, else with TCG; see ``Hypervisor``."""

    def __init__(self, node: Surroundings) -> None:
        """Keep each guest in a directory of its own."""
        instances = node.instances
        instances.mkdir(parents=True, exist_ok=True)
        instances.chmod(PASSABLE)
        self._instances = instances
        self._open_disk = node.open_disk
        self._accelerators = Accelerators(instances.parent / "accelerator.json")
        self._launcher = Launcher(
            instances,
            self._accelerators,
            rules=node.rules,
            open_disk=node.open_disk,
            never=(node.identity,),
        )
        self._turns = Turns()  # to start and end a guest
        self._background = Background()
        self._pulses = Pulses(self._background)
        self._agents = Agents(self._background)
        self._going_on = GoingOn(self._background)
        self._arrivals = Arrivals(node.address, self._background)
        self._trimmer: asyncio.Task[None] | None = None

    async def version(self) -> str:
        try:
            finished = await execute(*commands.version(PROGRAM), timeout_s=10)
        except CommandFailed:
            return ""
        return parse_version(finished.stdout.decode(errors="replace"))

    async def prepare(self) -> None:
        for home in homes(self._instances):
            if home.stands_still:
                with suppress(NodeFailure):  # it is told again until it answers or has ended
                    await self.go_on(home.instance)
            if home.is_frozen:
                self._agents.thaw_at_last(home, _name(home))
        await self._accelerators.verdict(PROGRAM)

    async def check_startable(self, guest: GuestSpec) -> None:
        await self._launcher.check_startable(guest)

    async def ensure_running(
        self, guest: GuestSpec, taps: tuple[str, ...], *, paused: bool = False
    ) -> None:
        home = self._home(guest.id)
        async with self._turns.of(guest.id):
            match await self._state(home):
                case GuestState.RUNNING | GuestState.PAUSED:
                    if home.is_button_pressed:
                        await let_end(home)
                        await self._start(home, guest, taps, paused=paused)
                    else:
                        if not paused:
                            await self._release(home)
                        await self._go_on(home)
                        await self._write_again(home)
                case GuestState.STOPPED | None:
                    await self._start(home, guest, taps, paused=paused)
                case GuestState.INCOMING | GuestState.MIGRATED | GuestState.UNKNOWN as state:
                    raise Conflict(
                        f"{guest.name} cannot be started here: {_WHY[state]}.",
                        instance=guest.name,
                        state=state,
                    )

    async def release(self, instance: InstanceId) -> None:
        async with self._turns.of(instance):
            await self._release(self._home(instance))

    async def ensure_gone(self, instance: InstanceId) -> None:
        async with self._turns.of(instance):
            await self._clear(self._home(instance))

    async def ensure_no_shell(self, instance: InstanceId) -> None:
        home = self._home(instance)
        async with self._turns.of(instance):
            match await self._state(home):
                case GuestState.RUNNING | GuestState.PAUSED | GuestState.UNKNOWN as state:
                    raise Conflict(
                        f"What is here of {_name(home)} is {state}, so it is no mere remnant.",
                        instance=instance,
                        state=state,
                    )
                case _:
                    await self._clear(home)

    async def shut_down(self, instance: InstanceId, wait_s: float) -> None:
        home = self._home(instance)
        # What does not run cannot hear the button; what is silent just now may.
        if await self._state(home) in (GuestState.RUNNING, GuestState.UNKNOWN):
            await power_off(home, wait_s, self._agent_of(home))
        await self.ensure_gone(instance)

    async def reset(self, instance: InstanceId) -> None:
        home = self._home(instance)
        record = await self._in_state(home, "reset", GuestState.RUNNING)
        async with monitor(home.qmp_socket, record.name) as session:
            await session.ask("system_reset")
        home.thaw()  # it boots, and its agent knows of nothing

    async def ensure_disks(self, guest: GuestSpec) -> None:
        home = self._home(guest.id)
        async with self._turns.of(guest.id):
            if parameters := await self._as_it_runs(home, guest, "disks"):
                await settle_disks(home, guest, parameters, self._open_disk)

    async def ensure_nics(self, guest: GuestSpec, taps: tuple[str, ...]) -> None:
        home = self._home(guest.id)
        async with self._turns.of(guest.id):
            if parameters := await self._as_it_runs(home, guest, "nics"):
                await settle_nics(home, guest, taps, parameters)

    async def set_memory(self, instance: InstanceId, memory: MiB) -> None:
        home = self._home(instance)
        async with self._turns.of(instance):
            verb = "given other memory"
            record = await self._in_state(home, verb, GuestState.RUNNING, GuestState.PAUSED)
            await set_memory(home, record, memory)

    async def stand_still(self, instance: InstanceId) -> None:
        home = self._home(instance)
        async with self._turns.of(instance):
            self._going_on.leave(instance)
            match await self._state(home):
                case GuestState.RUNNING:
                    home.stand_still()
                    async with monitor(home.qmp_socket, _name(home)) as session:
                        await session.ask("stop")  # which waits for, and flushes, all writes
                case GuestState.INCOMING | GuestState.MIGRATED | GuestState.UNKNOWN as state:
                    raise Conflict(
                        f"{_name(home)} cannot stand still here: {_WHY[state]}.", state=state
                    )
                case GuestState.PAUSED | GuestState.STOPPED | None:
                    pass

    async def go_on(self, instance: InstanceId) -> None:
        home = self._home(instance)

        async def try_it() -> None:
            async with self._turns.of(instance):
                await self._go_on(home)

        try:
            await try_it()
        except NodeFailure:
            self._going_on.at_last(home, try_it)
            raise

    async def freeze(self, instance: InstanceId) -> int:
        home = self._home(instance)
        async with self._turns.of(instance):
            record = await self._in_state(home, "frozen", GuestState.RUNNING)
            if not record.has_agent:
                raise Conflict(
                    f"{record.name} cannot be frozen: it was started without a line to an agent "
                    "in it (use_guest_agent).",
                    instance=instance,
                )
            return await self._agents.freeze(home, record.name)

    async def thaw(self, instance: InstanceId) -> None:
        home = self._home(instance)
        try:
            await self._agents.thaw(home, _name(home))
        except NodeFailure:
            self._agents.thaw_at_last(home, _name(home))
            raise

    async def guests(self) -> tuple[GuestReport, ...]:
        self._ensure_trimmed()
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(report(home, self._pulses, self._agents))
                for home in homes(self._instances)
            ]
        reports = [told for task in asked if (told := task.result())]
        return tuple(sorted(reports, key=lambda told: told.name))

    async def ensure_receiving(
        self, guest: GuestSpec, taps: tuple[str, ...], move: TaskId
    ) -> Reception:
        home = self._home(guest.id)
        async with self._turns.of(guest.id):
            match await look(home, self._pulses):
                case Seen(state=GuestState.RUNNING | GuestState.PAUSED | GuestState.UNKNOWN as it):
                    raise Conflict(f"{guest.name} is here already: {it}.", instance=guest.name)
                case Seen(state=GuestState.INCOMING, arrived=arrived):
                    record = home.record()
                    if record and record.receives == move:
                        if reception := await self._kept(home, guest.name):
                            return reception
                    elif arrived:
                        raise Conflict(
                            f"{guest.name} has come here by another move, and waits to be told "
                            "to run.",
                            instance=guest.name,
                        )
                case _:
                    pass
            # A shell may be left that is good for nothing any more.
            await self._clear(home)
            await self._start(home, guest, taps, receives=move)
            try:
                return self._arrivals.open(home, guest.name)
            except NodeFailure:
                await self._clear(home)
                raise

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
        home = self._home(instance)
        record = await self._in_state(home, "moved", GuestState.RUNNING, GuestState.MIGRATED)
        if not home.has_left:
            self._going_on.leave(instance)
            await self._agents.thaw(home, record.name)  # else nobody would thaw it there
            what = f"the hypervisor parameters of {record.name}"
            manner = migration.Manner(from_builtins(parameters, KvmParameters, what=what), live)
            line = migration.Line(host, peer, reception)
            await migration.send(home, record, move, line=line, manner=manner, tell=tell)
            log.info("%s has left for %s", record.name, peer)
        if home.left_by != move:
            raise Conflict(f"{record.name} has left this node by another move.", instance=instance)

    async def ensure_resumed(self, instance: InstanceId, move: TaskId) -> None:
        home = self._home(instance)
        async with self._turns.of(instance):
            record = home.record()
            state = await self._state(home)
            if record is None or record.receives != move or state is GuestState.MIGRATED:
                raise Conflict(
                    f"{_name(home)} cannot run here: it has not come by this move.",
                    instance=instance,
                )
            if state is not GuestState.RUNNING:
                await migration.resume(home, record.name)
                log.info("%s has come, and runs here", record.name)

    async def ensure_not_migrating(self, instance: InstanceId) -> None:
        home = self._home(instance)
        record = home.record()
        state = await self._state(home)
        if record is None or state in (GuestState.STOPPED, GuestState.INCOMING, None):
            raise Conflict("The instance does not run on this node.", instance=instance)
        if state is GuestState.MIGRATED:
            raise Conflict(
                f"{record.name} has left this node for good.", instance=instance, state=state
            )
        await migration.cancel(home, record.name)

    async def console(self, instance: InstanceId) -> Console:
        home = self._home(instance)
        record = home.record()
        if record is None:
            raise NotFound("The instance is not on this node.", instance=instance)
        if await self._state(home) is GuestState.STOPPED:
            return NoConsole(message=f"{record.name} is not running.")
        if not record.parameters.get("serial_console", True):
            return NoConsole(message=f"{record.name} has no serial console (serial_console=no).")
        return home.serial_socket

    async def close(self) -> None:
        await self._background.close()

    async def _start(
        self,
        home: Home,
        guest: GuestSpec,
        taps: tuple[str, ...],
        *,
        receives: TaskId | None = None,
        paused: bool = False,
    ) -> None:
        self._ensure_trimmed()
        self._agents.forget(home.instance)
        started, record = await self._launcher.launch(
            home, guest, taps, receives=receives, paused=paused
        )
        self._background.start(_attend(started, record), name=f"guest {record.name}")
        log.info("%s %s here", record.name, "waits for its memory" if receives else "runs")

    async def _release(self, home: Home) -> None:
        record = home.record()
        if record is None or not record.held or not home.runs:
            return
        if await self._state(home) is not GuestState.PAUSED:  # such as what has left meanwhile
            return
        async with monitor(home.qmp_socket, record.name) as session:
            await session.ask("cont")
        home.write(replace(record, held=False))
        log.info("%s, which was started paused, runs", record.name)

    async def _go_on(self, home: Home) -> None:
        if not home.stands_still:
            return
        match await self._state(home):
            case GuestState.UNKNOWN:
                raise NodeFailure(f"{_name(home)} does not answer, and stands still when it does.")
            case GuestState.RUNNING | GuestState.PAUSED:
                async with monitor(home.qmp_socket, _name(home)) as session:
                    await session.ask("cont")
            case GuestState.INCOMING | GuestState.MIGRATED | GuestState.STOPPED | None:
                pass  # it must not, or cannot
        home.go_on()

    async def _write_again(self, home: Home) -> None:
        """Have a guest go on whose last write found no room; it waits again if there is none."""
        async with monitor(home.qmp_socket, _name(home)) as session:
            if lacks_space(await session.ask("query-status")):
                await session.ask("cont")

    async def _clear(self, home: Home) -> None:
        """Kill what runs and forget the guest; the caller has its turn."""
        await self._arrivals.end(home.instance)
        self._agents.forget(home.instance)
        await clear(home)

    async def _kept(self, home: Home, name: str) -> Reception | None:
        """Return where a shell is reached; None for one that is good for nothing any more."""
        async with monitor(home.qmp_socket, name) as session:
            match (await migration.progress_of(session)).state:
                case Transfer.NONE:
                    return self._arrivals.open(home, name)
                case Transfer.ACTIVE | Transfer.COMPLETED:
                    return Reception(port=0, secret="")
                case Transfer.FAILED | Transfer.CANCELLED:
                    return None

    async def _state(self, home: Home) -> GuestState | None:
        """Return a guest's state; None for one that was never started, or is forgotten."""
        seen = await look(home, self._pulses)
        return seen and seen.state

    def _agent_of(self, home: Home) -> Besides | None:
        """Return how a guest's agent is told to power it off, if it may have one."""
        record = home.record()
        if record is None or not record.has_agent:
            return None
        return lambda: self._agents.power_off(home, record.name)

    async def _in_state(self, home: Home, verb: str, *allowed: GuestState) -> Record:
        record = home.record()
        state = await self._state(home)
        if record is None or state not in allowed:
            name = record.name if record else "The instance"
            raise Conflict(
                f"{name} cannot be {verb}: it is {state or 'not'} on this node.",
                instance=home.instance,
                state=state,
            )
        return record

    async def _as_it_runs(self, home: Home, guest: GuestSpec, what: str) -> KvmParameters | None:
        """Return the parameters with which a guest runs; None if it does not run here.

        Raises:
            Conflict: its memory comes or has left, or it does not answer.
        """
        match await self._state(home):
            case GuestState.RUNNING | GuestState.PAUSED:
                record = home.record()
                return running_parameters(record, guest) if record else parameters_of(guest)
            case GuestState.INCOMING | GuestState.MIGRATED | GuestState.UNKNOWN as state:
                raise Conflict(
                    f"The {what} of {guest.name} cannot be changed here: {_WHY[state]}.",
                    instance=guest.name,
                    state=state,
                )
            case GuestState.STOPPED | None:
                return None

    def _home(self, instance: InstanceId) -> Home:
        return Home(self._instances, instance)

    def _ensure_trimmed(self) -> None:
        if self._trimmer is None:
            self._trimmer = self._background.start(self._trim_logs(), name="trim logs")

    async def _trim_logs(self) -> None:
        while True:
            for home in homes(self._instances):
                home.trim_logs()
            await asyncio.sleep(TRIM_EVERY_S)


def _name(home: Home) -> str:
    record = home.record()
    return record.name if record else "the instance"


async def _attend(started: Process, record: Record) -> None:
    """Clear away a child of ours when it ends, whenever that is."""
    with started:
        await started.ended()
    log.info("the QEMU of %s has ended", record.name)
