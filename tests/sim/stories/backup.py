"""Stories of exports, and of instances that are made from them."""

from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.backup.remove import RemoveExport
from coordinator.operations.instance.startup import StartInstance
from tests.sim.settings import WEB1, web1_with_data
from tests.support.cluster import SimulatedCluster
from tests.support.story import Story


async def web1_exported_to_beta(cluster: SimulatedCluster) -> None:
    await web1_with_data(cluster)
    await cluster.run(ExportInstance(instance_name=WEB1, target_node="beta", remove_instance=True))


STORIES = {
    "export": Story(
        ExportInstance(instance_name=WEB1, target_node="beta"), web1_with_data,
        again=StartInstance(instance_name=WEB1),
    ),
    "import": Story(
        ImportInstance(instance_name=WEB1, src_node="beta", pnode="gamma"), web1_exported_to_beta
    ),
    "remove an export": Story(
        RemoveExport(instance_name=WEB1), web1_exported_to_beta,
        uncertain=frozenset({"disks beta", "contents beta"}),
    ),
}  # fmt: skip
