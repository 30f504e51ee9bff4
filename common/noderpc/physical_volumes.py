"""What a node can be asked about what its volume groups are made of."""

from abc import abstractmethod

from common.messages import Report
from common.names import MiB, Path, Word
from common.rpc.declare import NodeService, rpc


class PhysicalVolumeReport(Report):
    """A device that LVM uses, or misses."""

    name: Path  # of its device; of one that is missing, what LVM calls that
    group: Word  # empty: it is in none
    size: MiB
    free: MiB
    allocatable: bool  # new volumes may take space of it
    missing: bool = False


class VolumeGroupReport(Report):
    """A volume group, and what it lacks."""

    name: Word
    size: MiB
    free: MiB
    missing: int = 0  # how many of its devices
    broken: tuple[Word, ...] = ()  # volumes that have data on a device that is missing


class PhysicalVolumes(NodeService, prefix="physical-volumes"):
    """Devices and groups of one node, whosever they are."""

    @rpc(timeout=30, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def devices(self) -> tuple[PhysicalVolumeReport, ...]:
        """Return all devices, those that are missing included, sorted."""

    @rpc(timeout=30, safe_to_repeat=True, fenced=False, looks=True)
    @abstractmethod
    async def groups(self) -> tuple[VolumeGroupReport, ...]:
        """Return all groups, sorted."""

    @rpc(timeout=60, safe_to_repeat=True)
    @abstractmethod
    async def set_allocatable(self, *, device: Path, allocatable: bool) -> None:
        """Have new volumes take space of a device, or not any more; those on it stay.

        Raises:
            NotFound: LVM has no such device.
        """

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def forget_missing(self, *, group: Word, broken: tuple[Word, ...]) -> None:
        """Take the missing devices out of a group, and with them the volumes that are ``broken``.

        A group that misses nothing stays as it is.

        Raises:
            NotFound: no such group.
            Conflict: other volumes are broken than were told: nothing is changed.
            NodeFailure: LVM refused, as while a volume is open.
        """
