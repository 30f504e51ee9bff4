"""What a node can be asked to do with guests."""

from abc import abstractmethod
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from common.messages import Order, Report
from common.model.uid_pool import UidPool
from common.names import (
    DiskId,
    Few,
    InstanceId,
    InstanceName,
    Line,
    MiB,
    NicId,
    Port,
    Seconds,
    Sentence,
    TaskId,
    Word,
)
from common.noderpc.disks import DiskSpec
from common.noderpc.guest_agent import Interfaces
from common.noderpc.network import NicSpec, ToldOfNic
from common.rpc.declare import NodeService, rpc

Slots = Annotated[dict[DiskId, Few], Meta(max_length=256)]
NicSlots = Annotated[dict[NicId, Few], Meta(max_length=256)]


class GuestSpec(Order, omit_defaults=True):
    """All that is needed to run a guest; parameters are filled.

    A node that is older does without what it does not know, unless that is asked for.
    """

    id: InstanceId
    name: InstanceName
    hypervisor: str
    memory: MiB
    vcpus: int
    disks: tuple[DiskSpec, ...] = ()  # as the guest gets them, in this order
    nics: tuple[NicSpec, ...] = ()
    parameters: dict[str, Any] = {}  # of the hypervisor, see common.model.parameters
    users: UidPool = ()  # the cluster's, one of whom shall run it; where that is wanted
    port: int = 0  # TCP, where its display is offered; 0: at the first that is free
    # Where disks and nics are in the machine of the guest that runs and comes from another node;
    # others get free ones, in their order.
    slots: Slots = {}
    nic_slots: NicSlots = {}
    wanted_memory: MiB = MiB(0)  # likewise: what it is to use of its memory; 0: all
    tags: Line = ""  # of the instance, for scripts: in order, with spaces between them
    told_of_nics: Annotated[dict[NicId, ToldOfNic], Meta(max_length=256)] = {}  # for scripts


class GuestState(StrEnum):
    """What is known for certain."""

    RUNNING = "running"
    PAUSED = "paused"
    INCOMING = "incoming"  # waits for its memory, or has it; does not run before it is told to
    MIGRATED = "migrated"  # its memory has left; what is here is a shell that never runs again
    STOPPED = "stopped"  # ended by itself; its directory is still there
    UNKNOWN = "unknown"  # its process is there and does not answer: it may run, or go on to

    @property
    def is_alive(self) -> bool:
        """Tell whether the guest is the instance for certain, rather than a shell of it."""
        return self in (GuestState.RUNNING, GuestState.PAUSED)

    @property
    def may_run(self) -> bool:
        """Tell whether the guest must not be started anywhere else."""
        return self.is_alive or self is GuestState.UNKNOWN


class Rest(StrEnum):
    """How far the rest of a guest's memory is that has moved before all of it had.

    Told by both nodes. Half of the memory is on either: whatever ends one of them ends the guest.
    """

    NONE = ""  # there is none, or all is where the guest is
    COMES = "comes"
    CUT = "cut"  # the line is broken: it waits for another


Compared = Annotated[dict[Word, Word], Meta(max_length=64)]
Pins = Annotated[dict[Word, bool | Few | Word], Meta(max_length=64)]


class GuestReport(Report):
    id: InstanceId
    name: InstanceName
    state: GuestState
    memory: MiB
    vcpus: Few
    nics: tuple[NicId, ...] = ()
    disks: Slots | None = None  # with their slots in its machine; None: it is not known
    nic_slots: NicSlots | None = None  # likewise
    wanted_memory: MiB = MiB(0)  # of its memory, what it was asked to use; 0: all
    used_memory: MiB = MiB(0)  # what it uses by now; 0: all
    cpu_seconds: Seconds = 0.0
    resident: MiB = MiB(0)  # what it has touched of its memory so far
    pinned: Pins = {}  # parameters that it runs with, and can be received with only
    compared: Compared = {}  # fingerprints of others that it was made with
    display: Word = ""  # where its VNC display is, on the node itself: "127.0.0.1:5900", or nowhere
    display_wants_password: bool = False
    move: Word = ""  # INCOMING, MIGRATED: the task by which its memory comes, or has left
    arrived: bool = False  # INCOMING: all of its memory is here
    rest: Rest = Rest.NONE  # of its memory: MIGRATED: of which a part is here still
    silent_s: Seconds = 0.0  # for how long it has not answered; 0 when it did just now
    lacks_space: bool = False  # PAUSED: what it wrote found no room; it tries again when told to
    user_down: bool = False  # STOPPED: whoever uses it has turned it off
    held: bool = False  # PAUSED: it was started so
    lost_tpm: bool = False  # RUNNING, PAUSED: its TPM has ended before it
    interfaces: Interfaces | None = None  # RUNNING: as its agent told lately; None: it did not


class Reception(Report):
    """Where a guest's memory is waited for, and what proves that it is meant to come."""

    port: Port  # TCP; 0 when a transfer has begun already
    secret: Word  # hexadecimal; good for one transfer


class StreamConsole(Report, tag_field="kind", tag="stream"):
    """A serial console, which the node shares out; see ``noded``'s ``/console`` stream."""


class NoConsole(Report, tag_field="kind", tag="none"):
    """``message`` says why there is none."""

    message: Sentence


ConsoleInfo = StreamConsole | NoConsole


