"""The guests of one node: where they are kept, whose turn it is, and in which state each is.

Starting, standing still and moving all begin here: what may be done to a guest follows from its
state.
"""

from pathlib import Path

from common.errors import Conflict
from common.model.kvm import KvmParameters
from common.names import InstanceId
from common.noderpc.instances import GuestSpec, GuestState
from common.tasks import Background
from noded.hypervisor.kvm.agents import Agents
from noded.hypervisor.kvm.guest_parameters import parameters_of, running_parameters
from noded.hypervisor.kvm.home import PASSABLE, Home, Record
from noded.hypervisor.kvm.looks import look
from noded.hypervisor.kvm.pulse import Pulses
from noded.system.turns import Turns

WHY = {
    GuestState.INCOMING: "it waits for its memory from another node, or to be told to run",
    GuestState.MIGRATED: "its memory has left this node",
    GuestState.UNKNOWN: "its process is there and does not answer",
}


class Guests:
    """Those below ``directory``, each in one of its own."""

    def __init__(self, directory: Path, background: Background) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(PASSABLE)
        self.directory = directory
        self.background = background
        self.turns = Turns()  # to start and end a guest
        self.pulses = Pulses(background)
        self.agents = Agents(background)

    def home(self, instance: InstanceId) -> Home:
        return Home(self.directory, instance)

    async def state(self, home: Home) -> GuestState | None:
        """Return a guest's state; None for one that was never started, or is forgotten."""
        seen = await look(home, self.pulses)
        return seen and seen.state

    async def in_state(self, home: Home, verb: str, *allowed: GuestState) -> Record:
        """Return the record of a guest that is in one of these states.

        Raises:
            Conflict: it is in another, so it cannot be ``verb``.
        """
        record = home.record()
        state = await self.state(home)
        if record is None or state not in allowed:
            name = record.name if record else "The instance"
            raise Conflict(
                f"{name} cannot be {verb}: it is {state or 'not'} on this node.",
                instance=home.instance,
                state=state,
            )
        return record

    async def as_it_runs(self, home: Home, guest: GuestSpec, what: str) -> KvmParameters | None:
        """Return the parameters with which a guest runs; None if it does not run here.

        Raises:
            Conflict: its memory comes or has left, or it does not answer.
        """
        match await self.state(home):
            case GuestState.RUNNING | GuestState.PAUSED:
                record = home.record()
                return running_parameters(record, guest) if record else parameters_of(guest)
            case GuestState.INCOMING | GuestState.MIGRATED | GuestState.UNKNOWN as state:
                raise Conflict(
                    f"The {what} of {guest.name} cannot be changed here: {WHY[state]}.",
                    instance=guest.name,
                    state=state,
                )
            case GuestState.STOPPED | None:
                return None


def name_of(home: Home) -> str:
    """Return what a guest is called, for messages."""
    record = home.record()
    return record.name if record else "the instance"


def half_here(home: Home) -> Conflict:
    """Say that what is here of a guest is needed where it runs."""
    return Conflict(
        f"A part of the memory of {name_of(home)} is here still, without which it cannot go on "
        "where it runs.",
        instance=home.instance,
    )
