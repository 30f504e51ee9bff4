"""Guests that only pretend, from their start to their end."""

import asyncio
from dataclasses import dataclass

from common.errors import Conflict
from common.names import InstanceId
from common.noderpc.instances import GuestSpec, GuestState
from noded.hypervisor.fake_devices import check_taps, placed
from noded.hypervisor.fake_guest import Guest
from noded.hypervisor.fake_guests import FakeGuests
from noded.hypervisor.fake_world import now

START_S = 0.1
SHUTDOWN_S = 1.0  # from the power button to the end

MAY_RUN = (GuestState.RUNNING, GuestState.PAUSED, GuestState.UNKNOWN)


@dataclass(slots=True)
class FakeLives(FakeGuests):
    """Of one machine; see ``Hypervisor``."""

    async def ensure_running(
        self, guest: GuestSpec, taps: tuple[str, ...], *, paused: bool = False
    ) -> None:
        check_taps(guest, taps)
        await asyncio.sleep(START_S)
        match await self._look(guest.id):
            case GuestState.RUNNING | GuestState.PAUSED if self._guests[guest.id].off_at is None:
                if not paused:
                    await self.release(guest.id)
                await self.go_on(guest.id)
                self._write_again(self._guests[guest.id])
            case GuestState.INCOMING | GuestState.MIGRATED | GuestState.UNKNOWN as state:
                raise Conflict(
                    f"{guest.name} cannot be started here: it is {state}.",
                    instance=guest.name,
                    state=state,
                )
            case _:
                self._open_disks(guest)
                begins = GuestState.PAUSED if paused else GuestState.RUNNING
                self._guests[guest.id] = Guest(placed(guest), begins, now(), is_held=paused)

    async def release(self, instance: InstanceId) -> None:
        self.world.settle()
        guest = self._guests.get(instance)
        if guest is not None and guest.is_held:
            guest.check_answers()
            guest.is_held = False
            if guest.state is GuestState.PAUSED:
                guest.state, guest.since = GuestState.RUNNING, now()

    async def ensure_gone(self, instance: InstanceId) -> None:
        self.world.settle()
        if instance in self._guests:
            self._end(self._guests[instance])
            del self._guests[instance]

    async def ensure_no_shell(self, instance: InstanceId) -> None:
        state = await self._look(instance)
        if state in MAY_RUN:
            raise Conflict(
                f"What is here of the instance is {state}, so it is no mere remnant.",
                instance=instance,
                state=state,
            )
        if state is not None:
            self._guests[instance].check_whole()
        await self.ensure_gone(instance)

    async def shut_down(self, instance: InstanceId, wait_s: float) -> None:
        if await self._look(instance) in (GuestState.RUNNING, GuestState.UNKNOWN):
            guest = self._guests[instance]
            guest.off_at = min(guest.off_at or now() + SHUTDOWN_S, now() + SHUTDOWN_S)
            await asyncio.sleep(min(wait_s, SHUTDOWN_S if guest.hung_at is None else wait_s))
        await self.ensure_gone(instance)

    async def reset(self, instance: InstanceId) -> None:
        guest = await self._running(instance, "reset")
        guest.counted, guest.since, guest.is_frozen = 0, now(), False

    async def stand_still(self, instance: InstanceId) -> None:
        match await self._look(instance):
            case GuestState.RUNNING:
                guest = self._guests[instance]
                guest.counted, guest.was_told_to_stand = guest.number(now()), True
                guest.state = GuestState.PAUSED
            case GuestState.INCOMING | GuestState.MIGRATED | GuestState.UNKNOWN as state:
                raise Conflict(f"The instance cannot stand still here: it is {state}.")
            case _:
                pass

    async def go_on(self, instance: InstanceId) -> None:
        self.world.settle()
        guest = self._guests.get(instance)
        if guest is not None and guest.was_told_to_stand:
            guest.check_answers()
            guest.was_told_to_stand = False
            if guest.state is GuestState.PAUSED:
                guest.state, guest.since = GuestState.RUNNING, now()

    async def freeze(self, instance: InstanceId) -> int:
        guest = await self._running(instance, "frozen")
        if not guest.has_line:
            raise Conflict(f"{guest.spec.name} cannot be frozen: it has no line to an agent.")
        guest.check_has_agent()
        guest.is_frozen = True
        return max(1, len(guest.spec.disks))

    async def thaw(self, instance: InstanceId) -> None:
        self.world.settle()
        guest = self._guests.get(instance)
        if guest is not None and guest.is_frozen:
            guest.is_to_thaw = True
            guest.check_has_agent()
            guest.thaw_if_asked()

    def _open_disks(self, guest: GuestSpec) -> None:
        for disk in guest.disks:
            self.open_disk(disk)

    def _write_again(self, guest: Guest) -> None:
        if guest.lacks_space:
            guest.state, guest.since, guest.lacks_space = GuestState.RUNNING, now(), False
