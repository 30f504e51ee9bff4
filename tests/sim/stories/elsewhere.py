"""Stories of instances whose disks no node keeps: all nodes reach them."""

from msgspec.structs import replace

from common.model.template import DiskTemplate
from common.names import DiskId, MiB
from common.noderpc.disks import DiskReport
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.storage.diagnose import DiagnoseExternalStorage
from tests.sim.settings import WEB1, create
from tests.support.cluster import SimulatedCluster
from tests.support.seeds import is_thorough
from tests.support.story import Setting, Story

ON_A_SHELF = replace(
    create(template=DiskTemplate.EXT),
    disks=(DiskRequest(size="64M", provider="shelf", provider_parameters={"row": "7"}),),
)


def begun_with(order: CreateInstance, node: str) -> Setting:
    async def setting(cluster: SimulatedCluster) -> None:
        await cluster.run(replace(order, pnode=node))

    return setting


IN_CEPH = create(template=DiskTemplate.RBD)
LUN = "/dev/disk/by-id/lun7"
ON_A_LUN = replace(
    create(node="gamma", template=DiskTemplate.BLOCKDEV),
    disks=(DiskRequest(size="64M", adopt=LUN),),
)


async def a_lun(cluster: SimulatedCluster) -> None:
    """Have every node see a device that is nobody's."""
    cluster.shared.disks[LUN] = DiskReport(id=DiskId("lun"), instance=None, size=MiB(64))


async def web1_on_a_lun(cluster: SimulatedCluster) -> None:
    await a_lun(cluster)
    await cluster.run(ON_A_LUN)


REMOVAL = RemoveInstance(instance_name=WEB1)

STORIES = {
    "look at providers": Story(DiagnoseExternalStorage(output_fields=("name",))),
    "create on external storage": Story(ON_A_SHELF),
    "remove from external storage": Story(REMOVAL, begun_with(ON_A_SHELF, "gamma"), again=REMOVAL),
    "adopt a device": Story(ON_A_LUN, a_lun),
    "give an adopted device back": Story(REMOVAL, web1_on_a_lun, again=REMOVAL),
    "create in Ceph": Story(IN_CEPH),
    "remove from Ceph": Story(REMOVAL, begun_with(IN_CEPH, "gamma"), again=REMOVAL),
}

# Nodes that see the same directory move them likewise; told where time does not matter.
_IN_DETAIL = {
    "migrate on external storage": Story(
        MigrateInstance(instance_name=WEB1, target_node="alpha"),
        begun_with(ON_A_SHELF, "gamma"),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "fail over on external storage": Story(
        FailOverInstance(instance_name=WEB1, target_node="beta"), begun_with(ON_A_SHELF, "gamma")
    ),
}

if is_thorough():
    STORIES |= _IN_DETAIL
