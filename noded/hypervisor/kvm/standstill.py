"""Guests that stand still, or write nothing, for a moment: and go on whoever dies meanwhile."""

from contextlib import suppress

from common.errors import Conflict, NodeFailure
from common.names import InstanceId
from common.noderpc.instances import GuestState
from noded.hypervisor.kvm.going_on import GoingOn
from noded.hypervisor.kvm.guests import WHY, Guests, name_of
from noded.hypervisor.kvm.home import Home, homes
from noded.hypervisor.kvm.monitor import monitor


class Standstill:
    """Of the guests of one node; see ``Hypervisor``."""

    def __init__(self, guests: Guests) -> None:
        self._guests = guests
        self._agents = guests.agents
        self._going_on = GoingOn(guests.background)

    async def end_what_was_left(self) -> None:
        """Have all guests go on that a former noded has had stand still."""
        for home in homes(self._guests.directory):
            if home.stands_still:
                with suppress(NodeFailure):  # it is told again until it answers or has ended
                    await self.go_on(home.instance)
            if home.is_frozen:
                self._agents.thaw_at_last(home, name_of(home))

    async def stand_still(self, instance: InstanceId) -> None:
        home = self._guests.home(instance)
        async with self._guests.turns.of(instance):
            self.leave(instance)
            match await self._guests.state(home):
                case GuestState.RUNNING:
                    home.stand_still()
                    async with monitor(home.qmp_socket, name_of(home)) as session:
                        await session.ask("stop")  # which waits for, and flushes, all writes
                case GuestState.INCOMING | GuestState.MIGRATED | GuestState.UNKNOWN as state:
                    raise Conflict(
                        f"{name_of(home)} cannot stand still here: {WHY[state]}.", state=state
                    )
                case GuestState.PAUSED | GuestState.STOPPED | None:
                    pass

    async def go_on(self, instance: InstanceId) -> None:
        home = self._guests.home(instance)

        async def try_it() -> None:
            async with self._guests.turns.of(instance):
                await self.go_on_now(home)

        try:
            await try_it()
        except NodeFailure:
            self._going_on.at_last(home, try_it)
            raise

    async def go_on_now(self, home: Home) -> None:
        """Have a guest go on; the caller has its turn.

        Raises:
            NodeFailure: it does not answer, and stands still when it does.
        """
        if not home.stands_still:
            return
        match await self._guests.state(home):
            case GuestState.UNKNOWN:
                raise NodeFailure(
                    f"{name_of(home)} does not answer, and stands still when it does."
                )
            case GuestState.RUNNING | GuestState.PAUSED:
                async with monitor(home.qmp_socket, name_of(home)) as session:
                    await session.ask("cont")
            case GuestState.INCOMING | GuestState.MIGRATED | GuestState.STOPPED | None:
                pass  # it must not, or cannot
        home.go_on()

    def leave(self, instance: InstanceId) -> None:
        """Leave a guest alone that is to stand still anew, or to move."""
        self._going_on.leave(instance)

    async def freeze(self, instance: InstanceId) -> int:
        home = self._guests.home(instance)
        async with self._guests.turns.of(instance):
            record = await self._guests.in_state(home, "frozen", GuestState.RUNNING)
            if not record.has_agent:
                raise Conflict(
                    f"{record.name} cannot be frozen: it was started without a line to an agent "
                    "in it (use_guest_agent).",
                    instance=instance,
                )
            return await self._agents.freeze(home, record.name)

    async def thaw(self, instance: InstanceId) -> None:
        home = self._guests.home(instance)
        try:
            await self._agents.thaw(home, name_of(home))
        except NodeFailure:
            self._agents.thaw_at_last(home, name_of(home))
            raise
