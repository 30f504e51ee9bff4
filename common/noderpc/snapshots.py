"""Keeping what is on disks of a node at a moment, and going back to it."""

from abc import abstractmethod

from common.messages import Order
from common.names import InstanceId, MiB, Sentence
from common.noderpc.disks import DiskSpec
from common.rpc.declare import NodeService, rpc


class SnapshotSpec(Order):
    """What a disk is kept in.

    Attributes:
        of: the disk.
        kept: a disk itself, beside the other one, which is only read.
        room: how much may be written to the disk before what was kept is lost, where space is set
            aside for that; else 0.
    """

    of: DiskSpec
    kept: DiskSpec
    room: MiB


class Snapshots(NodeService, prefix="snapshots"):
    """Snapshots of disks of one node. They are looked for, read and deleted as disks are."""

    @rpc(timeout=30, safe_to_repeat=True, one_for_each="disks")
    @abstractmethod
    async def problems(self, *, disks: tuple[DiskSpec, ...]) -> tuple[Sentence, ...]:
        """Say why disks cannot be kept as they are, in the order asked; empty for one that can."""

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def ensure_taken(
        self, *, instance: InstanceId, snapshots: tuple[SnapshotSpec, ...], freeze: bool = False
    ) -> None:
        """Keep what is on disks of an instance at one moment; what was kept before stays.

        A guest that runs here stands still for that moment, and all that it has written is kept.
        If some of the snapshots are there, and others are not, all are taken anew. With ``freeze``
        its agent has its file systems whole on its disks then.

        Raises:
            Conflict: the guest comes, has left, or does not answer; or is paused and to be frozen.
            NodeFailure: a disk cannot be kept, or the agent does not freeze or thaw the guest; none
                of the snapshots is left.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def roll_back(self, *, snapshot: SnapshotSpec) -> None:
        """Have a detached disk be again what was kept of it, which stays.

        Raises:
            Unfinished: it takes longer than a call.
            NodeFailure: one of the two is in use, or not there.
        """
