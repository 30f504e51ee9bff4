"""Instances whose disks are images of QEMU's format, on one node or seen by all."""

from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure
from common.model.backing import FileBacking, Qcow2Backing
from common.model.disk import Mode
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceName, MiB, NodeName
from common.noderpc.disks import DiskSpec
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.move import MoveInstance
from coordinator.operations.instance.query_data import QueryInstanceData
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.specs import present_guest
from coordinator.queries.field import Missing
from noded.storage.fake import FakeStorage
from tests.sim.settings import ALPHA, WEB1, create, disk
from tests.sim.stories.snapshots import REMOVE, ROLL_BACK, TAKE, written
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

STOP = ShutDownInstance(instance_name=WEB1)


def tell(
    story: Callable[[SimulatedCluster], Awaitable[None]],
    *,
    template: DiskTemplate = DiskTemplate.FILE,
) -> None:
    """Begin with web1 running on gamma, with a word on a disk that is an image."""

    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            order = create("web1", "gamma", template=template)
            order = replace(order, disks=(DiskRequest(size="64M", format="qcow2"),))
            await cluster.run(order)
            await written(cluster, "first")
            await story(cluster)

    simulate(scenario())


def backing(cluster: SimulatedCluster) -> FileBacking:
    (only,) = cluster.config.disks_of(cluster.config.instance("web1"))
    assert isinstance(only.backing, FileBacking)
    return only.backing


def contents(cluster: SimulatedCluster, node: str = "gamma") -> list[str]:
    return sorted(cluster.machines[node].contents.values())


async def findings(cluster: SimulatedCluster) -> str:
    job = await cluster.finished(await cluster.submit(VerifyGroup(group_name="default")))
    return "\n".join(
        e.message for e in job.ops[0].log if "disk" in e.message or "file" in e.message
    )


def test_an_image_that_a_guest_may_only_read_does_not_grow_while_it_does() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            request = DiskRequest(size="64M", format="qcow2", mode=Mode.READ_ONLY)
            order = create("web1", "gamma", template=DiskTemplate.FILE)
            await cluster.run(replace(order, disks=(request,)))
            grow = GrowDisk(instance_name=WEB1, disk=0, amount=MiB(8))
            with pytest.raises(Conflict, match="may only read, and cannot grow meanwhile"):
                await cluster.run(grow)
            await cluster.run(STOP)
            await cluster.run(grow)
            (only,) = cluster.config.disks_of(cluster.config.instance("web1"))
            assert only.size == 72

    simulate(scenario())


def test_snapshots_are_kept_inside_and_gone_back_to_on_any_file_system() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert isinstance(backing(cluster), Qcow2Backing)
        assert not cluster.machines["gamma"].storage.clones
        before = await findings(cluster)
        await cluster.run(TAKE)
        await written(cluster, "second")
        assert contents(cluster) == ["first", "second"]
        assert await findings(cluster) == before
        with pytest.raises(Conflict, match="cannot be grown while there are snapshots"):
            await cluster.run(GrowDisk(instance_name=WEB1, disk=0, amount=MiB(8)))
        await cluster.run(STOP)
        await cluster.run(ROLL_BACK)
        assert contents(cluster) == ["first", "first"]
        await cluster.run(REMOVE)
        assert contents(cluster) == ["first"]
        await cluster.run(TAKE)
        await cluster.run(RemoveInstance(instance_name=WEB1))
        assert contents(cluster) == []

    tell(story)


def test_what_an_image_takes_by_now_is_told_by_lists() -> None:
    async def taken(cluster: SimulatedCluster, name: str) -> object:
        status, value = (
            await cluster.master.luxi("Query", "instance", ["disk.allocated"], ["=", "name", name])
        )["data"][0][0]
        return value if status == 0 else Missing(status)

    async def story(cluster: SimulatedCluster) -> None:
        assert await taken(cluster, "web1") == [64]
        add = ModifyInstance(
            instance_name=WEB1,
            disks=(disk("add", size=8, format="qcow2"), disk("add", size=8, format="raw")),
        )
        await cluster.run(add)
        assert await taken(cluster, "web1") == [64, 0, None]
        await cluster.run(create("web2", "gamma", template=DiskTemplate.FILE))
        assert await taken(cluster, "web2") is Missing.UNAVAILABLE
        await cluster.lose_power("gamma")
        assert await taken(cluster, "web1") is Missing.NO_DATA
        await cluster.run(ModifyNode(node_name=NodeName("gamma"), offline=True, force=True))
        assert await taken(cluster, "web1") is Missing.OFFLINE

    tell(story)


