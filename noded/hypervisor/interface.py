"""What every hypervisor driver can do; ``kvm`` and ``fake`` pass the same contract suite."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from common.names import InstanceId, MiB, TaskId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestReport, GuestSpec, NoConsole, Reception

Tell = Callable[[str, float | None], None]
"""Takes news of long work: a sentence, and the share that is done, from 0 to 1, if known."""


Console = Path | NoConsole
"""The unix socket of a guest's serial console, or why there is none.

One reader at a time: bytes come out as the guest writes them, and go in as if typed.
"""

OpenDisk = Callable[[DiskSpec], int]
"""Opens a disk, and returns the descriptor; blocks."""


class Surroundings(NamedTuple):
    """What drivers find on their node."""

    instances: Path  # for what they keep of guests; empty after a reboot
    identity: Path  # where the node's key is, which no guest gets
    address: str  # IP address at which guests that move here are received
    rules: Path  # where root of this node says what guests may be given
    ifup: Path  # root's script that sets up taps, if there is one
    open_disk: OpenDisk  # where their disks come from


class Hypervisor(Protocol):
    """Guests of one kind on one node; they survive whoever holds this object.

    Nothing is remembered between calls that could not be found again, so a new object over
    the same node goes on where another left off. Calls for one guest take turns.
    """

    async def version(self) -> str:
        """Return the hypervisor's version, or "" where there is none."""

    async def prepare(self) -> None:
        """Find out beforehand what takes seconds, and have guests go on that stand still."""

    async def check_startable(self, guest: GuestSpec) -> None:
        """Check what can be checked without starting; disks are not looked at.

        Raises:
            InvalidRequest: a parameter makes no sense.
            NodeFailure: a program or file is missing, or KVM is wanted and does not work.
        """

    async def ensure_running(
        self, guest: GuestSpec, taps: tuple[str, ...], *, paused: bool = False
    ) -> None:
        """Return when the guest runs; one that runs or is paused already is left alone.

        One that stands still because a write found no room writes again, and one that was
        started paused runs.

        One whose power button was pressed would end any moment: it is given some seconds for
        that, then killed, and started anew.

        Args:
            guest: what to run.
            taps: network devices of the node that exist already, in the order of its nics.
            paused: have a guest that is started now stand still, until this is asked for
                without, or ``release``.

        Raises:
            Conflict: it waits for its memory here, its memory has left this node, or it does
                not say whether it runs.
            NodeFailure: as ``check_startable``, a disk is missing or in use, or it died at
                once; with the end of what it said.
        """

    async def release(self, instance: InstanceId) -> None:
        """Have a guest run that was started paused; any other is left alone.

        Raises:
            NodeFailure: it does not answer.
        """

    async def ensure_gone(self, instance: InstanceId) -> None:
        """Kill the guest if it is there, and forget it."""

    async def shut_down(self, instance: InstanceId, wait_s: float) -> None:
        """Press the power button, and after ``wait_s`` pull the plug; then forget the guest."""

    async def reset(self, instance: InstanceId) -> None:
        """Restart a running guest as with its reset button.

        Raises:
            Conflict: it is not running here.
        """

    async def ensure_disks(self, guest: GuestSpec) -> None:
        """Have a running guest know its disks, and no others; one that does not run is left alone.

        First disks are taken out that it has besides: the guest is asked to let go of each, and
        the disk is closed when it has. Then those are put in that it lacks, and it is told of
        those that have grown. A disk keeps its slot.

        Raises:
            Conflict: the guest comes or has left, is paused and has to let go of a disk, or it is
                not known which disks it has.
            NodeFailure: it does not answer, or does not let go of a disk in time: it may do so
                later, and a repeat goes on waiting; or a disk cannot be opened.
        """

    async def ensure_nics(self, guest: GuestSpec, taps: tuple[str, ...]) -> None:
        """Have a running guest know its nics, and no others; one that does not run is left alone.

        As ``ensure_disks``. A nic whose MAC address is another one now is taken out, and put in
        again where it was.

        Args:
            guest: with the nics that it is to have.
            taps: network devices of the node that exist already, in the order of its nics.

        Raises:
            Conflict, NodeFailure: as ``ensure_disks``.
        """

    async def set_memory(self, instance: InstanceId, memory: MiB) -> None:
        """Ask a running guest to use this much of its memory, and give the rest back.

        Raises:
            Conflict: it is not running here, or cannot be asked.
            NodeFailure: it does not answer.
        """

    async def stand_still(self, instance: InstanceId) -> None:
        """Have a running guest stand still, with all that it has written on its disks.

        One that does not run is left alone. It goes on when that is asked for, when it is to be
        started, and if noded has died meanwhile, as soon as the next one is there (``prepare``).

        Raises:
            Conflict: it comes or has left, or does not answer.
            NodeFailure: it does not answer, or cannot write to its disks.
        """

    async def go_on(self, instance: InstanceId) -> None:
        """Have a guest run that was told to stand still; any other is left alone.

        Raises:
            NodeFailure: it does not answer, and stands still when it does.
        """

    async def freeze(self, instance: InstanceId) -> int:
        """Have a running guest write all it has to its disks, and nothing more until ``thaw``.

        Its agent does that, with each of its file systems. It is thawed when this fails, when it
        is to be moved, and if noded has died meanwhile, as soon as the next one is there
        (``prepare``).

        Returns:
            How many file systems there are.

        Raises:
            Conflict: it is not running here, or has no line to an agent.
            NodeFailure: there is no agent, it refuses, or it takes too long.
        """

    async def thaw(self, instance: InstanceId) -> None:
        """Have a frozen guest write again; any other is left alone.

        Raises:
            NodeFailure: its agent does not say that it does, and is asked again and again.
        """

    async def guests(self) -> tuple[GuestReport, ...]:
        """Return every guest of this kind on this node, by name.

        One that did not answer a moment ago is not waited for again.
        """

    async def ensure_receiving(
        self, guest: GuestSpec, taps: tuple[str, ...], move: TaskId
    ) -> Reception:
        """Start the shell that will receive a guest, and listen for its memory.

        A shell that waits for this move already is kept; one that waits for another is not.
        The guest does not run here before it is told to.

        Raises:
            Conflict: the guest runs here, or may; or it has come by another move.
            NodeFailure: as ``ensure_running``.
        """

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
        """Send a running guest's memory; return when it never runs here again.

        It is on the target then, and stands still until it is told to run: as a whole, or, where
        the parameters ask for post-copy, but for what follows, and is reported as its rest. One
        whose memory has left already is left alone; a transfer under way is waited for.
        Cancelled, the transfer is cancelled too, and the guest runs here.

        Args:
            instance: which.
            host: IP address of the target.
            peer: name of the target.
            reception: as told by ``ensure_receiving`` there.
            parameters: of the hypervisor, filled; those that are about moves hold for this one.
            live: whether it runs meanwhile; else it stands still from the beginning.
            move: as told to ``ensure_receiving`` there.
            tell: hears of the progress.

        Raises:
            Conflict: it is not running here.
            NodeFailure: the transfer failed, and the guest runs here; or it does not answer.
        """

    async def ensure_resumed(self, instance: InstanceId, move: TaskId) -> None:
        """Have a guest run that came by ``move``; one that was told so already is left alone.

        Raises:
            Conflict: nothing came by this move, or not all.
            NodeFailure: it does not answer, or its disks cannot be opened.
        """

    async def await_rest(self, instance: InstanceId, move: TaskId) -> Reception:
        """Listen for the rest of the memory of a guest that came by ``move``, on another line.

        Whoever is listened for already is listened for; the line that there was is cut.

        Raises:
            Conflict: nothing is missing, or it has come by another move.
            NodeFailure: it does not answer.
        """

    async def send_rest(
        self, instance: InstanceId, *, host: str, reception: Reception, move: TaskId
    ) -> None:
        """Go on sending the rest of the memory of a guest that has left by ``move``.

        Raises:
            Conflict: nothing is missing, or it has not left by this move.
            NodeFailure: nobody listens at ``host``, or it does not answer.
        """

    async def ensure_not_migrating(self, instance: InstanceId) -> None:
        """Cancel a transfer that goes on, and have the guest run here.

        Raises:
            Conflict: its memory has left this node, or it is not here at all.
            NodeFailure: it does not answer.
        """

    async def ensure_no_shell(self, instance: InstanceId) -> None:
        """Clear away what certainly does not run: a shell, or what ended by itself.

        Raises:
            Conflict: the guest runs here, or may.
        """

    async def console(self, instance: InstanceId) -> Console:
        """Tell where the serial console of a guest is.

        Raises:
            NotFound: the guest is not on this node.
        """

    async def close(self) -> None:
        """Let go of everything but the guests, which go on."""
