"""Guests that come from another node, and go there: what may be done in which state."""

import asyncio
import logging
from contextlib import suppress

from common.errors import Conflict, NodeFailure
from common.names import InstanceId, TaskId
from common.noderpc.instances import GuestSpec, GuestState, Reception, Rest
from noded.hypervisor.interface import Tell
from noded.hypervisor.kvm import coming, credentials, migration, post_copy
from noded.hypervisor.kvm.arrivals import Arrivals
from noded.hypervisor.kvm.greeting import connect
from noded.hypervisor.kvm.guests import Guests, half_here, name_of
from noded.hypervisor.kvm.home import Home, homes
from noded.hypervisor.kvm.lifelines import Lifelines
from noded.hypervisor.kvm.lives import Lives
from noded.hypervisor.kvm.looks import Seen, look
from noded.hypervisor.kvm.monitor import monitor
from noded.hypervisor.kvm.progress import Transfer
from noded.hypervisor.kvm.standstill import Standstill
from noded.hypervisor.kvm.ways import Line, Manner, progress_of

log = logging.getLogger(__name__)

HOLD_AGAIN_S = 1.0


class Moves:
    """Of the guests of one node; see ``Hypervisor``."""

    def __init__(
        self, guests: Guests, lives: Lives, standstill: Standstill, arrivals: Arrivals
    ) -> None:
        self._guests = guests
        self._lives = lives
        self._standstill = standstill
        self._arrivals = arrivals
        self._lifelines = Lifelines(guests.background)

    async def prepare(self) -> None:
        """Become able to mend the lines of guests that lack memory, as noded was before."""
        for home in homes(self._guests.directory):
            if home.lacks_memory:
                self._guests.background.start(
                    self._hold(home), name=f"looking for the lifeline of {name_of(home)}"
                )

    async def ensure_receiving(
        self, guest: GuestSpec, taps: tuple[str, ...], move: TaskId
    ) -> Reception:
        home = self._guests.home(guest.id)
        async with self._guests.turns.of(guest.id):
            match await look(home, self._guests.pulses):
                case Seen(state=GuestState.RUNNING | GuestState.PAUSED | GuestState.UNKNOWN as it):
                    raise Conflict(f"{guest.name} is here already: {it}.", instance=guest.name)
                case Seen(state=GuestState.MIGRATED, rest=Rest.COMES | Rest.CUT):
                    raise half_here(home)
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
            await self._lives.clear(home)
            await self._lives.start(home, guest, taps, receives=move)
            try:
                await coming.prepare(home, guest)
                return self._arrivals.open(home, guest.name, coming.receive)
            except NodeFailure:
                await self._lives.clear(home)
                raise

    async def migrate(
        self,
        instance: InstanceId,
        line: Line,
        manner: Manner,
        *,
        move: TaskId,
        tell: Tell,
    ) -> None:
        home = self._guests.home(instance)
        may_leave = GuestState.RUNNING, GuestState.MIGRATED
        record = await self._guests.in_state(home, "moved", *may_leave)
        if home.lacks_memory:
            raise Conflict(
                f"{record.name} cannot be moved: not all of its memory has come here yet.",
                instance=instance,
            )
        if not home.has_left:
            self._standstill.leave(instance)
            await self._guests.agents.thaw(home, record.name)  # else nobody would thaw it there
            await migration.send(home, record, move, line=line, manner=manner, tell=tell)
            log.info("%s has left for %s", record.name, line.peer)
        if home.left_by != move:
            raise Conflict(f"{record.name} has left this node by another move.", instance=instance)

    async def ensure_resumed(self, instance: InstanceId, move: TaskId) -> None:
        home = self._guests.home(instance)
        async with self._guests.turns.of(instance):
            record = home.record()
            state = await self._guests.state(home)
            if record is None or record.receives != move or state is GuestState.MIGRATED:
                raise Conflict(
                    f"{name_of(home)} cannot run here: it has not come by this move.",
                    instance=instance,
                )
            if state is not GuestState.RUNNING:
                await coming.resume(home, record.name, self._lifelines)
                log.info("%s has come, and runs here", record.name)

    async def ensure_not_migrating(self, instance: InstanceId) -> None:
        home = self._guests.home(instance)
        record = home.record()
        state = await self._guests.state(home)
        if record is None or state in (GuestState.STOPPED, GuestState.INCOMING, None):
            raise Conflict("The instance does not run on this node.", instance=instance)
        if state is GuestState.MIGRATED:
            raise Conflict(
                f"{record.name} has left this node for good.", instance=instance, state=state
            )
        await migration.cancel(home, record.name)

    async def await_rest(self, instance: InstanceId, move: TaskId) -> Reception:
        home = self._guests.home(instance)
        async with self._guests.turns.of(instance):
            record = home.record()
            await self._guests.state(home)  # which finds out if all has come
            if record is None or record.receives != move or not home.lacks_memory:
                raise Conflict(
                    f"{name_of(home)} lacks no memory here that would come by this move.",
                    instance=instance,
                )
            lifeline = await self._lifelines.hold(home, record.name)
            await lifeline.cut()
            take_rest = self._lifelines.take_rest
            return self._arrivals.open(home, record.name, take_rest, credentials.lent(home))

    async def send_rest(
        self, instance: InstanceId, host: str, reception: Reception, move: TaskId
    ) -> None:
        home = self._guests.home(instance)
        async with self._guests.turns.of(instance):
            record = await self._guests.in_state(home, "sent on", GuestState.MIGRATED)
            if home.left_by != move:
                raise Conflict(
                    f"{record.name} has left this node by another move.", instance=instance
                )
            await post_copy.ensure_cut(home, record.name)
            line = await connect(host, reception.port, reception.secret)
            await post_copy.send_rest(home, record.name, reception.secret, line)
            log.info("the rest of %s goes on to %s", record.name, host)

    async def _hold(self, home: Home) -> None:
        """Hold a guest's lifeline as soon as its QEMU answers, while it lacks memory."""
        while home.lacks_memory and home.runs:
            async with self._guests.turns.of(home.instance):
                with suppress(NodeFailure):  # it may wait for what it lacks, and have that soon
                    await self._lifelines.hold(home, name_of(home))
                    return
            await asyncio.sleep(HOLD_AGAIN_S)

    async def _kept(self, home: Home, name: str) -> Reception | None:
        """Return where a shell is reached; None for one that is good for nothing any more."""
        async with monitor(home.qmp_socket, name) as session:
            match (await progress_of(session)).state:
                case Transfer.NONE:
                    return self._arrivals.open(home, name, coming.receive)
                case Transfer.ACTIVE | Transfer.HANDED_OVER | Transfer.CUT | Transfer.COMPLETED:
                    return Reception(port=0, secret="")
                case Transfer.FAILED | Transfer.CANCELLED:
                    return None
