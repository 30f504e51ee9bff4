"""What every kind of disk storage can do; drivers and the fake keep the same promises."""

from collections.abc import Sequence
from typing import Protocol

from common.errors import NodeFailure
from common.model.pool import Pool
from common.noderpc.disks import Access, DiskReport, DiskSpec, VolumeListing
from common.noderpc.facts import StorageReport
from common.noderpc.snapshots import SnapshotSpec


class Storage(Protocol):
    """Disks of guests on this node, of one kind of backing.

    Every method may be repeated, also after noded died in the middle of it. Two calls for
    the same instance do not overlap: the handlers see to that.

    Raises, from every method:
        InvalidRequest: the disk's place is none this node lets be used.
        NodeFailure: the system refused; nothing was left half-done.
    """

    def check_place(self, disk: DiskSpec) -> None:
        """Refuse a disk that cannot be one of this node's, whether it is there or not."""

    async def ensure_present(self, disk: DiskSpec) -> None:
        """Create a disk, all zeros, its space reserved; one that is there stays as it is.

        Raises:
            Conflict: something else is in its place; it is untouched.
            NodeFailure: no space, or no such pool.
        """

    async def ensure_absent(self, disk: DiskSpec) -> None:
        """Delete a disk and what a failed creation left; anything else in its place stays.

        Raises:
            NodeFailure: a guest uses it, or it is attached.
        """

    async def adopt(self, disk: DiskSpec, name: str) -> None:
        """Make what is there under another name a disk, with all that is on it.

        Raises:
            Conflict: it is a disk's already.
            NodeFailure: it is not there, or in use, or of another size.
        """
        raise NodeFailure(f"{name} cannot become the disk {disk.id}: it is none that is adopted.")

    async def give_back(self, disk: DiskSpec, name: str) -> None:
        """Undo ``adopt``; what was not adopted stays as it is.

        Raises:
            NodeFailure: it is in use.
        """
        raise NodeFailure(f"The disk {disk.id} cannot become {name}: it is none that was adopted.")

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        """Return what there is of a disk; None where it is not."""

    async def grow(self, disk: DiskSpec) -> None:
        """Grow a disk to the size of its spec, also while it is attached, the new end all zeros.

        One that is as large or larger stays as it is. Of a disk with copies on several nodes, the
        node where it is used is asked last, and makes the new end usable there.

        Raises:
            NodeFailure: it is not there, or there is no space; it is as large as before.
        """

    async def attach(self, disk: DiskSpec, access: Access) -> str:
        """Have a disk ready to be opened, in the way that is told last; return its path.

        Raises:
            NodeFailure: it is not there, or something else is.
        """

    async def detach(self, disk: DiskSpec) -> None:
        """Undo ``attach``; what is not attached, or not there, stays as it is.

        Raises:
            NodeFailure: a guest uses it.
        """

    # Of several disks of one instance; who can, takes them all by as few commands as one.

    async def ensure_present_with(self, disk: DiskSpec, others: Sequence[DiskSpec]) -> None:  # noqa: ARG002
        """Create a disk, and others with it where that is of use; see ``ensure_present``."""
        await self.ensure_present(disk)

    async def find_all(self, disks: Sequence[DiskSpec]) -> tuple[DiskReport | None, ...]:
        """Find disks, in the order asked; see ``find``."""
        return tuple([await self.find(disk) for disk in disks])

    async def attach_all(self, disks: Sequence[DiskSpec], access: Access) -> tuple[str, ...]:
        """Attach disks, in the order asked; see ``attach``."""
        return tuple([await self.attach(disk, access) for disk in disks])

    async def detach_all(self, disks: Sequence[DiskSpec]) -> None:
        """Detach disks; see ``detach``."""
        for disk in disks:
            await self.detach(disk)

    async def problem(self, disk: DiskSpec) -> str:  # noqa: ARG002 -- most are bytes only
        """Say what is wrong within what a disk is kept in; empty if nothing is, or it is gone."""
        return ""

    async def snapshot_problem(self, disk: DiskSpec) -> str:  # noqa: ARG002 -- for those that can
        """Say why no snapshot of a disk can be taken, and what to do; empty if one can."""
        return "This node can take no snapshots of such disks."

    async def take_snapshots(self, wanted: Sequence[SnapshotSpec]) -> None:
        """Keep what is on disks of one instance now; of no snapshot anything is there.

        A snapshot is a disk like others from then on, which is found, attached and deleted.

        Raises:
            NodeFailure: one cannot be had; others may be there.
        """
        raise NodeFailure(f"Snapshots cannot be taken of the disk {wanted[0].of.id}.")

    async def roll_back(self, snapshot: SnapshotSpec) -> None:
        """Have a disk that is not attached be again what was kept of it; the snapshot stays.

        Raises:
            Unfinished: it takes its time; to be asked again.
            NodeFailure: one of the two is in use.
        """
        raise NodeFailure(f"The disk {snapshot.of.id} cannot be rolled back.")

    def open(self, disk: DiskSpec) -> int:
        """Open an attached disk as the guest is to have it; the descriptor is the caller's. Blocks.

        Raises:
            NodeFailure: it is not there or not attached, or something else is in its place.
        """


class PoolDriver(Protocol):
    """Pools of one kind on this node."""

    async def inventory(self, pool: Pool) -> tuple[str, ...]:
        """Return the paths of all that is in a pool, unfinished disks too, in any order.

        One that does not exist holds nothing.

        Raises:
            InvalidRequest: it is not set aside for disks.
        """

    async def volumes(self, pool: Pool) -> tuple[VolumeListing, ...]:  # noqa: ARG002
        """Return the logical volumes of a pool that is made of such; no others are."""
        return ()

    async def space(self, pool: Pool) -> StorageReport:
        """Tell how much space a pool has; one that cannot be used says why."""
