"""A guest that only pretends, and the steps in which it moves."""

from dataclasses import dataclass
from enum import IntEnum

from common.errors import Conflict, NodeFailure
from common.names import TaskId
from common.noderpc.guest_agent import Interface
from common.noderpc.instances import GuestSpec, GuestState, Reception, Rest

COUNTS_PER_S = 18  # how often a guest adds one to its number
CONNECT_S = 0.05
SWITCH_S = 0.05  # each of the two last steps of a move


class Phase(IntEnum):
    """How far a move has come."""

    CONNECTING = 0
    MEMORY = 1  # the guest runs on meanwhile
    SWITCHING = 2  # the source stands still; the last of its memory is on its way
    LOADED = 3  # the target has everything, which the source does not know yet
    DONE = 4  # the source knows, and never runs again


@dataclass(slots=True)
class Transfer:
    """``phase`` was reached at ``since`` by the source's word or the target's."""

    move: TaskId
    host: str
    reception: Reception
    memory_s: float
    begun: float
    since: float
    phase: Phase = Phase.CONNECTING
    is_post_copy: bool = False  # the guest goes on before all of its memory does
    target: "Guest | None" = None
    error: str = ""

    @property
    def next_at(self) -> float:
        took = {Phase.CONNECTING: CONNECT_S, Phase.MEMORY: self.memory_s}
        return self.since + took.get(self.phase, SWITCH_S)

    @property
    def is_active(self) -> bool:
        return not self.error and self.phase is not Phase.DONE

    def share(self, now: float) -> float:
        match self.phase:
            case Phase.CONNECTING:
                return 0.0
            case Phase.MEMORY:
                return min((now - self.since) / self.memory_s, 1.0)
            case _:
                return 1.0


@dataclass(slots=True)
class RestOfMemory:
    """What follows a guest that goes on elsewhere: ``left_s`` from ``since`` on, unless cut."""

    source: "Guest"
    target: "Guest"
    host: str  # the target's
    left_s: float
    since: float
    is_cut: bool = False

    def cut(self, now: float) -> None:
        """Break the line: the guest waits for what it lacks."""
        if not self.is_cut:
            self.left_s, self.is_cut = max(self.left_s - (now - self.since), 0.0), True
            self.target.stand_still(now)

    def mend(self, now: float) -> None:
        self.since, self.is_cut = now, False
        if self.target.waits_for_rest:
            self.target.wake()
        self.target.go_on(now)

    def end(self) -> None:
        self.source.rest = self.target.rest = None


@dataclass(slots=True)
class Guest:
    """A guest, or the shell of one that is coming or gone."""

    spec: GuestSpec
    state: GuestState
    since: float  # when it began to count from ``counted``, in seconds of the loop's clock
    counted: int = 0
    off_at: float | None = None  # the power button was pressed
    transfer: Transfer | None = None
    move: TaskId = TaskId("")  # by which it comes, or has left
    reception: Reception | None = None
    arrived: bool = False
    stands_still: bool = False  # while the last of its memory is sent
    rest: RestOfMemory | None = None  # which it sends, or lacks
    was_told_to_stand: bool = False  # for a snapshot
    hung_at: float | None = None
    waits_for_rest: bool = False  # it hangs because a device of it has touched what it lacks
    missed_at: float | None = None  # when somebody found that it does not answer
    has_told_left: bool = False  # which is written down then, and true whether it answers or not
    has_process: bool = True
    lacks_space: bool = False  # it stands still because of that
    lost_tpm: bool = False
    is_deaf: bool = False  # lets go of no device that it is asked for, and has no agent
    was_turned_off: bool = False  # by whoever uses it
    is_held: bool = False  # it was started paused
    is_frozen: bool = False
    is_to_thaw: bool = False  # its agent is asked again and again

    def is_off(self, now: float) -> bool:
        """Tell whether a press of its power button has had time to work."""
        runs = self.state is GuestState.RUNNING and self.hung_at is None
        return runs and self.off_at is not None and now >= self.off_at

    @property
    def hangs(self) -> bool:
        return self.hung_at is not None

    def number(self, now: float) -> int:
        if self.state is not GuestState.RUNNING or self.stands_still or self.hung_at is not None:
            return self.counted
        return self.counted + int((now - self.since) * COUNTS_PER_S)

    def wake(self) -> None:
        self.hung_at, self.missed_at, self.waits_for_rest = None, None, False

    def stand_still(self, now: float) -> None:
        self.counted, self.stands_still = self.number(now), True

    def go_on(self, now: float) -> None:
        self.stands_still, self.since = False, now

    def break_off(self, error: str, now: float) -> None:
        """End a move that goes on: the guest runs here, and a target that has not all dies."""
        if transfer := self.moving:
            transfer.error = error
            if self.stands_still:
                self.go_on(now)
            target = transfer.target
            if target and not target.arrived and target.hung_at is None:
                target.has_process, target.state = False, GuestState.STOPPED

    def check_answers(self) -> None:
        """Refuse what only a process that answers could do."""
        if self.hung_at is not None:
            raise NodeFailure(
                f"The process of {self.spec.name} does not answer.", instance=self.spec.name
            )

    @property
    def has_line(self) -> bool:
        """Whether there is a line to an agent in it."""
        return bool(self.spec.parameters.get("use_guest_agent"))

    def check_has_agent(self) -> None:
        """Refuse what only an agent in it could do."""
        self.check_answers()
        if self.is_deaf:
            raise NodeFailure(f"The agent in {self.spec.name} does not answer.")

    def thaw_if_asked(self) -> None:
        if self.is_to_thaw and not self.is_deaf and not self.hangs:
            self.is_frozen = self.is_to_thaw = False

    @property
    def interfaces(self) -> tuple[Interface, ...] | None:
        """What its agent tells: as many addresses as it has nics."""
        if not self.has_line or self.is_deaf or self.state is not GuestState.RUNNING:
            return None
        return tuple(
            Interface(name=f"eth{index}", mac=nic.mac, addresses=(f"192.0.2.{index + 1}",))
            for index, nic in enumerate(self.spec.nics)
        )

    @property
    def told_rest(self) -> Rest:
        """What is told of the rest of its memory; one that hangs sends nothing."""
        if self.rest is None or not self.has_process:
            return Rest.NONE
        return Rest.CUT if self.rest.is_cut or self.hangs else Rest.COMES

    def check_whole(self) -> None:
        """Refuse what ends a part of a guest's memory that it needs elsewhere."""
        if self.state is GuestState.MIGRATED and self.told_rest:
            raise Conflict(f"A part of the memory of {self.spec.name} is here still.")

    @property
    def moving(self) -> Transfer | None:
        return self.transfer if self.transfer and self.transfer.is_active else None
