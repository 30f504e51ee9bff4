"""Guests that only pretend, for simulations and for trying out a cluster.

A ``FakeHypervisor`` is the machine: it stays when the noded in front of it is replaced. What
takes time is not done by a task but follows from the clock whenever somebody looks, so guests
run and move on while no noded is there, as real ones do.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from common.errors import Conflict, NodeFailure, NotFound
from common.names import InstanceId
from common.noderpc.instances import GuestReport, GuestSpec, GuestState
from noded.hypervisor.interface import Console, Tell

COUNTS_PER_S = 18  # how often a guest adds one to its number
START_S = 0.1
SHUTDOWN_S = 1.0  # from the power button to the end
LOOK_EVERY_S = 0.2
TICK_S = 1e-6
MEMORY_PER_S = 32  # MiB; of a transfer, unless the guest's parameters say otherwise
FIRST_PORT = 10_000


class FakeWorld:
    """What the fake hypervisors of one cluster share: the wires between them."""

    def __init__(self) -> None:
        self.listeners: dict[tuple[str, int], _Guest] = {}
        self.reaches: Callable[[str, str], bool] = lambda _source, _target: True
        self._next_port = FIRST_PORT
        self._machines: list[FakeHypervisor] = []

    def add(self, machine: "FakeHypervisor") -> None:
        self._machines.append(machine)

    def new_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def settle(self) -> None:
        """Bring all transfers up to now."""
        for machine in self._machines:
            machine.settle()


@dataclass(slots=True)
class _Transfer:
    host: str
    port: int
    begun: float
    ends: float
    error: str = ""


@dataclass(slots=True)
class _Guest:
    """A guest, or the shell of one that is coming or gone."""

    spec: GuestSpec
    state: GuestState
    since: float  # when it began to count from ``counted``, in seconds of the loop's clock
    counted: int = 0
    port: int = 0
    off_at: float | None = None  # the power button was pressed
    transfer: _Transfer | None = None

    def number(self, now: float) -> int:
        if self.state is not GuestState.RUNNING:
            return self.counted
        return self.counted + int((now - self.since) * COUNTS_PER_S)

    @property
    def is_moving(self) -> bool:
        return self.transfer is not None and not self.transfer.error


@dataclass(slots=True)
class FakeHypervisor:
    """The guests of one machine, reached by others at ``address``; see ``Hypervisor``."""

    world: FakeWorld
    address: str
    _guests: dict[InstanceId, _Guest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world.add(self)

    async def version(self) -> str:
        return "1.0"

    async def accelerator(self) -> str:
        return "tcg"

    async def check_startable(self, guest: GuestSpec) -> None:
        """Find nothing to object to: a fake guest needs no files."""

    async def ensure_running(self, guest: GuestSpec, taps: tuple[str, ...]) -> None:
        _check_taps(guest, taps)
        await asyncio.sleep(START_S)
        match self._state(guest.id):
            case GuestState.RUNNING | GuestState.PAUSED if self._guests[guest.id].off_at is None:
                return
            case GuestState.INCOMING | GuestState.MIGRATED as state:
                raise Conflict(
                    f"{guest.name} cannot be started here: it is {state}.", instance=guest.name
                )
            case _:
                self._guests[guest.id] = _Guest(guest, GuestState.RUNNING, _now())

    async def ensure_gone(self, instance: InstanceId) -> None:
        self.world.settle()
        gone = self._guests.pop(instance, None)
        if gone:
            self.world.listeners.pop((self.address, gone.port), None)

    async def shut_down(self, instance: InstanceId, wait_s: float) -> None:
        if self._state(instance) is GuestState.RUNNING:
            guest = self._guests[instance]
            guest.off_at = min(guest.off_at or _now() + SHUTDOWN_S, _now() + SHUTDOWN_S)
            await asyncio.sleep(min(wait_s, SHUTDOWN_S))
        await self.ensure_gone(instance)

    async def reset(self, instance: InstanceId) -> None:
        guest = self._running(instance, "reset")
        guest.counted, guest.since = 0, _now()

    async def guests(self) -> tuple[GuestReport, ...]:
        self.world.settle()
        reports = [self._report(guest) for guest in self._guests.values()]
        return tuple(sorted(reports, key=lambda report: report.name))

    async def ensure_incoming(self, guest: GuestSpec, taps: tuple[str, ...]) -> int:
        _check_taps(guest, taps)
        await asyncio.sleep(START_S)
        match self._state(guest.id):
            case GuestState.RUNNING | GuestState.PAUSED:
                raise Conflict(f"{guest.name} runs here already.", instance=guest.name)
            case GuestState.INCOMING:
                return self._guests[guest.id].port
            case GuestState.STOPPED | GuestState.MIGRATED | None:
                port = self.world.new_port()
                shell = _Guest(guest, GuestState.INCOMING, _now(), port=port)
                self._guests[guest.id] = self.world.listeners[self.address, port] = shell
                return port

    async def migrate(
        self,
        instance: InstanceId,
        *,
        host: str,
        peer: str,
        port: int,
        tell: Tell,
    ) -> None:
        if self._state(instance) is GuestState.MIGRATED:
            return
        guest = self._running(instance, "migrated")
        transfer = guest.transfer if guest.is_moving else None
        if transfer is None:
            speed = guest.spec.parameters.get("migration_bandwidth", MEMORY_PER_S)
            ends = _now() + guest.spec.memory / speed
            transfer = guest.transfer = _Transfer(host, port, _now(), ends)
        try:
            while self._state(instance) is GuestState.RUNNING and not transfer.error:
                share = (_now() - transfer.begun) / (transfer.ends - transfer.begun)
                left = round(guest.spec.memory * (1 - share))
                tell(f"{left} of {guest.spec.memory} MiB left", share)
                # A little longer, since a clock that is large swallows what is very small.
                await asyncio.sleep(min(LOOK_EVERY_S, transfer.ends - _now() + TICK_S))
        except asyncio.CancelledError:
            transfer.error = "it was cancelled"
            raise
        if guest.state is not GuestState.MIGRATED:
            reason = transfer.error or "the guest has ended"
            raise NodeFailure(
                f"Moving {guest.spec.name} to {peer} failed: {reason}.",
                instance=guest.spec.name,
                peer=peer,
            )

    async def ensure_not_migrating(self, instance: InstanceId) -> None:
        state = self._state(instance)
        if state in (GuestState.STOPPED, GuestState.INCOMING, None):
            raise Conflict("The instance does not run on this node.", instance=instance)
        guest = self._guests[instance]
        if state is GuestState.MIGRATED:
            raise Conflict(
                f"The memory of {guest.spec.name} has left this node; it runs on the target.",
                instance=guest.spec.name,
            )
        if guest.transfer:
            guest.transfer.error = guest.transfer.error or "it was cancelled"
        guest.state = GuestState.RUNNING

    async def console(self, instance: InstanceId) -> Console:
        if self._state(instance) is None:
            raise NotFound("The instance is not on this node.", instance=instance)
        return Console(socket=None, reason="A fake instance has no console.")

    async def close(self) -> None:
        """Do nothing: the machine goes on."""

    # What only tests and simulations do

    def number(self, instance: InstanceId) -> int:
        """Return how far a guest has counted."""
        self.world.settle()
        return self._guests[instance].number(_now())

    def crash(self, instance: InstanceId) -> None:
        """End a guest as if its process had died."""
        self.world.settle()
        self._end(self._guests[instance])

    def power_off(self) -> None:
        """Lose all guests, as a machine does that loses power."""
        self.world.settle()
        for guest in self._guests.values():
            self._end(guest)
        self._guests.clear()

    def settle(self) -> None:
        """Bring this machine up to now; ``FakeWorld.settle`` does it for all."""
        for guest in self._guests.values():
            if guest.off_at is not None and _now() >= guest.off_at:
                self._end(guest)
            if guest.transfer and guest.is_moving and guest.state is GuestState.RUNNING:
                self._advance(guest, guest.transfer)

    def _advance(self, guest: _Guest, transfer: _Transfer) -> None:
        shell = self.world.listeners.get((transfer.host, transfer.port))
        if shell is None or not self.world.reaches(self.address, transfer.host):
            transfer.error = f"nobody answers on {transfer.host} port {transfer.port}"
        elif _now() >= transfer.ends:
            shell.counted, shell.since = guest.number(_now()), _now()
            guest.counted = shell.counted
            guest.state, shell.state = GuestState.MIGRATED, GuestState.RUNNING
            guest.off_at, shell.off_at = None, guest.off_at
            del self.world.listeners[transfer.host, transfer.port]

    def _end(self, guest: _Guest) -> None:
        guest.counted = guest.number(_now())
        guest.state, guest.off_at = GuestState.STOPPED, None
        self.world.listeners.pop((self.address, guest.port), None)

    def _state(self, instance: InstanceId) -> GuestState | None:
        self.world.settle()
        guest = self._guests.get(instance)
        return guest.state if guest else None

    def _running(self, instance: InstanceId, verb: str) -> _Guest:
        state = self._state(instance)
        if state is not GuestState.RUNNING:
            raise Conflict(
                f"The instance cannot be {verb}: it is {state or 'not'} on this node.",
                instance=instance,
                state=state,
            )
        return self._guests[instance]

    def _report(self, guest: _Guest) -> GuestReport:
        return GuestReport(
            id=guest.spec.id,
            name=guest.spec.name,
            state=guest.state,
            memory=guest.spec.memory,
            vcpus=guest.spec.vcpus,
            nics=tuple(nic.id for nic in guest.spec.nics),
            cpu_seconds=guest.number(_now()) / COUNTS_PER_S,
            accelerator="tcg",
        )


def _check_taps(guest: GuestSpec, taps: tuple[str, ...]) -> None:
    if len(taps) != len(guest.nics):
        raise NodeFailure(
            f"{guest.name} has {len(guest.nics)} nics and got {len(taps)} taps.",
            instance=guest.name,
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