def test_an_image_is_moved_and_made_anew_as_one() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(MoveInstance(instance_name=WEB1, target_node=ALPHA))
        assert contents(cluster, "alpha") == ["first"]
        assert isinstance(backing(cluster), Qcow2Backing)
        await cluster.run(STOP)
        cluster.machines["alpha"].files.disks.clear()
        await cluster.run(RecreateDisks(instance_name=WEB1, nodes=("beta",)))
        assert isinstance(backing(cluster), Qcow2Backing)

    tell(story)


def test_an_image_goes_through_an_export_and_becomes_another_kind_of_disk() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ExportInstance(instance_name=WEB1, target_node="beta"))
        await cluster.run(RemoveInstance(instance_name=WEB1))
        await cluster.run(
            ImportInstance(
                instance_name=WEB1, src_node="beta", disk_template=DiskTemplate.FILE, pnode="gamma",
                disks=(DiskRequest(size="64M", format="qcow2"),),
            )
        )  # fmt: skip
        assert isinstance(backing(cluster), Qcow2Backing)
        assert contents(cluster) == ["first"]
        await cluster.run(ModifyCluster(diskparams={"file": {"format": "qcow2"}}))
        for template in (DiskTemplate.PLAIN, DiskTemplate.FILE):
            await cluster.run(ModifyInstance(instance_name=WEB1, disk_template=template))
            assert contents(cluster) == ["first"]
        assert isinstance(backing(cluster), Qcow2Backing)

    tell(story)


def test_what_the_cluster_says_of_new_files_holds_unless_a_disk_is_told_otherwise() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(diskparams={"sharedfile": {"format": "qcow2"}}))
        await cluster.run(create("web2", "alpha", start=False))
        raw = DiskRequest(size="64M", format="raw")
        web2 = ModifyInstance(instance_name=InstanceName("web2"), disks=(disk("add", size=8),))
        await cluster.run(web2)
        await cluster.run(replace(create("web3", "alpha"), disks=(raw,)))
        config = cluster.config
        kinds = [
            [type(each.backing) for each in config.disks_of(config.instance(name))]
            for name in ("web2", "web3")
        ]
        assert kinds == [[Qcow2Backing, Qcow2Backing], [FileBacking]]

    tell(story)


@pytest.mark.parametrize(
    ("template", "wish", "problem"),
    [
        (DiskTemplate.FILE, "vmdk", "has the format raw or qcow2, and not “vmdk”"),
        (DiskTemplate.GLUSTER, "qcow2", "take no “format”"),
        (DiskTemplate.PLAIN, "qcow2", "take no “format”"),
    ],
)
def test_a_format_that_there_is_not_is_refused(
    template: DiskTemplate, wish: str, problem: str
) -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            order = create("web1", "gamma", template=template)
            order = replace(order, disks=(DiskRequest(size="64M", format=wish),))
            with pytest.raises(InvalidRequest, match=problem):
                await cluster.run(order)

    simulate(scenario())


def test_an_image_that_all_nodes_see_moves_with_its_guest_and_snapshots() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(TAKE)
        await cluster.run(MigrateInstance(instance_name=WEB1, target_node=NodeName("beta")))
        await written(cluster, "second")
        await cluster.run(STOP)
        await cluster.run(ROLL_BACK)
        assert sorted(cluster.shared.contents.values()) == ["first", "first"]

    tell(story, template=DiskTemplate.SHAREDFILE)


def test_an_image_that_cannot_be_looked_at_hides_nothing_else_of_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_: FakeStorage, disk: DiskSpec) -> str:
        message = f"{disk.id} cannot be opened."
        raise NodeFailure(message)

    async def story(cluster: SimulatedCluster) -> None:
        (of,) = present_guest(cluster.config, cluster.config.instance("web1")).disks
        orphan = DiskId("dddddddd-0000-4000-8000-00000000000f")
        assert isinstance(of.backing, Qcow2Backing)
        path = of.backing.path.replace(of.id, orphan)
        monkeypatch.setattr(FakeStorage, "problem", fail)
        await cluster.machines["gamma"].storage.ensure_present(
            replace(of, id=orphan, backing=replace(of.backing, path=path))
        )
        told = await findings(cluster)
        assert f"on gamma: {of.id} cannot be opened." in told
        assert f"the file {path} belongs to no instance" in told

    tell(story)


def test_what_an_image_takes_is_told_beside_its_size() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyInstance(instance_name=WEB1, disks=(disk("add", size=8),)))
        told = await cluster.run(QueryInstanceData(instances=(WEB1,)))
        found = [(each["size"], each["allocated"]) for each in told["web1"]["disks"]]
        assert found == [(64, 64), (8, None)]

    tell(story)


def test_verify_names_an_image_that_is_damaged_or_gone() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        files, path = cluster.machines["gamma"].files, backing(cluster).path
        files.bad.add(path)
        assert f"disk 0 ({path}) on gamma: Its image is bad." in await findings(cluster)
        files.disks.clear()
        assert f"disk 0 ({path}) is missing on gamma" in await findings(cluster)

    tell(story)
