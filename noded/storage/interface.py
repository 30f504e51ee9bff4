"""What every kind of disk storage can do; drivers and the fake keep the same promises."""

from typing import Protocol

from common.noderpc.disks import DiskReport, DiskSpec
from common.noderpc.facts import StorageReport


class Storage(Protocol):
    """Disks of guests on this node.

    Every method may be repeated, also after noded died in the middle of it. Two calls for
    the same instance do not overlap: the handlers see to that.

    Raises, from every method that takes a disk:
        InvalidRequest: its place is none this node lets be used.
        NodeFailure: the system refused; nothing was left half-done.
    """

    async def ensure_present(self, disk: DiskSpec) -> None:
        """Create a disk, all zeros, its space reserved; one that is there stays as it is.

        Raises:
            Conflict: something else is in its place; it is untouched.
            NodeFailure: no space, or no such directory.
        """

    async def ensure_absent(self, disk: DiskSpec) -> None:
        """Delete a disk and what a failed creation left; anything else in its place stays.

        Raises:
            NodeFailure: a guest uses it.
        """

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        """Return what there is of a disk; None where it is not."""

    def check_path(self, path: str) -> None:
        """Refuse what cannot be the path of a disk of this node, whether there is one or not.

        Raises:
            InvalidRequest: it is not where disks are kept.
        """

    async def inventory(self, directories: tuple[str, ...]) -> tuple[str, ...]:
        """Return the paths of all files below ``directories``, sorted, unfinished ones too.

        A directory that does not exist holds none.

        Raises:
            InvalidRequest: a directory that is none of this node's.
        """

    async def space(self, directory: str) -> StorageReport:
        """Tell how much space a directory has; one that cannot be used says why."""
