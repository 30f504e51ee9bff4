"""Stories of exports, and of instances that are made from them."""

from msgspec.structs import replace

from common.model.template import DiskTemplate
from common.names import InstanceName
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.backup.remove import RemoveExport
from coordinator.operations.instance.startup import StartInstance
from tests.sim.settings import WEB1, create, web1_with_data
from tests.sim.stories.snapshots import with_data
from tests.support.cluster import SimulatedCluster
from tests.support.seeds import is_thorough
from tests.support.story import Story


async def web1_exported_to_beta(cluster: SimulatedCluster) -> None:
    await web1_with_data(cluster)
    await cluster.run(ExportInstance(instance_name=WEB1, target_node="beta", remove_instance=True))


async def debian_with_data(cluster: SimulatedCluster, node: str = "gamma") -> None:
    """Begin with web1 on a node, stopped, with data that scripts of its system can export."""
    order = create("web1", node, template=DiskTemplate.FILE, start=False)
    await cluster.run(
        replace(
            order,
            os_type="debian+stable",
            osparams={"mirror": "near"},
            osparams_private={"root_password": "sesame"},
        )
    )
    for disk in cluster.config.disks_of(cluster.config.instance("web1")):
        cluster.machines[node].files.contents[disk.backing.paths[0]] = "data of web1"


async def debian_on_beta(cluster: SimulatedCluster) -> None:
    await debian_with_data(cluster, "beta")


async def debian_exported(cluster: SimulatedCluster) -> None:
    await debian_on_beta(cluster)
    await cluster.run(ExportInstance(instance_name=WEB1, target_node="alpha", remove_instance=True))


STORIES = {
    "export what runs": Story(
        ExportInstance(instance_name=WEB1, target_node="beta", shutdown=False), with_data,
        again=ExportInstance(instance_name=WEB1, target_node="beta", shutdown=False),
        uncertain=frozenset({"disks gamma", "contents gamma"}),
    ),
    "import": Story(
        ImportInstance(instance_name=WEB1, src_node="beta", pnode="gamma", start=True),
        web1_exported_to_beta,
    ),
    "import by a script": Story(
        ImportInstance(instance_name=WEB1, src_node="alpha", pnode="beta"),
        debian_exported,
        nodes=2,
    ),
    "import by a script, under another name": Story(
        ImportInstance(
            instance_name=InstanceName("shop"), src_node="alpha", src_path="web1", pnode="beta"
        ),
        debian_exported,
        nodes=2,
        uncertain=frozenset({"contents beta"}),  # where it cannot be renamed within
    ),
    "remove an export": Story(
        RemoveExport(instance_name=WEB1), web1_exported_to_beta,
        uncertain=frozenset({"disks beta", "contents beta"}),
    ),
}  # fmt: skip

# What is stopped for it differs in some steps, which take their time.
_IN_DETAIL = {
    "export by a script": Story(
        ExportInstance(instance_name=WEB1, target_node="alpha"), debian_on_beta, nodes=2
    ),
    "export": Story(
        ExportInstance(instance_name=WEB1, target_node="beta"), web1_with_data,
        again=StartInstance(instance_name=WEB1),
    ),
    "export what is stopped for a moment": Story(
        ExportInstance(instance_name=WEB1, target_node="beta"), with_data,
        again=ExportInstance(instance_name=WEB1, target_node="beta"),
        uncertain=frozenset({"disks gamma", "contents gamma"}),
    ),
}  # fmt: skip

if is_thorough():
    STORIES |= _IN_DETAIL
