"""Guests that only pretend, for simulations and for trying out a cluster.

A ``FakeHypervisor`` is the machine: it stays when the noded in front of it is replaced. It plays
the hypervisor that a guest is for, by what that declares of its parameters.

A move takes the steps that QEMU takes (``Phase``), and any of them can be the last: a guest can
hang, die, lose its power or its wires between two of them.
"""

import asyncio
import functools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure, NotFound
from common.model.hypervisors import HYPERVISORS, fingerprint
from common.names import InstanceId, MiB, TaskId
from common.noderpc.instances import GuestReport, GuestSpec, GuestState, NoConsole, Reception
from noded.hypervisor.fake_devices import check_taps, placed, settle_disks, settle_nics
from noded.hypervisor.fake_guest import COUNTS_PER_S, Guest, RestOfMemory
from noded.hypervisor.fake_lives import MAY_RUN, START_S, FakeLives
from noded.hypervisor.fake_world import now
from noded.hypervisor.interface import Console, Tell

_CHOSEN = {"accelerator": "tcg"}  # by the machine, where that is a parameter


@dataclass(slots=True)
class FakeHypervisor(FakeLives):
    """The guests of one machine, reached by others at ``address``; see ``Hypervisor``."""

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
        if self.lacks:
            raise NodeFailure(f"{guest.name} cannot be started here: {self.lacks}.")

    async def ensure_disks(self, guest: GuestSpec) -> None:
        if running := await self._changeable(guest, "disks"):
            await settle_disks(running, guest, self.open_disk)

    async def ensure_nics(self, guest: GuestSpec, taps: tuple[str, ...]) -> None:
        check_taps(guest, taps)
        if running := await self._changeable(guest, "nics"):
            await settle_nics(running, guest)

    async def set_memory(self, instance: InstanceId, memory: MiB) -> None:
        if await self._look(instance) is not GuestState.PAUSED:
            await self._running(instance, "given other memory")
        guest = self._guests[instance]
        guest.check_answers()
        guest.spec = replace(guest.spec, wanted_memory=memory)

    async def guests(self) -> tuple[GuestReport, ...]:
        reports = [await self._report(guest) for guest in tuple(self._guests.values())]
        return tuple(sorted(reports, key=lambda report: report.name))

    async def ensure_receiving(
        self, guest: GuestSpec, taps: tuple[str, ...], move: TaskId
    ) -> Reception:
        check_taps(guest, taps)
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
        if state is not None:
            self._guests[guest.id].check_whole()
        await self.ensure_gone(guest.id)
        self._open_disks(guest)
        port = self.world.new_port()
        reception = Reception(port=port, secret=f"{port:08x}")
        shell = Guest(placed(guest), GuestState.INCOMING, now(), move=move, reception=reception)
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
            if guest.told_rest:
                raise Conflict(f"Not all of the memory of {guest.spec.name} has come yet.")
            transfer = self._moves.begin(
                guest, host, reception, move, parameters=parameters, live=live
            )
            try:
                await self._moves.follow(guest, transfer, tell)
            except asyncio.CancelledError:
                self.world.settle()
                guest.break_off("it was cancelled", now())
                raise
            if guest.state is not GuestState.MIGRATED:
                reason = transfer.error or "the guest has ended"
                raise NodeFailure(
                    f"Moving {guest.spec.name} to {peer} failed: {reason}.",
                    instance=guest.spec.name,
                    peer=peer,
                )
            guest.has_told_left = True
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
        guest.state, guest.since = GuestState.RUNNING, now()

    async def await_rest(self, instance: InstanceId, move: TaskId) -> Reception:
        rest = await self._rest_of(instance, move)
        if rest.target is not (guest := self._guests[instance]):
            raise Conflict("The rest of its memory is here, and does not come.", instance=instance)
        rest.cut(now())
        if guest.reception is None:
            port = self.world.new_port()
            guest.reception = Reception(port=port, secret=f"{port:08x}")
            self.world.listeners[self.address, port] = guest
        return guest.reception

    async def send_rest(
        self, instance: InstanceId, *, host: str, reception: Reception, move: TaskId
    ) -> None:
        rest = await self._rest_of(instance, move)
        if rest.source is not self._guests[instance]:
            raise Conflict("The rest of its memory is not here.", instance=instance)
        rest.cut(now())
        self._moves.mend(rest, host, reception)

    async def _rest_of(self, instance: InstanceId, move: TaskId) -> RestOfMemory:
        await self._look(instance)
        guest = self._guests.get(instance)
        if guest is None or guest.move != move or guest.rest is None:
            raise Conflict("Nothing is missing of the instance here.", instance=instance)
        if not guest.waits_for_rest:  # that such a line can be given is heard all the same
            guest.check_answers()
        return guest.rest

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
        guest.break_off("it was cancelled", now())
        guest.state = GuestState.RUNNING

    async def console(self, instance: InstanceId) -> Console:
        if instance not in self._guests:
            raise NotFound("The instance is not on this node.", instance=instance)
        return NoConsole(message="A fake instance has no console.")

    async def close(self) -> None:
        """Do nothing: the machine goes on."""

    async def _changeable(self, guest: GuestSpec, what: str) -> Guest | None:
        """Return a guest whose devices can be changed; None if it does not run here."""
        match await self._look(guest.id):
            case GuestState.INCOMING | GuestState.MIGRATED as state:
                raise Conflict(f"The {what} of {guest.name} cannot be changed here: it is {state}.")
            case GuestState.STOPPED | None:
                return None
            case _:
                return self._guests[guest.id]

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
            cpu_seconds=guest.number(now()) / COUNTS_PER_S,
            pinned=_pinned(guest.spec),
            compared=_compared(guest.spec),
            move=guest.move,
            rest=guest.told_rest,
            arrived=guest.arrived and guest.hung_at is None and state is GuestState.INCOMING,
            silent_s=0.0 if guest.missed_at is None else now() - guest.missed_at,
            lacks_space=guest.lacks_space,
            user_down=guest.was_turned_off and state is GuestState.STOPPED,
            held=guest.is_held and state is GuestState.PAUSED,
            lost_tpm=guest.lost_tpm and state.is_alive,
            interfaces=guest.interfaces,
        )


def _pinned(guest: GuestSpec) -> dict[str, Any]:
    names = HYPERVISORS[guest.hypervisor].pinned & _CHOSEN.keys()
    return {name: _CHOSEN[name] for name in names}


def _compared(guest: GuestSpec) -> dict[str, str]:
    parameters = guest.parameters
    names = HYPERVISORS[guest.hypervisor].compared & parameters.keys()
    return {name: _fingerprint(parameters[name]) for name in names}


_fingerprint = functools.cache(fingerprint)  # guests are looked at again and again
