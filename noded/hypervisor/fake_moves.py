"""Moves of guests that only pretend: each step is taken when it is due, whenever somebody looks."""

import asyncio

from common.errors import Conflict, NodeFailure
from common.names import TaskId
from common.noderpc.instances import GuestState, Reception
from noded.hypervisor.fake_guest import Guest, Phase, Transfer
from noded.hypervisor.fake_world import FakeWorld, now
from noded.hypervisor.interface import Tell

LOOK_EVERY_S = 0.2
TICK_S = 1e-6
MEMORY_PER_S = 32  # MiB; of a transfer, unless the hypervisor's parameters say otherwise
ANSWER_S = 3.0  # of patience with a guest that has answered so far
STALLED_AFTER_S = 60.0  # of patience with a transfer in which nothing moves


class Moves:
    """Brings guests away from the machine at ``address``."""

    def __init__(self, world: FakeWorld, address: str) -> None:
        self._world, self._address = world, address

    def begin(
        self,
        guest: Guest,
        host: str,
        reception: Reception,
        move: TaskId,
        *,
        speed: int,
        live: bool,
    ) -> Transfer:
        """Begin a transfer at ``speed`` MiB a second, unless it is under way.

        Raises:
            Conflict: another one is.
            NodeFailure: it was, and has ended.
        """
        if moving := guest.moving:
            if moving.move != move:
                raise Conflict(f"{guest.spec.name} is being moved by another job already.")
            return moving
        if not reception.port:
            raise NodeFailure(f"{guest.spec.name} is not being moved any more.")
        memory_s = guest.spec.memory / speed
        guest.transfer = Transfer(move, host, reception, memory_s, now(), now())
        if not live:
            guest.stand_still(now())
        return guest.transfer

    async def follow(self, guest: Guest, transfer: Transfer, tell: Tell) -> None:
        """Return when a transfer has ended; break one off that stands still."""
        while True:
            self._world.settle()
            if not transfer.is_active or guest.state is not GuestState.RUNNING:
                return
            if guest.hung_at is not None:
                await asyncio.sleep(ANSWER_S)
                guest.check_answers()
                continue
            if now() - transfer.next_at > STALLED_AFTER_S:
                guest.break_off("it stood still", now())
                return
            share = transfer.share(now())
            left = round(guest.spec.memory * (1 - share))
            tell(f"{left} of {guest.spec.memory} MiB left", share)
            # A little longer, since a clock that is large swallows what is very small.
            due_s = transfer.next_at - now()
            await asyncio.sleep(min(LOOK_EVERY_S, due_s + TICK_S) if due_s > 0 else LOOK_EVERY_S)

    def settle(self, guest: Guest) -> None:
        """Take the steps of a guest's move that are due and possible."""
        while (transfer := guest.moving) and self._may_go_on(guest, transfer):
            _advance(guest, transfer)

    def _may_go_on(self, guest: Guest, transfer: Transfer) -> bool:
        """Tell whether the next step can be taken now; break off a move that cannot go on."""
        if now() < transfer.next_at or guest.hung_at is not None:
            return False
        if not self._world.reaches(self._address, transfer.host):
            guest.break_off("the network between the nodes is broken", now())
            return False
        if transfer.phase is Phase.CONNECTING:
            transfer.target = self._meet(transfer)
        if transfer.target is None or not transfer.target.has_process:
            where = f"{transfer.host} port {transfer.reception.port}"
            guest.break_off(f"nobody answers on {where}", now())
            return False
        if guest.spec.slots.items() - transfer.target.spec.slots.items():
            guest.break_off("the target's machine lacks a disk", now())
            return False
        if guest.spec.nic_slots != transfer.target.spec.nic_slots:
            guest.break_off("the target's machine has other nics", now())
            return False
        return transfer.target.hung_at is None

    def _meet(self, transfer: Transfer) -> Guest | None:
        """Return the shell that a source has connected to, if it knows the secret."""
        place = self._world.machine_at(transfer.host), transfer.reception.port
        shell = self._world.listeners.get(place)
        if shell is None or shell.reception != transfer.reception or shell.hung_at is not None:
            return None
        del self._world.listeners[place]
        shell.reception = None
        return shell


def _advance(guest: Guest, transfer: Transfer) -> None:
    target = transfer.target
    assert target
    transfer.since = transfer.next_at
    transfer.phase = Phase(transfer.phase + 1)
    match transfer.phase:
        case Phase.SWITCHING:
            guest.stand_still(transfer.since)
        case Phase.LOADED:
            target.counted, target.arrived = guest.counted, True
        case Phase.DONE:
            guest.state, guest.move = GuestState.MIGRATED, transfer.move
            guest.stands_still = False
            guest.off_at, target.off_at = None, guest.off_at
        case Phase.CONNECTING | Phase.MEMORY:
            pass
