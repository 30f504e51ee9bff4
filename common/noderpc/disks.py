"""What a node can be asked to do with disks."""

from abc import abstractmethod
from enum import StrEnum
from typing import Any

from common.errors import NodeFailure
from common.messages import Order, Report
from common.model.backing import Backing
from common.model.disk import Mode
from common.model.pool import Pool
from common.names import DiskId, Few, InstanceId, MiB, NodeId, Path, Sentence, Word
from common.rpc.declare import NodeService, rpc


class Access(StrEnum):
    """For whom a node has a disk attached."""

    SOLE = "sole"  # for its own guest
    SHARED = "shared"  # for a guest that is moving, so for the one of another node as well
    STANDBY = "standby"  # for no guest: only to follow what another node writes
    ALONE = "alone"  # as SOLE, without the other copy, of which is noted that it falls behind


class MirrorEnd(Order):
    """One of the two nodes that have a mirrored disk, and how the other one reaches it."""

    node: NodeId
    address: Word  # of its secondary network
    minor: Few


class DiskSpec(Order, omit_defaults=True):
    """A disk as it has to be on a node, and as a guest gets it."""

    id: DiskId
    instance: InstanceId
    size: MiB
    backing: Backing
    mode: Mode = Mode.READ_WRITE
    parameters: dict[str, Any] = {}  # of its template, filled: common.model.disk_parameters
    # Of a mirrored disk: two, DRBD 9's number 0 before 1; or one while it has no other copy.
    ends: tuple[MirrorEnd, ...] = ()
    # Of one whose node has exclusive storage: how many physical volumes it has for itself; 0: as
    # many as it has. None: it shares them.
    spindles: Few | None = None


class DiskReport(Report):
    """A disk as it is.

    Attributes:
        allocated: what it takes, where that is less than its size at first.
        spindles: on how many physical volumes its data is, where that can be told.
        problem: what keeps a guest from using it; empty if nothing does.
    """

    id: DiskId
    instance: InstanceId | None
    size: MiB
    allocated: MiB | None = None
    spindles: Few | None = None
    problem: Sentence = ""


class VolumeListing(Report):
    """A logical volume as it is, a disk's or not.

    Attributes:
        group, name: of LVM.
        size: rounded up to whole MiB.
        disk: whose it is by its marks; None if Gantry has not made it.
        instance: the disk's instance by its marks.
        devices: the physical volumes that it is on.
        problem: what keeps a guest from using it; empty if nothing does.
        thin_pool: in which it takes space as it is written to.
        is_open: somebody has its device open.
        origin: the volume whose snapshot it is.
    """

    group: Word
    name: Word
    size: MiB
    disk: DiskId | None = None
    instance: InstanceId | None = None
    devices: tuple[Path, ...] = ()
    problem: Sentence = ""
    thin_pool: Word = ""
    is_open: bool = False
    origin: Word = ""


class Unfinished(NodeFailure):
    """What was asked for takes longer than a call; it goes on, and can be asked for again.

    Details: ``done_mib`` and ``total_mib`` say how far it is.
    """

    code = "node-failure.unfinished"


class Disks(NodeService, prefix="disks"):
    """Disks of one node."""

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def ensure_present(self, *, disk: DiskSpec, others: tuple[DiskSpec, ...] = ()) -> None:
        """Create a disk of the wanted size; one that is there already stays as it is.

        Args:
            disk: what is to be there.
            others: of the same instance, which are asked for next. They may be made with it, near
                to it and by fewer commands, or not; whoever takes the disk back deletes them, too.

        Raises:
            Unfinished: it is not all zeros yet.
            Conflict: something else is in its place.
            NodeFailure: no space, no such directory, an I/O error.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def ensure_absent(self, *, disk: DiskSpec) -> None:
        """Delete a disk; one that is not there is fine.

        Raises:
            NodeFailure: it is in use, or an I/O error.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def grow(self, *, disk: DiskSpec) -> None:
        """Grow a disk to the wanted size; one that is as large or larger stays as it is.

        Of a disk with copies on several nodes, the one where it is used is asked last.

        Raises:
            NodeFailure: it is not there, no space, an I/O error.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def adopt(self, *, disk: DiskSpec, name: Word) -> None:
        """Make what is there under another name a disk, with all that is on it.

        Raises:
            Conflict: it is a disk's already.
            NodeFailure: it is not there, or in use, or of another size.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def give_back(self, *, disk: DiskSpec, name: Word) -> None:
        """Have an adopted disk be nobody's again, under its former name; else nothing is done.

        Raises:
            NodeFailure: it is in use.
        """

    @rpc(timeout=30, safe_to_repeat=True, one_for_each="disks")
    @abstractmethod
    async def find(self, *, disks: tuple[DiskSpec, ...]) -> tuple[DiskReport | None, ...]:
        """Return what is there of each disk, in the order asked; None where there is nothing."""

    @rpc(timeout=120, safe_to_repeat=True, looks=True, one_for_each="disks")
    @abstractmethod
    async def problems(self, *, disks: tuple[DiskSpec, ...]) -> tuple[Sentence, ...]:
        """Say what is wrong within what disks are kept in, in the order asked; empty for none.

        What is not there has nothing wrong with it, and of what is in use less can be told.
        """

    @rpc(timeout=60, safe_to_repeat=True, one_for_each="disks")
    @abstractmethod
    async def attach(self, *, disks: tuple[DiskSpec, ...], access: Access) -> tuple[Path, ...]:
        """Have disks ready for a guest of this node; return where each is now, in their order.

        One that is attached already stays so, with ``access`` as it is told now.

        Raises:
            NodeFailure: a disk is not there, or cannot be had in this way.
        """

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def detach(self, *, disks: tuple[DiskSpec, ...]) -> None:
        """Let go of disks; one that is not attached, or not there, is fine.

        Raises:
            NodeFailure: a guest of this node uses it.
        """

    @rpc(timeout=60, safe_to_repeat=True, largest_answer=8 << 20, looks=True)
    @abstractmethod
    async def volumes(self, *, pools: tuple[Pool, ...]) -> tuple[VolumeListing, ...]:
        """Return all volumes of those of ``pools`` that are volume groups, by group and name."""

    @rpc(timeout=60, safe_to_repeat=True, largest_answer=8 << 20, looks=True)
    @abstractmethod
    async def inventory(self, *, pools: tuple[Pool, ...]) -> tuple[Path, ...]:
        """Return the paths of all that is in ``pools``, sorted, be it a disk or not."""