class Instances(NodeService, prefix="instances"):
    """Guests of one node. A guest is its process; starting and stopping state wishes."""

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def ensure_running(self, *, guest: GuestSpec, paused: bool = False) -> None:
        """Start a guest and its taps; one that runs already is left alone.

        One that stands still because a write found no room writes again, and one that was started
        paused runs.

        Args:
            guest: what to run.
            paused: have a guest that is started now stand still, until this is asked for
                without, or somebody looks at its console.

        Raises:
            Conflict: a shell of it is here, or it does not say whether it runs.
            NodeFailure: no hypervisor, no kernel file, a disk that is not attached, or it died
                at once; with the end of what it said.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def ensure_gone(self, *, instance: InstanceId) -> None:
        """Kill the guest if it is there, and remove its taps and its directory."""

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def begin_shutdown(self, *, instance: InstanceId, wait_s: float, task: TaskId) -> None:
        """Begin the task that asks a guest to power off, and kills it after ``wait_s``.

        Done when the guest is gone as after ``ensure_gone``; also when it was not there.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def reset(self, *, instance: InstanceId) -> None:
        """Restart a running guest as with its reset button; the process stays.

        Raises:
            Conflict: it is not running here.
        """

    @rpc(timeout=90, safe_to_repeat=True)
    @abstractmethod
    async def ensure_disks(self, *, guest: GuestSpec) -> None:
        """Have a running guest know its disks, and no others, in their present size.

        What it lacks is put in, and has to be attached; what it has besides is taken out, which
        it is asked for and has to agree to. Of a guest that does not run here nothing is done.

        Raises:
            Conflict: its memory comes or has left, or its disks cannot be changed.
            NodeFailure: it does not let go of a disk in time, and may do so later; or a disk is
                not attached, or cannot be opened.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def set_memory(self, *, instance: InstanceId, memory: MiB) -> None:
        """Ask a running guest to use this much of its memory, and give the rest back.

        It does so when it gets to it, and not at all without a driver for that.

        Raises:
            Conflict: it is not running here, or cannot be asked.
        """

    @rpc(timeout=90, safe_to_repeat=True)
    @abstractmethod
    async def ensure_nics(self, *, guest: GuestSpec) -> None:
        """Have a running guest know its nics, and no others, each with its tap.

        What it lacks is plugged in, what it has besides is taken out, which it is asked for and
        has to agree to; one that has another MAC address now is both. Of a guest that does not
        run here nothing is done.

        Raises:
            Conflict: its memory comes or has left, or its nics cannot be changed.
            NodeFailure: it does not let go of a nic in time, and may do so later; or a tap cannot
                be made.
        """

    @rpc(timeout=15, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def guests(self) -> tuple[GuestReport, ...]:
        """Return every guest on this node, by name."""

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def check_startable(self, *, guest: GuestSpec) -> None:
        """Check what can be checked without starting: files, hypervisor, links.

        Disks are not looked at: they may not exist yet.

        Raises:
            NodeFailure: what is missing.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def ensure_receiving(self, *, guest: GuestSpec, move: TaskId) -> Reception:
        """Start the shell that will receive a guest, and listen for its memory.

        A shell that waits for this move already is kept. Only who knows the secret can connect.
        The guest does not run here before ``ensure_resumed``.

        Args:
            guest: what comes.
            move: the task by which it comes.

        Raises:
            Conflict: the guest runs here, or may.
            NodeFailure: as ``ensure_running``.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def begin_migration(
        self,
        *,
        instance: InstanceId,
        host: str,
        peer: str,
        port: int,
        secret: str,
        parameters: dict[str, Any],
        live: bool,
        task: TaskId,
    ) -> None:
        """Begin the task that sends a running guest's memory to ``host``.

        Args:
            instance: which.
            host: IP address of the target.
            peer: name of the target, for messages.
            port: as told by ``ensure_receiving``.
            secret: likewise.
            parameters: of the hypervisor, filled; those that are about moves hold for this one.
            live: whether the guest runs meanwhile; else it stands still until it has come.
            task: the new task's id, and the move's. Done when all memory is on the target and
                it is certain that the guest never runs here again; failed or cancelled, it runs
                here as if nothing had been. By post-copy it is done when the guest can run
                there and never runs here again; the rest of its memory follows (``Rest``).
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def await_rest(self, *, instance: InstanceId, move: TaskId) -> Reception:
        """Listen for the rest of a guest's memory, of which the line was cut; cut it if need be.

        Raises:
            Conflict: it has all of its memory, or has come by another move.
            NodeFailure: it does not answer.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def send_rest(
        self, *, instance: InstanceId, host: str, port: int, secret: str, move: TaskId
    ) -> None:
        """Go on sending the rest of a guest's memory, to where ``await_rest`` listens.

        Raises:
            Conflict: it has not left by this move, or there is no rest of it here.
            NodeFailure: nobody listens there, or it does not answer.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def ensure_resumed(self, *, instance: InstanceId, move: TaskId) -> None:
        """Have a guest run whose memory came by ``move``; one that was told so is left alone.

        Only for who knows from the source that it never runs there again.

        Raises:
            Conflict: nothing came by this move, or not all.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def ensure_not_migrating(self, *, instance: InstanceId) -> None:
        """Cancel a transfer that still goes on, and have the guest run here.

        Raises:
            Conflict: its memory has left for good, or it is not here.
        """

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def ensure_no_shell(self, *, instance: InstanceId) -> None:
        """Clear away what certainly does not run: a shell of a move, or what ended by itself.

        Raises:
            Conflict: the guest runs here, or may.
        """

    @rpc(timeout=15, safe_to_repeat=True)
    @abstractmethod
    async def console(self, *, instance: InstanceId) -> ConsoleInfo:
        """Tell how the guest's console can be reached.

        Raises:
            NotFound: the guest is not on this node.
        """
