"""Instances whose files are in a directory that was asked for, below the one of the cluster."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.template import DiskTemplate
from common.names import InstanceName
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.remove import RemoveInstance
from tests.sim.reserving import commit, order, web1
from tests.sim.settings import WEB1, create, disk
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

FILE, DISKLESS, PLAIN = DiskTemplate.FILE, DiskTemplate.DISKLESS, DiskTemplate.PLAIN


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            await story(cluster)

    simulate(scenario())


def directories(cluster: SimulatedCluster, name: InstanceName = WEB1) -> list[str]:
    """Return in which directory below the cluster's each disk of an instance is."""
    config = cluster.config
    instance = config.instance(name)
    told = []
    for each in config.disks_of(instance):
        own = each.backing.where.removeprefix(f"{config.cluster.file_storage_dir}/")
        told.append(own.partition(instance.uuid)[0])
        assert each.backing.where in cluster.machines[_home(cluster, name)].files.disks
    return told


def _home(cluster: SimulatedCluster, name: InstanceName) -> str:
    return cluster.config.nodes[cluster.config.instance(name).primary_node].name


def test_files_are_where_they_were_asked_for_whatever_makes_them() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        made = create("web1", "gamma", template=FILE, start=False)
        await cluster.run(replace(made, file_storage_dir="fast/web"))
        assert directories(cluster) == ["fast/web/"]
        add = ModifyInstance(instance_name=WEB1, disks=(disk("add", size=8),))
        await cluster.run(replace(add, file_storage_dir="slow/"))
        await cluster.run(add)
        assert directories(cluster) == ["fast/web/", "slow/", ""]
        cluster.machines["gamma"].files.disks.clear()
        await cluster.run(RecreateDisks(instance_name=WEB1, nodes=("beta",)))
        assert directories(cluster) == ["fast/web/", "slow/", ""]

    tell(story)


def test_so_are_those_of_an_import_and_of_disks_that_become_files() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", "gamma", template=PLAIN, start=False))
        become = ModifyInstance(instance_name=WEB1, disk_template=FILE, file_storage_dir="fast")
        await cluster.run(become)
        assert directories(cluster) == ["fast/"]
        await cluster.run(ExportInstance(instance_name=WEB1, target_node="beta"))
        await cluster.run(RemoveInstance(instance_name=WEB1))
        await cluster.run(
            ImportInstance(
                instance_name=WEB1, src_node="beta", pnode="gamma", file_storage_dir="slow"
            )
        )
        assert directories(cluster) == ["slow/"]

    tell(story)


def test_what_is_reserved_keeps_its_directory() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await web1(cluster, order("web1", disk_template=FILE, file_storage_dir="fast"))
        other = commit("web1", file_storage_dir="slow")
        with pytest.raises(InvalidRequest, match=r"with files in fast, and .* with slow"):
            await cluster.run(other)
        await cluster.run(commit("web1", file_storage_dir="fast/"))
        assert directories(cluster) == ["fast/"]

    tell(story)


@pytest.mark.parametrize(
    ("template", "directory", "problem"),
    [
        (FILE, "../else", "“../else” is no directory below the cluster's"),
        (PLAIN, "fast", "template plain take no “directory”"),
        (DISKLESS, "fast", "template diskless take no “directory”"),
    ],
)
def test_a_directory_that_cannot_be_is_refused(
    template: DiskTemplate, directory: str, problem: str
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        made = create("web1", "gamma", template=template)
        disks = () if template is DISKLESS else made.disks
        for again in (made, replace(made, forthcoming=True)):
            with pytest.raises(InvalidRequest, match=problem):
                await cluster.run(replace(again, disks=disks, file_storage_dir=directory))
        assert not cluster.config.instances

    tell(story)


def test_a_directory_for_no_new_file_is_refused() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", "gamma", template=FILE, start=False))
        nothing = ModifyInstance(instance_name=WEB1, file_storage_dir="fast")
        for given in (
            nothing,
            replace(nothing, beparams={"vcpus": 2}),
            replace(nothing, disks=(disk("modify", 0, name="root"),)),
        ):
            with pytest.raises(InvalidRequest, match="A directory is for new disks"):
                await cluster.run(given)
        with pytest.raises(InvalidRequest, match="take no “directory”"):
            await cluster.run(replace(nothing, disk_template=PLAIN))
        await cluster.run(create("web2", "gamma", template=PLAIN, start=False))
        wrong = ModifyInstance(
            instance_name=InstanceName("web2"),
            disks=(disk("add", size=8),),
            file_storage_dir="fast",
        )
        with pytest.raises(InvalidRequest, match="template plain take no “directory”"):
            await cluster.run(wrong)

    tell(story)


@pytest.mark.parametrize(
    "given", [{"directory": "fast"}, {"format": "qcow2"}, {"name": "root"}, {"vg": "fast"}]
)
def test_a_disk_is_made_anew_where_it_was_and_as_it_was(given: dict[str, str]) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", "gamma", template=FILE, start=False))
        cluster.machines["gamma"].files.disks.clear()
        anew = RecreateDisks(instance_name=WEB1, disks=((0, {"size": 72} | given),))
        with pytest.raises(InvalidRequest, match=f"leave out “{next(iter(given))}”"):
            await cluster.run(anew)
        await cluster.run(replace(anew, disks=((0, {"size": 72}),)))
        assert directories(cluster) == [""]

    tell(story)
