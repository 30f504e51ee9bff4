"""No disks: the guest boots from the network, or from a CD image of its node."""

from common.errors import InvalidRequest
from common.model.backing import Backing
from common.model.cluster import Cluster
from common.model.template import DiskTemplate
from coordinator.disks.kind import DiskKind, NewDisk


class DisklessKind(DiskKind):
    """What has no disks needs no place for them."""

    def new_backing(self, cluster: Cluster, new: NewDisk) -> Backing:  # noqa: ARG002
        raise InvalidRequest(f"An instance with the template {self.template} has no disks.")


DISKLESS = DisklessKind(DiskTemplate.DISKLESS)
