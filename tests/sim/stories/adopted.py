"""Stories of volumes that are there before their instance."""

from msgspec.structs import replace

from common.model.backing import LvmBacking
from common.model.template import DiskTemplate
from common.names import MiB
from coordinator.operations.devices import DiskRequest
from noded.storage.lvm.volumes import VolumeReport
from tests.sim.settings import create
from tests.support.cluster import SimulatedCluster
from tests.support.image import GROUP
from tests.support.story import Story

OLD = "old-server"
ADOPT = replace(create(node="gamma", template=DiskTemplate.PLAIN), disks=(DiskRequest(adopt=OLD),))


async def a_volume(cluster: SimulatedCluster) -> None:
    """Have gamma have a volume that is nobody's."""
    gamma = cluster.machines["gamma"]
    place = LvmBacking(group=GROUP, name=OLD)
    gamma.volumes.groups[GROUP].volumes[OLD] = VolumeReport(place, MiB(48), "precious")
    gamma.written.write_volume("precious", "data of the old server")


STORIES = {"adopt a volume": Story(ADOPT, a_volume)}
