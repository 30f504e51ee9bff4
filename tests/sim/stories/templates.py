"""Stories of every disk template: an instance with such disks is made, and removed."""

from collections.abc import Mapping

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

LUN = "/dev/disk/by-id/lun7"
TOLD: Mapping[DiskTemplate, DiskRequest] = {
    DiskTemplate.EXT: DiskRequest(size="64M", provider="shelf", provider_parameters={"row": "7"}),
    DiskTemplate.BLOCKDEV: DiskRequest(size="64M", adopt=LUN),
}
"""What has to be said of a disk beside its size, by the templates that ask for it."""


def with_disks_of(template: DiskTemplate, node: str | None = None) -> CreateInstance:
    """Return an order for an instance, on this node or where the allocator says."""
    second = "beta" if node and template.traits.is_mirrored else None
    order = create(node=node, second=second, template=template)
    if not template.traits.has_disks:
        return replace(order, disks=())
    return replace(order, disks=(TOLD[template],)) if template in TOLD else order


async def a_lun(cluster: SimulatedCluster) -> None:
    """Have every node see a device that is nobody's."""
    cluster.shared.disks[LUN] = DiskReport(id=DiskId("lun"), instance=None, size=MiB(64))


def web1_with(template: DiskTemplate) -> Setting:
    """Begin with an instance on gamma."""

    async def setting(cluster: SimulatedCluster) -> None:
        await a_lun(cluster)
        await cluster.run(with_disks_of(template, "gamma"))

    return setting


REMOVAL = RemoveInstance(instance_name=WEB1)

STORIES = {
    "look at providers": Story(DiagnoseExternalStorage(output_fields=("name",))),
    **{f"create {each}": Story(with_disks_of(each), a_lun) for each in DiskTemplate},
    **{f"remove {each}": Story(REMOVAL, web1_with(each), again=REMOVAL) for each in DiskTemplate},
}

# Nodes that see the same directory move them likewise; told where time does not matter.
_IN_DETAIL = {
    "migrate on external storage": Story(
        MigrateInstance(instance_name=WEB1, target_node="alpha"),
        web1_with(DiskTemplate.EXT),
        again=MigrateInstance(instance_name=WEB1, cleanup=True),
    ),
    "fail over on external storage": Story(
        FailOverInstance(instance_name=WEB1, target_node="beta"), web1_with(DiskTemplate.EXT)
    ),
}

if is_thorough():
    STORIES |= _IN_DETAIL
