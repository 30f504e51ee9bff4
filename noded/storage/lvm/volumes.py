"""Logical volumes of disks on this node; disks of several kinds are made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from common.model.backing import LvmBacking
from common.model.pool import Pool
from common.names import DiskId, InstanceId, MiB
from common.noderpc.facts import StorageReport


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume that is, or is to be, a disk's: its name begins with the disk's UUID and a dot.

    A volume is ours only if its tags say so, too. What has the name and not the tags stays as it
    is, whatever is asked for.
    """

    place: LvmBacking
    disk: DiskId
    instance: InstanceId

    @property
    def name(self) -> str:
        """Return group and name as LVM takes them."""
        return f"{self.place.group}/{self.place.name}"


@dataclass(frozen=True, slots=True)
class NewVolume:
    """A volume as it is to be made.

    Attributes:
        size: rounded up to whole extents of its group.
        stripes: over how many physical volumes its data is spread.
        stripe_kib: the size of a stripe; 0: as LVM prefers.
        zeros: how much of its beginning has to be zeros; None: all, as guests may read it.
        spindles: how many physical volumes it is to have for itself, all of which it takes some
            of; None: it shares them with others. A snapshot then goes on those of its volume.
        tells_of: what is on it is about this other volume, asked for together with it; one that
            is there without it is made anew.
    """

    volume: Volume
    size: MiB
    stripes: int = 1
    stripe_kib: int = 0
    zeros: MiB | None = None
    spindles: int | None = None
    tells_of: Volume | None = None


class NewSnapshot(NamedTuple):
    """What is on ``volume`` is to be kept as ``kept``, in the same group.

    The size of ``kept`` is what may be written on either before it is lost; in a thin pool, which
    gives what is needed, it is not used.
    """

    volume: Volume
    kept: NewVolume


@dataclass(frozen=True, slots=True)
class VolumeReport:
    """A volume as it is, ours or not.

    Attributes:
        place: where it is.
        size: in whole MiB, rounded up.
        uuid: LVM's own, which no other volume ever has.
        disk: whose volume it is; None if it is not ours.
        instance: the disk's instance; None if it is not ours.
        adopted_by: the disk that it is being made, or has been until just now.
        is_unfinished: its creation was cut off: what former volumes left may still be in it.
        is_active: it has a device.
        is_open: somebody has its device open: a guest, or another device on top of it.
        is_whole: no physical volume that it needs is missing.
        is_lost: it is a snapshot, and more was written than it had room for.
        is_merging: what a snapshot kept is being written back to it.
        origin: the volume whose snapshot it is.
        devices: the physical volumes that its data is on.
    """

    place: LvmBacking
    size: MiB
    uuid: str
    disk: DiskId | None = None
    instance: InstanceId | None = None
    adopted_by: DiskId | None = None
    is_unfinished: bool = False
    is_active: bool = False
    is_open: bool = False
    is_whole: bool = True
    is_lost: bool = False
    is_merging: bool = False
    origin: str = ""
    devices: tuple[str, ...] = ()

    @property
    def goes_with_origin(self) -> bool:
        """Tell whether it has a device exactly as long as the volume whose snapshot it is."""
        return bool(self.origin) and not self.place.thin_pool


