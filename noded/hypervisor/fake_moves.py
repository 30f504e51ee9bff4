"""Moves of guests that only pretend: each step is taken when it is due, whenever somebody looks."""

import asyncio
from collections.abc import Mapping
from typing import Any

from common.errors import Conflict, NodeFailure
from common.model.hypervisors import HYPERVISORS
from common.names import TaskId
from common.noderpc.instances import GuestState, Reception
from noded.hypervisor.fake_guest import SWITCH_S, Guest, Phase, RestOfMemory, Transfer
from noded.hypervisor.fake_world import FakeWorld, now
from noded.hypervisor.interface import Tell

LOOK_EVERY_S = 0.2
TICK_S = 1e-6
MEMORY_PER_S = 32  # MiB; of a transfer, unless the hypervisor's parameters say otherwise
ANSWER_S = 3.0  # of patience with a guest that has answered so far
REST_SHARE = 0.5  # of its memory, that a guest changes meanwhile
STALLED_AFTER_S = 60.0  # of patience with a transfer in which nothing moves
LEAVING_S = 60.0  # of patience with a guest that hangs as it leaves


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
        parameters: Mapping[str, Any],
        live: bool,
    ) -> Transfer:
        """Begin a transfer as ``parameters`` say, unless it is under way.

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
        memory_s = guest.spec.memory / parameters.get("migration_bandwidth", MEMORY_PER_S)
        guest.transfer = Transfer(move, host, reception, memory_s, now(), now())
        kind = HYPERVISORS[guest.spec.hypervisor]
        guest.transfer.is_post_copy = live and kind.is_moved_by_post_copy(parameters)
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
                if now() - guest.hung_at > LEAVING_S:
                    guest.check_answers()
                await asyncio.sleep(LOOK_EVERY_S)
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
        if rest := guest.rest:
            if not (rest.source.has_process and rest.target.has_process):
                rest.cut(now())
            elif rest.source is guest and not rest.is_cut:
                self._settle_rest(rest)

    def mend(self, rest: RestOfMemory, host: str, reception: Reception) -> None:
        """Give the rest of a guest's memory another line.

        Raises:
            NodeFailure: nobody waits for it there.
        """
        place = self._world.machine_at(host), reception.port
        known = self._world.listeners.get(place) is rest.target
        if not known or not self._world.reaches(self._address, host):
            raise NodeFailure(f"{host} port {reception.port} does not take the memory.")
        del self._world.listeners[place]
        rest.target.reception, rest.host = None, host
        rest.mend(now())

    def _settle_rest(self, rest: RestOfMemory) -> None:
        """Have the rest of a guest's memory arrive when it is due, and its line break."""
        if not self._world.reaches(self._address, rest.host):
            rest.cut(now())
        elif rest.source.hangs or rest.target.hangs:
            rest.since = now()
        elif now() >= rest.since + rest.left_s:
            rest.end()

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
            if transfer.is_post_copy:  # its source has let go of it with the last it sent
                left_s = transfer.memory_s * REST_SHARE
                rest = RestOfMemory(guest, target, transfer.host, left_s, transfer.since)
                guest.rest = target.rest = rest
                transfer.since -= SWITCH_S
                _advance(guest, transfer)
        case Phase.DONE:
            guest.state, guest.move = GuestState.MIGRATED, transfer.move
            guest.stands_still = False
            guest.off_at, target.off_at = None, guest.off_at
        case Phase.CONNECTING | Phase.MEMORY:
            pass
