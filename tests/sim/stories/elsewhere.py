"""Stories of instances whose disks no node keeps: all nodes reach them."""

from msgspec.structs import replace

from common.model.template import DiskTemplate
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.storage.diagnose import DiagnoseExternalStorage
from tests.sim.settings import WEB1, create
from tests.support.cluster import SimulatedCluster
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
REMOVAL = RemoveInstance(instance_name=WEB1)

STORIES = {
    "look at providers": Story(DiagnoseExternalStorage(output_fields=("name",))),
    "create on external storage": Story(ON_A_SHELF),
    "remove from external storage": Story(REMOVAL, begun_with(ON_A_SHELF, "gamma"), again=REMOVAL),
    "create in Ceph": Story(IN_CEPH),
    "remove from Ceph": Story(REMOVAL, begun_with(IN_CEPH, "gamma"), again=REMOVAL),
    "migrate on external storage": Story(
        MigrateInstance(instance_name=WEB1, target_node="alpha"),
        begun_with(ON_A_SHELF, "gamma"),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "fail over on external storage": Story(
        FailOverInstance(instance_name=WEB1, target_node="beta"), begun_with(ON_A_SHELF, "gamma")
    ),
}
