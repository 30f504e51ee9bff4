"""Guests that only pretend, for simulations and for trying out a cluster.

A ``FakeHypervisor`` is the machine: it stays when the noded in front of it is replaced. What
takes time is not done by a task but follows from the clock whenever somebody looks, so guests
run and move on while no noded is there, as real ones do.

A move takes the steps that QEMU takes (``Phase``), and any of them can be the last: a guest can
hang, die, lose its power or its wires between two of them.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure, NotFound
from common.names import DiskId, InstanceId, MiB, TaskId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestReport, GuestSpec, GuestState, NoConsole, Reception
from noded.hypervisor.fake_devices import placed, settle_disks, settle_nics
from noded.hypervisor.fake_guest import COUNTS_PER_S, Guest, Phase
from noded.hypervisor.fake_moves import ANSWER_S, MEMORY_PER_S, Moves
from noded.hypervisor.fake_world import FakeWorld
from noded.hypervisor.interface import Console, Tell

START_S = 0.1
SHUTDOWN_S = 1.0  # from the power button to the end

MAY_RUN = (GuestState.RUNNING, GuestState.PAUSED, GuestState.UNKNOWN)


@dataclass(slots=True)
class FakeHypervisor:
    """The guests of one machine, reached by others at ``address``; see ``Hypervisor``."""

    world: FakeWorld
    address: str
    open_disk: Callable[[DiskSpec], object] = lambda _: None  # refuses what is not attached
    _guests: dict[InstanceId, Guest] = field(default_factory=dict)
    _moves: Moves = field(init=False)

    def __post_init__(self) -> None:
        self._moves = Moves(self.world, self.address)
        self.world.add(self.settle)

    async def version(self) -> str:
        return "1.0"

    async def prepare(self) -> None:
        """Have guests go on; there is nothing to find out."""
        for guest in tuple(self._guests.values()):
            if guest.was_told_to_stand:
                await self.go_on(guest.spec.id)
            if guest.is_frozen:
                with suppress(NodeFailure):
                    await self.thaw(guest.spec.id)

    async def check_startable(self, guest: GuestSpec) -> None:
        """Find nothing to object to: a fake guest needs no files."""

    async def ensure_running(
        self, guest: GuestSpec, taps: tuple[str, ...], *, paused: bool = False
    ) -> None:
        _check_taps(guest, taps)
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
                self._guests[guest.id] = Guest(placed(guest), begins, _now(), is_held=paused)

    async def release(self, instance: InstanceId) -> None:
        self.world.settle()
        guest = self._guests.get(instance)
        if guest is not None and guest.is_held:
            guest.check_answers()
            guest.is_held = False
            if guest.state is GuestState.PAUSED:
                guest.state, guest.since = GuestState.RUNNING, _now()

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
        await self.ensure_gone(instance)

    async def shut_down(self, instance: InstanceId, wait_s: float) -> None:
        if await self._look(instance) in (GuestState.RUNNING, GuestState.UNKNOWN):
            guest = self._guests[instance]
            guest.off_at = min(guest.off_at or _now() + SHUTDOWN_S, _now() + SHUTDOWN_S)
            await asyncio.sleep(min(wait_s, SHUTDOWN_S if guest.hung_at is None else wait_s))
        await self.ensure_gone(instance)

    async def reset(self, instance: InstanceId) -> None:
        guest = await self._running(instance, "reset")
        guest.counted, guest.since, guest.is_frozen = 0, _now(), False

    async def ensure_disks(self, guest: GuestSpec) -> None:
        if running := await self._changeable(guest, "disks"):
            await settle_disks(running, guest, self.open_disk)

    async def ensure_nics(self, guest: GuestSpec, taps: tuple[str, ...]) -> None:
        _check_taps(guest, taps)
        if running := await self._changeable(guest, "nics"):
            await settle_nics(running, guest)

    async def set_memory(self, instance: InstanceId, memory: MiB) -> None:
        if await self._look(instance) is not GuestState.PAUSED:
            await self._running(instance, "given other memory")
        guest = self._guests[instance]
        guest.check_answers()
        guest.spec = replace(guest.spec, wanted_memory=memory)

    async def stand_still(self, instance: InstanceId) -> None:
        match await self._look(instance):
            case GuestState.RUNNING:
                guest = self._guests[instance]
                guest.counted, guest.was_told_to_stand = guest.number(_now()), True
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
                guest.state, guest.since = GuestState.RUNNING, _now()

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

    async def guests(self) -> tuple[GuestReport, ...]:
        reports = [await self._report(guest) for guest in tuple(self._guests.values())]
        return tuple(sorted(reports, key=lambda report: report.name))

    async def ensure_receiving(
        self, guest: GuestSpec, taps: tuple[str, ...], move: TaskId
    ) -> Reception:
        _check_taps(guest, taps)
        await asyncio.sleep(START_S)
        state = await self._look(guest.id)
        if state in MAY_RUN:
            raise Conflict(f"{guest.name} is here already: {state}.", instance=guest.name)
        if state is GuestState.INCOMING:
            shell = self._guests[guest.id]
            shell.check_answers()
            if shell.move == move:
                return shell.reception or Reception(port=0, secret="")
            if shell.arrived:
                raise Conflict(
                    f"{guest.name} has come here by another move, and waits to be told to run.",
                    instance=guest.name,
                )
        await self.ensure_gone(guest.id)
        self._open_disks(guest)
        port = self.world.new_port()
        reception = Reception(port=port, secret=f"{port:08x}")
        shell = Guest(placed(guest), GuestState.INCOMING, _now(), move=move, reception=reception)
        self._guests[guest.id] = self.world.listeners[self.address, reception.port] = shell
        return reception

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
        state = await self._look(instance)
        guest = self._guests.get(instance)
        if guest is None or state is not GuestState.MIGRATED:
            guest = await self._running(instance, "moved")
            await self.thaw(instance)
            speed = parameters.get("migration_bandwidth", MEMORY_PER_S)
            transfer = self._moves.begin(guest, host, reception, move, speed=speed, live=live)
            try:
                await self._moves.follow(guest, transfer, tell)
            except asyncio.CancelledError:
                self.world.settle()
                guest.break_off("it was cancelled", _now())
                raise
            if guest.state is not GuestState.MIGRATED:
                reason = transfer.error or "the guest has ended"
                raise NodeFailure(
                    f"Moving {guest.spec.name} to {peer} failed: {reason}.",
                    instance=guest.spec.name,
                    peer=peer,
                )
        if guest.move != move:
            raise Conflict(f"{guest.spec.name} has left by another move.", instance=instance)

    async def ensure_resumed(self, instance: InstanceId, move: TaskId) -> None:
        state = await self._look(instance)
        guest = self._guests.get(instance)
        if guest is None or guest.move != move or state is GuestState.MIGRATED:
            raise Conflict("The instance has not come here by this move.", instance=instance)
        if state is GuestState.RUNNING:
            return
        guest.check_answers()
        if not guest.arrived or not guest.has_process:
            raise Conflict(f"The memory of {guest.spec.name} is not here.", instance=instance)
        guest.state, guest.since = GuestState.RUNNING, _now()

    async def ensure_not_migrating(self, instance: InstanceId) -> None:
        state = await self._look(instance)
        if state in (GuestState.STOPPED, GuestState.INCOMING, None):
            raise Conflict("The instance does not run on this node.", instance=instance)
        guest = self._guests[instance]
        if state is GuestState.MIGRATED:
            raise Conflict(
                f"{guest.spec.name} has left this node for good.",
                instance=guest.spec.name,
                state=state,
            )
        guest.check_answers()
        guest.break_off("it was cancelled", _now())
        guest.state = GuestState.RUNNING

    async def console(self, instance: InstanceId) -> Console:
        if instance not in self._guests:
            raise NotFound("The instance is not on this node.", instance=instance)
        return NoConsole(message="A fake instance has no console.")

    async def close(self) -> None:
        """Do nothing: the machine goes on."""

    def _open_disks(self, guest: GuestSpec) -> None:
        for disk in guest.disks:
            self.open_disk(disk)

    # What only tests and simulations do

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
        guest.counted, guest.since = guest.number(_now()), _now()
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
        return self._guests[instance].number(_now())

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
            guest.counted, guest.hung_at = guest.number(_now()), _now()

    def wake(self, instance: InstanceId) -> None:
        """Have a guest that hung go on as if nothing had been."""
        self.world.settle()
        guest = self._guests[instance]
        if guest.hung_at is not None:
            if transfer := guest.moving:  # no step of it is due that would have been amid that
                transfer.since += _now() - guest.hung_at
            guest.hung_at = guest.missed_at = None
            guest.since = _now()

    def power_off(self) -> None:
        """Lose all guests, as a machine does that loses power."""
        self.world.settle()
        for guest in self._guests.values():
            self._end(guest)
        self._guests.clear()

    def settle(self) -> None:
        """Bring this machine up to now; ``FakeWorld.settle`` does it for all."""
        for guest in self._guests.values():
            if guest.is_off(_now()):
                self._end(guest)
            guest.thaw_if_asked()
            self._moves.settle(guest)

    def _write_again(self, guest: Guest) -> None:
        if guest.lacks_space:
            guest.state, guest.since, guest.lacks_space = GuestState.RUNNING, _now(), False

    def _end(self, guest: Guest) -> None:
        guest.counted = guest.number(_now())
        guest.break_off("the guest has ended", _now())
        if guest.state is not GuestState.MIGRATED:
            guest.state = GuestState.STOPPED
        guest.off_at, guest.hung_at, guest.has_process = None, None, False
        if guest.reception:
            self.world.listeners.pop((self.address, guest.reception.port), None)

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
            guest.missed_at = _now() - ANSWER_S
        written_down = guest.state is GuestState.INCOMING or guest.has_told_left
        return guest.state if written_down else GuestState.UNKNOWN

    async def _changeable(self, guest: GuestSpec, what: str) -> Guest | None:
        """Return a guest whose devices can be changed; None if it does not run here."""
        match await self._look(guest.id):
            case GuestState.INCOMING | GuestState.MIGRATED as state:
                raise Conflict(f"The {what} of {guest.name} cannot be changed here: it is {state}.")
            case GuestState.STOPPED | None:
                return None
            case _:
                return self._guests[guest.id]

    async def _running(self, instance: InstanceId, verb: str) -> Guest:
        state = await self._look(instance)
        if state is not GuestState.RUNNING:
            raise Conflict(
                f"The instance cannot be {verb}: it is {state or 'not'} on this node.",
                instance=instance,
                state=state,
            )
        return self._guests[instance]

    async def _report(self, guest: Guest) -> GuestReport:
        state = await self._look(guest.spec.id) or GuestState.STOPPED
        return GuestReport(
            id=guest.spec.id,
            name=guest.spec.name,
            state=state,
            memory=guest.spec.memory,
            vcpus=guest.spec.vcpus,
            nics=tuple(nic.id for nic in guest.spec.nics),
            disks=guest.spec.slots,
            nic_slots=guest.spec.nic_slots,
            wanted_memory=guest.spec.wanted_memory,
            used_memory=guest.spec.wanted_memory,
            cpu_seconds=guest.number(_now()) / COUNTS_PER_S,
            pinned={"accelerator": "tcg"},
            move=guest.move,
            arrived=guest.arrived and guest.hung_at is None and state is GuestState.INCOMING,
            silent_s=0.0 if guest.missed_at is None else _now() - guest.missed_at,
            lacks_space=guest.lacks_space,
            user_down=guest.was_turned_off and state is GuestState.STOPPED,
            held=guest.is_held and state is GuestState.PAUSED,
            interfaces=guest.interfaces,
        )


def _check_taps(guest: GuestSpec, taps: tuple[str, ...]) -> None:
    if len(taps) != len(guest.nics):
        raise NodeFailure(
            f"{guest.name} has {len(guest.nics)} nics and got {len(taps)} taps.",
            instance=guest.name,
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
