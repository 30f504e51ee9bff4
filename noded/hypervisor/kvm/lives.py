"""From the start of a guest to its end."""

import asyncio
import logging

from msgspec.structs import replace

from common.errors import Conflict
from common.names import InstanceId, TaskId
from common.noderpc.instances import GuestSpec, GuestState, Rest
from noded.hypervisor.kvm.arrivals import Arrivals
from noded.hypervisor.kvm.ending import Besides, clear, let_end, power_off
from noded.hypervisor.kvm.guests import WHY, Guests, half_here, name_of
from noded.hypervisor.kvm.home import Home, homes
from noded.hypervisor.kvm.launch import Launcher
from noded.hypervisor.kvm.looks import Seen, look
from noded.hypervisor.kvm.monitor import monitor
from noded.hypervisor.kvm.parse import lacks_space
from noded.hypervisor.kvm.standstill import Standstill
from noded.system.process import Process

TRIM_EVERY_S = 10.0

log = logging.getLogger(__name__)


class Lives:
    """Of the guests of one node; see ``Hypervisor``."""

    def __init__(
        self, guests: Guests, launcher: Launcher, standstill: Standstill, arrivals: Arrivals
    ) -> None:
        self._guests = guests
        self._launcher = launcher
        self._standstill = standstill
        self._arrivals = arrivals
        self._trimmer: asyncio.Task[None] | None = None

    async def ensure_running(
        self, guest: GuestSpec, taps: tuple[str, ...], *, paused: bool
    ) -> None:
        home = self._guests.home(guest.id)
        async with self._guests.turns.of(guest.id):
            match await self._guests.state(home):
                case GuestState.RUNNING | GuestState.PAUSED:
                    if home.is_button_pressed:
                        await let_end(home)
                        await self.start(home, guest, taps, paused=paused)
                    else:
                        if not paused:
                            await self._release(home)
                        await self._standstill.go_on_now(home)
                        await _write_again(home)
                case GuestState.STOPPED | None:
                    await self.clear(home)  # without its QEMU, a TPM of it can be left
                    await self.start(home, guest, taps, paused=paused)
                case GuestState.INCOMING | GuestState.MIGRATED | GuestState.UNKNOWN as state:
                    raise Conflict(
                        f"{guest.name} cannot be started here: {WHY[state]}.",
                        instance=guest.name,
                        state=state,
                    )

    async def release(self, instance: InstanceId) -> None:
        async with self._guests.turns.of(instance):
            await self._release(self._guests.home(instance))

    async def ensure_gone(self, instance: InstanceId) -> None:
        async with self._guests.turns.of(instance):
            await self.clear(self._guests.home(instance))

    async def ensure_no_shell(self, instance: InstanceId) -> None:
        home = self._guests.home(instance)
        async with self._guests.turns.of(instance):
            match await look(home, self._guests.pulses):
                case Seen(rest=Rest.COMES | Rest.CUT, state=GuestState.MIGRATED):
                    raise half_here(home)
                case Seen(
                    state=GuestState.RUNNING | GuestState.PAUSED | GuestState.UNKNOWN as state
                ):
                    raise Conflict(
                        f"What is here of {name_of(home)} is {state}, so it is no mere remnant.",
                        instance=instance,
                        state=state,
                    )
                case _:
                    await self.clear(home)

    async def shut_down(self, instance: InstanceId, wait_s: float) -> None:
        home = self._guests.home(instance)
        # What does not run cannot hear the button; what is silent just now may.
        if await self._guests.state(home) in (GuestState.RUNNING, GuestState.UNKNOWN):
            await power_off(home, wait_s, self._agent_of(home))
        await self.ensure_gone(instance)

    async def reset(self, instance: InstanceId) -> None:
        home = self._guests.home(instance)
        record = await self._guests.in_state(home, "reset", GuestState.RUNNING)
        async with monitor(home.qmp_socket, record.name) as session:
            await session.ask("system_reset")
        home.thaw()  # it boots, and its agent knows of nothing

    async def start(
        self,
        home: Home,
        guest: GuestSpec,
        taps: tuple[str, ...],
        *,
        receives: TaskId | None = None,
        paused: bool = False,
    ) -> None:
        """Start a guest of which nothing is here, or wait for it; the caller has its turn."""
        self.ensure_trimmed()
        self._guests.agents.forget(home.instance)
        started = await self._launcher.launch(home, guest, taps, receives=receives, paused=paused)
        name = started.record.name
        for what, process in {"QEMU": started.qemu, "TPM": started.tpm}.items():
            if process:
                attending = _attend(process, f"the {what} of {name}")
                self._guests.background.start(attending, name=f"guest {name}, {what}")
        log.info("%s %s here", name, "waits for its memory" if receives else "runs")

    async def clear(self, home: Home) -> None:
        """Kill what runs and forget the guest; the caller has its turn."""
        await self._arrivals.end(home.instance)
        self._guests.agents.forget(home.instance)
        await clear(home)

    def ensure_trimmed(self) -> None:
        """Have the logs of all guests kept short, as long as this noded lives."""
        if self._trimmer is None:
            self._trimmer = self._guests.background.start(self._trim_logs(), name="trim logs")

    async def _release(self, home: Home) -> None:
        record = home.record()
        if record is None or not record.held or not home.runs:
            return
        if await self._guests.state(home) is not GuestState.PAUSED:  # such as what has left
            return
        async with monitor(home.qmp_socket, record.name) as session:
            await session.ask("cont")
        home.write(replace(record, held=False))
        log.info("%s, which was started paused, runs", record.name)

    def _agent_of(self, home: Home) -> Besides | None:
        """Return how a guest's agent is told to power it off, if it may have one."""
        record = home.record()
        if record is None or not record.has_agent:
            return None
        return lambda: self._guests.agents.power_off(home, record.name)

    async def _trim_logs(self) -> None:
        while True:
            for home in homes(self._guests.directory):
                home.trim_logs()
            await asyncio.sleep(TRIM_EVERY_S)


async def _write_again(home: Home) -> None:
    """Have a guest go on whose last write found no room; it waits again if there is none."""
    async with monitor(home.qmp_socket, name_of(home)) as session:
        if lacks_space(await session.ask("query-status")):
            await session.ask("cont")


async def _attend(started: Process, what: str) -> None:
    """Clear away a child of ours when it ends, whenever that is."""
    with started:
        await started.ended()
    log.info("%s has ended", what)