class Volumes(Protocol):
    """The logical volumes of this node.

    Every method may be repeated, also after noded died in the middle of it, and takes any number
    of volumes for a constant number of LVM's commands. Calls for different volumes may overlap.

    Raises, from every method:
        InvalidRequest: a name that is none of a disk's volumes.
        NodeFailure: LVM refused; says why.
    """

    async def ensure_present(self, wanted: Sequence[NewVolume]) -> None:
        """Make volumes, inactive, zeros as far as wanted; those that are there stay as they are.

        All that are made are put as near to one another as there is room: on one physical
        volume, if they fit; else each disk's on one. Those that have physical volumes for
        themselves are on these, which nothing else was on. If one cannot be made, none of them is.

        Raises:
            Unfinished: not all are zeros yet; to be asked again.
            Conflict: something that is not ours has the name; it is untouched.
            InvalidRequest: it cannot have so few physical volumes for itself.
            NodeFailure: no such group, or no space in it (``free_mib``).
        """

    async def ensure_active(self, wanted: Sequence[NewVolume]) -> tuple[str, ...]:
        """Make volumes as ``ensure_present`` does, and have a device for each; return their paths.

        Raises:
            As ``ensure_present`` and ``activate``.
        """

    async def ensure_absent(self, volumes: Sequence[Volume]) -> None:
        """Remove volumes, active or not, with snapshots of them that are ours.

        What is not there is fine, and what is not ours stays.

        Raises:
            NodeFailure: one is open, or has a snapshot that is not ours; all are still there.
        """

    async def find(self, volumes: Sequence[Volume]) -> tuple[VolumeReport | None, ...]:
        """Return what is there of each, in the order asked; None where nothing of ours is.

        One whose creation was cut off is not there yet.
        """

    async def activate(self, volumes: Sequence[Volume]) -> tuple[str, ...]:
        """Have a device for each; return their paths, in the order asked.

        Raises:
            NodeFailure: one is not there, not ours, unfinished, or lacks a physical volume.
        """

    async def deactivate(self, volumes: Sequence[Volume]) -> None:
        """Take the devices away; what has none, or is not there, or is not ours, stays as it is.

        A snapshot outside of a thin pool has its device as long as its volume has one.

        Raises:
            NodeFailure: one is open.
        """

    async def rename(self, pairs: Sequence[tuple[Volume, Volume]]) -> None:
        """Give volumes other names in their groups, in this order, looking at these once.

        They may be open. What is done already is fine; what comes before a failure is done.

        Raises:
            Conflict: something else has the name.
            NodeFailure: neither is there.
        """

    async def adopt(self, name: str, volume: Volume, size: MiB) -> None:
        """Make a volume that somebody else has made a disk's, with all that is on it; inactive.

        Args:
            name: what it is called in its group.
            volume: what it is going to be.
            size: that it is known to have, rounded up.

        Raises:
            Conflict: it is a disk's already, or something else has the new name.
            NodeFailure: it is not there, open, of another size, or a snapshot or with some.
        """

    async def give_back(self, volume: Volume, name: str) -> None:
        """Have an adopted volume be nobody's, under its former name; what is not ours stays.

        Raises:
            NodeFailure: it is open.
        """

    async def grow(self, volume: Volume, size: MiB, *, alone: bool = False) -> None:
        """Have a volume be at least of ``size``; what is added is zeros. It may be open.

        If it is to stay ``alone``, it takes of no physical volumes but those that it has.

        Raises:
            Unfinished: what was added is not all zeros yet; to be asked again.
            NodeFailure: it is not there, or there is no space (``free_mib``).
        """

    async def snapshot(self, wanted: Sequence[NewSnapshot]) -> None:
        """Keep what is on volumes now as other ones; those that are there already stay.

        The volumes may be open. If one cannot be kept, none is that was not before.

        Raises:
            Conflict: something else has the name.
            NodeFailure: a volume is not there, or there is no space (``free_mib``).
        """

    async def roll_back(self, volume: Volume, snapshot: Volume) -> None:
        """Have a volume be again what it was when the snapshot was taken, which is used up.

        A snapshot that is not there has been rolled back to already.

        Raises:
            Unfinished: it takes its time; to be asked again.
            NodeFailure: one of them is open, the volume is not there, or the snapshot is lost.
        """

    def open(self, volume: Volume, *, read_only: bool) -> int:
        """Open an active volume's device; the descriptor is the caller's. Blocks.

        Raises:
            NodeFailure: it is not active, or another device is in its place.
        """

    async def inventory(self, pool: Pool) -> tuple[VolumeReport, ...]:
        """Return all volumes of a group, ours or not; none if there is no such group."""

    async def space(self, pool: Pool) -> StorageReport:
        """Tell how much space a group or a thin pool has, and what is wrong with it."""
