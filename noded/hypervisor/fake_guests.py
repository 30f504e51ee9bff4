"""A machine whose guests only pretend: what they do, and what befalls them, by nobody's order.

What takes time is not done by a task but follows from the clock whenever somebody looks, so guests
run and move on while no noded is there, as real ones do.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from common.errors import Conflict
from common.names import DiskId, InstanceId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestState
from noded.hypervisor.fake_guest import Guest, Phase
from noded.hypervisor.fake_moves import ANSWER_S, Moves
from noded.hypervisor.fake_world import FakeWorld, now


@dataclass(slots=True)
class FakeGuests:
    """The guests of one machine, reached by others at ``address``."""

    world: FakeWorld
    address: str
    open_disk: Callable[[DiskSpec], object] = lambda _: None  # refuses what is not attached
    lacks: str = ""  # what guests need that is not on this machine
    _guests: dict[InstanceId, Guest] = field(default_factory=dict)
    _moves: Moves = field(init=False)

    def __post_init__(self) -> None:
        self._moves = Moves(self.world, self.address)
        self.world.add(self.settle)

    def uses(self, disk: DiskId) -> bool:
        """Tell whether a process of a guest, or of the shell of one, has a disk open."""
        self.world.settle()
        return any(
            guest.has_process and any(each.id == disk for each in guest.spec.disks)
            for guest in self._guests.values()
        )

    def seen(self, instance: InstanceId) -> dict[int, int]:
        """Return the disks that a guest has: slots, and sizes in MiB."""
        self.world.settle()
        spec = self._guests[instance].spec
        return {spec.slots[disk.id]: disk.size for disk in spec.disks}

    def seen_nics(self, instance: InstanceId) -> dict[int, str]:
        """Return the nics that a guest has: slots, and MAC addresses."""
        self.world.settle()
        spec = self._guests[instance].spec
        return {spec.nic_slots[nic.id]: nic.mac for nic in spec.nics}

    def fill(self, instance: InstanceId) -> None:
        """Have what a guest writes find no room, until it tries again."""
        guest = self._guests[instance]
        guest.counted, guest.since = guest.number(now()), now()
        guest.state, guest.lacks_space = GuestState.PAUSED, True

    def deafen(self, instance: InstanceId, *, deaf: bool = True) -> None:
        """Have a guest ignore what it is asked for, by its agent above all."""
        self._guests[instance].is_deaf = deaf

    def is_frozen(self, instance: InstanceId) -> bool:
        """Tell whether a guest writes nothing because it was told so."""
        self.world.settle()
        return self._guests[instance].is_frozen

    def number(self, instance: InstanceId) -> int:
        """Return how far a guest has counted."""
        self.world.settle()
        return self._guests[instance].number(now())

    def has(self, instance: InstanceId) -> bool:
        """Tell whether there is anything of a guest."""
        return instance in self._guests

    def lives(self, instance: InstanceId) -> bool:
        """Tell whether the guest runs here or can go on to by itself, whatever anybody knows."""
        self.world.settle()
        guest = self._guests.get(instance)
        return guest is not None and guest.state in (GuestState.RUNNING, GuestState.PAUSED)

    def phase(self, instance: InstanceId) -> Phase | None:
        """Return how far the move of a guest away from here has come."""
        self.world.settle()
        guest = self._guests.get(instance)
        transfer = guest.transfer if guest else None
        return transfer.phase if transfer and not transfer.error else None

    def crash(self, instance: InstanceId) -> None:
        """End a guest as if its process had died."""
        self.world.settle()
        self._end(self._guests[instance])

    def turn_off(self, instance: InstanceId) -> None:
        """End a guest as if its user had turned it off."""
        self.crash(instance)
        guest = self._guests[instance]
        guest.was_turned_off = bool(guest.spec.parameters.get("user_shutdown"))

    def hang(self, instance: InstanceId) -> None:
        """Stop a guest's process: it does nothing and says nothing any more."""
        self.world.settle()
        guest = self._guests[instance]
        if guest.hung_at is None:
            guest.counted, guest.hung_at = guest.number(now()), now()

    def touch_rest(self, instance: InstanceId) -> None:
        """Have a device of a guest touch what it lacks: it hangs until another line brings that."""
        self.hang(instance)
        self._guests[instance].waits_for_rest = True

    def wake(self, instance: InstanceId) -> None:
        """Have a guest that hung go on as if nothing had been."""
        self.world.settle()
        guest = self._guests[instance]
        if guest.hung_at is not None:
            if transfer := guest.moving:  # no step of it is due that would have been amid that
                transfer.since += now() - guest.hung_at
            guest.wake()
            guest.since = now()

    def power_off(self) -> None:
        """Lose all guests, as a machine does that loses power."""
        self.world.settle()
        for guest in self._guests.values():
            self._end(guest)
        self._guests.clear()

    def settle(self) -> None:
        """Bring this machine up to now; ``FakeWorld.settle`` does it for all."""
        for guest in self._guests.values():
            if guest.is_off(now()):
                self._end(guest)
            guest.thaw_if_asked()
            self._moves.settle(guest)

    # What all that guests are told begins with

    async def _look(self, instance: InstanceId) -> GuestState | None:
        """Return what can be found out; waits once for a guest that hangs."""
        self.world.settle()
        guest = self._guests.get(instance)
        if guest is None:
            return None
        if guest.hung_at is None:
            guest.has_told_left = guest.state is GuestState.MIGRATED
            return guest.state
        if guest.missed_at is None:
            await asyncio.sleep(ANSWER_S)
            if not guest.hangs:
                return await self._look(instance)
            guest.missed_at = now() - ANSWER_S
        written_down = guest.state is GuestState.INCOMING or guest.has_told_left
        return guest.state if written_down else GuestState.UNKNOWN

    async def _running(self, instance: InstanceId, verb: str) -> Guest:
        state = await self._look(instance)
        if state is not GuestState.RUNNING:
            raise Conflict(
                f"The instance cannot be {verb}: it is {state or 'not'} on this node.",
                instance=instance,
                state=state,
            )
        return self._guests[instance]

    def _end(self, guest: Guest) -> None:
        guest.counted = guest.number(now())
        guest.break_off("the guest has ended", now())
        if guest.state is not GuestState.MIGRATED:
            guest.state = GuestState.STOPPED
        guest.off_at, guest.hung_at, guest.has_process = None, None, False
        if guest.reception:
            self.world.listeners.pop((self.address, guest.reception.port), None)
