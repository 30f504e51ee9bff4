"""What a node can be asked to do with disks."""

from abc import abstractmethod

from common.messages import Order, Report
from common.model.disk import Backing
from common.names import DiskId, InstanceId, MiB, Path
from common.rpc.declare import NodeService, rpc


class DiskSpec(Order):
    """A disk as it has to be on a node."""

    id: DiskId
    instance: InstanceId
    size: MiB
    backing: Backing


class DiskReport(Report):
    """A disk as it is."""

    id: DiskId
    instance: InstanceId | None
    size: MiB


class Disks(NodeService, prefix="disks"):
    """Disks of one node."""

    @rpc(timeout=120, safe_to_repeat=True)
    @abstractmethod
    async def ensure_present(self, *, disk: DiskSpec) -> None:
        """Create a disk of the wanted size; one that is there already stays as it is.

        Raises:
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

    @rpc(timeout=30, safe_to_repeat=True)
    @abstractmethod
    async def find(self, *, disks: tuple[DiskSpec, ...]) -> tuple[DiskReport | None, ...]:
        """Return what is there of each disk, in the order asked; None where there is nothing."""

    @rpc(timeout=60, safe_to_repeat=True, largest_answer=8 << 20, looks=True)
    @abstractmethod
    async def inventory(self, *, directories: tuple[str, ...]) -> tuple[Path, ...]:
        """Return the paths of all disk files below ``directories``, sorted."""
