"""What a node can be asked about disks that are mirrored on another node.

Attaching and detaching them is asked as of any disk (``common.noderpc.disks``). Here is what only
mirrors have. A node repairs and decides nothing by itself; only what an interrupted connection left
to be copied is copied as soon as the two nodes see each other again.
"""

from abc import abstractmethod
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from common.errors import NodeFailure
from common.messages import Report
from common.names import Count, DiskId, Few, Word
from common.noderpc.disks import DiskSpec
from common.rpc.declare import NodeService, rpc


class CopyState(StrEnum):
    """How good a copy of the data is, from none to the best."""

    NONE = "none"  # no volume is attached, or it failed
    UNKNOWN = "unknown"  # of the other node, while it is not heard
    INCONSISTENT = "inconsistent"  # partly of one time, partly of another: of no use
    OUTDATED = "outdated"  # as it was at some time, and known to be behind
    CONSISTENT = "consistent"  # as it was at some time; whether it is behind, only the peer knows
    UP_TO_DATE = "up-to-date"


class Link(StrEnum):
    """What there is between the two nodes."""

    NONE = "none"  # not asked for, or given up: it waits for nobody
    CONNECTING = "connecting"  # the other one has not been reached, or not any more
    CONNECTED = "connected"


class Copying(StrEnum):
    """What goes over the link beside what the guest writes."""

    NOTHING = "nothing"
    TO_PEER = "to-peer"
    FROM_PEER = "from-peer"
    VERIFYING = "verifying"  # both sides are compared; nothing is changed


Percent = Annotated[float, Meta(ge=0, le=100)]


class MirrorReport(Report):
    """One node's end of a mirrored disk, which is set up there."""

    primary: bool  # a guest of this node may write
    peer_primary: bool
    own: CopyState
    peer: CopyState
    link: Link
    copying: Copying = Copying.NOTHING
    paused: bool = False
    percent: Percent = 100.0  # of the data that is in sync, or has been compared
    behind_kib: Count = 0  # what differs, or may differ, between the copies
    rate_kib: Count = 0  # a second, of what is copied just now
    generations: tuple[Word, ...] = ()  # hexadecimal: current, at the last parting, two before
    split: bool = False  # both copies were written to apart: the nodes met and refused each other

    @property
    def has_written_apart(self) -> bool:
        """Whether this copy has what the other one lacks, as its generations tell."""
        return len(self.generations) > 1 and int(self.generations[1], 16) != 0


class MirrorDevice(Report):
    """A device of DRBD's on a node, whosever it is."""

    resource: Word  # its name
    minor: Few  # its number
    disk: DiskId | None  # whose it is by its name; None: none of ours


class Parted(NodeFailure):
    """A copy cannot be used by itself, as the other one, which cannot be asked, may be newer."""

    code = "node-failure.parted"


class Mirrors(NodeService, prefix="mirrors"):
    """Mirrored disks of one node. All that changes something states a wish."""

    @rpc(timeout=30, safe_to_repeat=True, fenced=False, looks=True, one_for_each="disks")
    @abstractmethod
    async def status(self, *, disks: tuple[DiskSpec, ...]) -> tuple[MirrorReport | None, ...]:
        """Return how each is, in the order asked; None where it is not set up on this node."""

    @rpc(timeout=30, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def devices(self) -> tuple[MirrorDevice, ...]:
        """Return all devices that there are, by their numbers.

        Raises:
            NodeFailure: this node cannot mirror disks.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def take_away(self, *, disk: DiskId) -> None:
        """Take away the device of a disk that this node is not to have; none is fine.

        Raises:
            NodeFailure: something uses it, or it is connected to another copy.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def begin(self, *, disks: tuple[DiskSpec, ...], full: bool) -> None:
        """Make two copies of which neither is good yet one disk; asked of one of the two nodes.

        Both have it in standby and see each other. Without ``full``, both have been made as zeros
        and are declared equal; else the copy of this node is declared good, and copied.

        Raises:
            NodeFailure: the other node is not connected, or a copy has had data already.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def declare_good(self, *, disks: tuple[DiskSpec, ...]) -> None:
        """Take this node's copies for good, though they are behind, or not known not to be.

        What the other copy had beyond them is lost. They can be attached ``alone`` from then on.
        Where one of both is good and can be asked, nothing is changed.

        Raises:
            NodeFailure: there is no copy here, or an inconsistent one.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def give_up(self, *, disks: tuple[DiskSpec, ...]) -> None:
        """Have this node's copies count as none; all of the other node's is copied when they meet.

        Raises:
            NodeFailure: a disk is attached here.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def connect(self, *, disks: tuple[DiskSpec, ...], discard: bool) -> None:
        """Look for the other node again; return at once.

        With ``discard``, what was written here since the two parted is given up if the other copy
        was written to as well.

        Raises:
            NodeFailure: a disk is not set up; or it would be discarded and is in use here.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def set_aside(self, *, disks: tuple[DiskSpec, ...]) -> None:
        """Detach this node's volumes and give them other names, so that new ones can be made.

        A guest of this node goes on with the other node's copy. If one of the volumes is not there
        any more, what is left of them is deleted.

        Raises:
            NodeFailure: the other node does not have a good copy, or is not connected.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def take_back(self, *, disks: tuple[DiskSpec, ...]) -> None:
        """Undo ``set_aside``: delete what was made since, and give the old volumes their names.

        They are attached as any disk afterwards. Nothing was set aside: nothing is done.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def drop_aside(self, *, disks: tuple[DiskSpec, ...]) -> None:
        """Delete the volumes that were set aside; none is fine."""
