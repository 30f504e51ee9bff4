"""What a guest that has an image open is asked: nobody else may change what is inside then."""

from typing import Protocol

from common.names import DiskId
from common.noderpc.disks import DiskSpec


class OpenImages(Protocol):
    """The images that guests of this node have open.

    Raises, from every method:
        NodeFailure: the guest does not answer, or refuses.
    """

    async def keep(self, disk: DiskSpec, name: DiskId) -> bool:
        """Keep what is on a disk inside of its image; False: no guest has it open."""

    async def forget(self, disk: DiskSpec, name: DiskId) -> bool:
        """Delete what was kept; False: no guest has the image open."""

    async def grow(self, disk: DiskSpec) -> bool:
        """Have a disk have the size that is told; False: no guest has its image open."""


class NobodyHasThem(OpenImages):
    """On a node whose guests have no images."""

    async def keep(self, disk: DiskSpec, name: DiskId) -> bool:  # noqa: ARG002
        return False

    async def forget(self, disk: DiskSpec, name: DiskId) -> bool:  # noqa: ARG002
        return False

    async def grow(self, disk: DiskSpec) -> bool:  # noqa: ARG002
        return False
