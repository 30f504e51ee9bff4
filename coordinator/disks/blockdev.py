"""Disks that are block devices which were there before, and which all nodes reach."""

from common.errors import InvalidRequest
from common.model.backing import BlockBacking
from common.model.cluster import Cluster
from common.model.template import DiskTemplate
from coordinator.disks.kind import DiskKind, NewDisk
from coordinator.disks.wish import DiskWish


class BlockKind(DiskKind):
    """Each disk is a device that is named when it is made, and has to be no other disk's."""

    heeds = frozenset({"adopt"})

    def check_wish(self, wish: DiskWish) -> None:
        super().check_wish(wish)
        if not wish.adopt.startswith("/dev/disk/"):
            raise InvalidRequest(
                f"Say which device becomes the disk, by a name that it has on every node, as in "
                f"--disk 0:size=10G,adopt=/dev/disk/by-id/NAME{_not(wish.adopt)}."
            )

    def new_backing(self, cluster: Cluster, new: NewDisk) -> BlockBacking:  # noqa: ARG002
        return BlockBacking(device=new.devices.adopted(new.wish.adopt))


def _not(given: str) -> str:
    return f", and not “{given}”" if given else ""


BLOCKDEV = BlockKind(DiskTemplate.BLOCKDEV)
