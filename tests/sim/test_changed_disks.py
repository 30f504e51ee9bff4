"""Disks of an instance are added, changed, removed, attached and detached as asked."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NoCapacity, NodeFailure, NotFound
from common.model.template import DiskTemplate
from common.names import InstanceName, MiB
from coordinator.operations.cluster.destroy import DestroyCluster
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.remove_disk import RemoveDisk
from coordinator.operations.cluster.verify_config import VerifyConfig
from coordinator.operations.devices import DiskRequest, check_names
from coordinator.operations.instance.disk_changes import DiskChange
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from coordinator.state.rows import Put
from tests.sim.settings import GAMMA, WEB1, added, create, disk
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

DB1 = InstanceName("db1")


def modify(*disks: DiskChange, name: InstanceName = WEB1, **fields: Any) -> ModifyInstance:
    return ModifyInstance(instance_name=name, disks=disks, **fields)


def tell(
    story: Callable[[SimulatedCluster], Awaitable[None]],
    *,
    template: DiskTemplate = DiskTemplate.FILE,
) -> None:
    """Begin with web1 running on gamma, with a disk of 64 MiB."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", template=template))
            await story(cluster)

    simulate(scenario())


def sizes(cluster: SimulatedCluster, name: str = "web1") -> list[int]:
    config = cluster.config
    return [int(each.size) for each in config.disks_of(config.instance(name))]


def seen(cluster: SimulatedCluster, node: str = "gamma", name: str = "web1") -> dict[int, int]:
    """Return the disks that the guest itself has: slots, and sizes."""
    return cluster.machines[node].guests.seen(cluster.config.instance(name).uuid)


async def log_of(cluster: SimulatedCluster, operation: ModifyInstance) -> str:
    job = await cluster.finished(await cluster.submit(operation))
    assert job.ops[0].failure is None
    return " ".join(entry.message for entry in job.ops[0].log)


def test_a_detached_disk_is_deleted_and_one_that_is_not_detached_is_not() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(disk("add", size=32, name="data")))
        with pytest.raises(NotFound, match="no detached disk “data”"):
            await cluster.run(RemoveDisk(disk_name="data"))
        await cluster.run(modify(disk("detach", "data"), hotplug=True))
        assert [each.name for each in cluster.config.detached_disks()] == ["data"]
        await cluster.run(RemoveDisk(disk_name="data"))
        assert not cluster.config.detached_disks()
        assert len(cluster.machines["gamma"].local_disks) == 1
        assert await cluster.run(VerifyConfig()) is True

    tell(story)


def test_a_detached_disk_of_a_node_that_is_away_is_not_forgotten() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(disk("add", size=32, name="data")))
        await cluster.run(modify(disk("detach", "data"), hotplug=True))
        await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
        with pytest.raises(Conflict, match="bring one back"):
            await cluster.run(RemoveDisk(disk_name="data"))
        assert [each.name for each in cluster.config.detached_disks()] == ["data"]

    tell(story)


def test_the_directory_of_a_detached_disk_stays_the_clusters() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(disk("add", size=32, name="data")))
        await cluster.run(modify(disk("detach", "data"), hotplug=True))
        await cluster.run(RemoveInstance(instance_name=WEB1))
        elsewhere = ModifyCluster(file_storage_dir="/srv/other")
        with pytest.raises(Conflict, match="belongs to no instance, is in the directory"):
            await cluster.run(elsewhere)
        await cluster.run(RemoveDisk(disk_name="data"))
        await cluster.run(elsewhere)

    tell(story)


def test_disks_come_and_go_at_once_with_hotplug() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        result = await cluster.run(
            modify(disk("add", 0, size=32, name="swap"), disk("add", size="1G"), hotplug=True)
        )
        assert result == [["disk/0", "add:size=32,mode=rw"], ["disk/2", "add:size=1024,mode=rw"]]
        assert (sizes(cluster), seen(cluster)) == ([32, 64, 1024], {1: 32, 0: 64, 2: 1024})
        assert await cluster.run(modify(disk("remove", "swap"), hotplug=True)) == [
            ["disk/0", "remove"]
        ]
        assert (sizes(cluster), seen(cluster)) == ([64, 1024], {0: 64, 2: 1024})
        assert len(cluster.machines["gamma"].local_disks) == 2

    tell(story)


def test_what_runs_moves_with_disks_that_came_and_went() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(disk("add", size=32), disk("add", size=48), hotplug=True))
        await cluster.run(modify(disk("remove", 1), hotplug=True))
        await cluster.run(MigrateInstance(instance_name=WEB1, target_node="beta"))
        assert seen(cluster, "beta") == {0: 64, 2: 48}
        await cluster.run(RebootInstance(instance_name=WEB1))
        assert seen(cluster, "beta") == {0: 64, 1: 48}

    tell(story, template=DiskTemplate.SHAREDFILE)


def test_without_hotplug_disks_come_at_the_next_start_and_that_is_said() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert "takes effect" in await log_of(cluster, modify(disk("add", size=32)))
        assert (sizes(cluster), seen(cluster)) == ([64, 32], {0: 64})
        with pytest.raises(Conflict, match="was given other disks since it was started"):
            await cluster.run(MigrateInstance(instance_name=WEB1, target_node="beta"))
        told = await log_of(cluster, modify(disk("add", size=48), hotplug_if_possible=True))
        assert "takes effect" not in told
        assert seen(cluster) == {0: 64, 1: 32, 2: 48}  # what was to come is there, too
        await cluster.run(MigrateInstance(instance_name=WEB1, target_node="beta"))

    tell(story, template=DiskTemplate.SHAREDFILE)


def test_without_hotplug_nothing_is_taken_from_what_runs() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(disk("add", size=32), hotplug=True))
        for action in ("remove", "detach"):
            with pytest.raises(Conflict, match="web1 runs and uses disk 1: with --hotplug"):
                await cluster.run(modify(disk(action, 1)))
        assert seen(cluster) == {0: 64, 1: 32}

    tell(story)


def test_a_guest_that_does_not_let_go_keeps_its_disk() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(disk("add", size=32), hotplug=True))
        cluster.machines["gamma"].guests.deafen(cluster.config.instance("web1").uuid)
        with pytest.raises(NodeFailure, match="asked to let go of a disk"):
            await cluster.run(modify(disk("remove", 1), disk("add", size=16), hotplug=True))
        assert (sizes(cluster), seen(cluster)) == ([64, 32], {0: 64, 1: 32})
        assert len(cluster.machines["gamma"].local_disks) == 2

    tell(story)


def test_a_detached_disk_goes_from_one_instance_to_another() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("db1", "gamma", template=DiskTemplate.FILE))
        await cluster.run(modify(disk("add", size=32, name="data"), hotplug=True))
        path = cluster.config.disks_of(cluster.config.instance("web1"))[1].backing.paths[0]
        await cluster.run(modify(disk("detach", "data"), hotplug=True))
        assert await cluster.run(VerifyConfig(findings=True)) == []
        with pytest.raises(NotFound, match="no detached disk “swap”"):
            await cluster.run(modify(disk("attach", name="swap"), name=DB1))
        result = await cluster.run(modify(disk("attach", 0, name="data"), name=DB1, hotplug=True))
        assert result == [["disk/0", "attach:size=32,mode=rw,name=data"]]
        assert (sizes(cluster, "db1"), seen(cluster, name="db1")) == ([32, 64], {1: 32, 0: 64})
        await cluster.run(RemoveInstance(instance_name=WEB1))
        assert path in cluster.machines["gamma"].local_disks
        await cluster.run(RemoveInstance(instance_name=DB1))
        assert cluster.machines["gamma"].local_disks == []

    tell(story)


def test_a_detached_disk_keeps_its_node_and_goes_to_nobody_twice() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("db1", "beta", template=DiskTemplate.FILE))
        await cluster.run(create("db2", "gamma", template=DiskTemplate.SHAREDFILE))
        await cluster.run(create("db3", "gamma", template=DiskTemplate.FILE))
        await cluster.run(modify(disk("add", size=32, name="data"), hotplug=True))
        await cluster.run(modify(disk("detach", 1), hotplug=True))
        for name, said in (("db1", "is on gamma, and db1 on beta"), ("db2", "template file")):
            with pytest.raises(Conflict, match=said):
                await cluster.run(modify(disk("attach", name="data"), name=InstanceName(name)))
        takers = [
            modify(disk("attach", name="data"), name=InstanceName(n)) for n in ("web1", "db3")
        ]
        jobs = [await cluster.submit(taker) for taker in takers]
        failures = [(await cluster.finished(job)).ops[0].failure for job in jobs]
        assert len([failure for failure in failures if failure]) == 1
        owners = [len(cluster.config.instance(name).disks) for name in ("web1", "db3")]
        assert sorted(owners) == [1, 2]

    tell(story)


def test_a_disk_is_attached_once_however_often_it_is_named() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(disk("add", size=32), hotplug=True))
        await cluster.run(modify(disk("detach", 1), hotplug=True))
        (detached,) = cluster.config.detached_disks()
        attach = disk("attach", uuid=detached.uuid)
        with pytest.raises(InvalidRequest, match="cannot be attached twice"):
            await cluster.run(modify(attach, attach, hotplug=True))
        assert (sizes(cluster), seen(cluster)) == ([64], {0: 64})
        await cluster.run(modify(attach, hotplug=True))
        assert (sizes(cluster), seen(cluster)) == ([64, 32], {0: 64, 1: 32})

    tell(story)


def test_a_node_with_a_detached_disk_stays_and_so_does_its_cluster() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(disk("add", size=32), hotplug=True))
        await cluster.run(modify(disk("detach", 1), hotplug=True))
        await cluster.run(RemoveInstance(instance_name=WEB1))
        with pytest.raises(Conflict, match=r"gamma still has the disk .* belongs to no instance"):
            await cluster.run(RemoveNode(node_name=GAMMA))
        with pytest.raises(Conflict, match=r"cluster still has the disk .* belongs to no instance"):
            await cluster.run(DestroyCluster())

    tell(story)


REFUSED: list[tuple[DiskChange, type[Exception], str]] = [  # and how
    (disk("add"), InvalidRequest, "size"),
    (disk("add", size=0), InvalidRequest, "at least 1 MiB"),
    (disk("add", 2, size=1), InvalidRequest, "the numbers 0 to 1"),
    (disk("add", size=1, vg="xenvg"), InvalidRequest, "take no “vg”"),
    (disk("add", size=1 << 19), NoCapacity, "MiB left"),
    (disk("add", size=1 << 21), Conflict, "does not allow web1"),
    (disk("remove", 1), NotFound, "has no disk 1"),
    (disk("remove", 0), InvalidRequest, "would be left without a disk"),
    (disk("remove", 0, size=1), InvalidRequest, "nothing about it can be set"),
    (disk("modify", 0, size=1), InvalidRequest, "grow-disk web1 0 AMOUNT"),
    (disk("modify", 0, mode="x"), InvalidRequest, "mode"),
    (disk("modify", 0), InvalidRequest, "Nothing to change"),
    (disk("attach", 0), InvalidRequest, "attach:uuid="),
]


def test_what_cannot_be_is_named() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["gamma"].files.capacity = MiB(1000)
        before = cluster.config
        for change, kind, said in REFUSED:
            with pytest.raises(kind, match=said):
                await cluster.run(modify(change, hotplug=True))
            assert cluster.config == before, change
            assert (sizes(cluster), seen(cluster)) == ([64], {0: 64}), change

    tell(story)


def test_a_name_means_one_disk_of_an_instance() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        add = disk("add", size=64, name="data")
        with pytest.raises(InvalidRequest, match="cannot both be called “data”"):
            await cluster.run(modify(add, add))
        await cluster.run(modify(add))
        with pytest.raises(InvalidRequest, match="cannot both be called “data”"):
            await cluster.run(modify(disk("modify", 0, name="data")))
        order = create("web2", "gamma", start=False)
        with pytest.raises(InvalidRequest, match="Two disks of an instance cannot both"):
            await cluster.run(replace(order, disks=(DiskRequest(size=64, name="a"),) * 2))

    tell(story)


def test_disks_that_an_older_version_called_the_same_stay() -> None:
    one, other = DiskRequest(size=1, name="a"), DiskRequest(size=1, name="b")
    check_names((one, one, other), kind="disk", before=(one, one))
    with pytest.raises(InvalidRequest, match="both be called “b”"):
        check_names((one, one, other, other), kind="disk", before=(one, one, other))


def test_what_an_older_version_called_the_same_is_changed_as_before() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(modify(disk("add", size=64), nics=(added(-1),)))
        web1 = cluster.config.instance("web1")
        disks, nics = cluster.config.disks_of(web1), cluster.config.nics_of(web1)
        twins = [replace(each, name="data") for each in disks]
        others = [replace(each, name="lan") for each in nics]
        await cluster.master.running.store.commit([*map(Put, twins), *map(Put, others)])
        await cluster.run(modify(disk("add", size=64), nics=(added(-1),)))
        web1 = cluster.config.instance("web1")
        assert [each.name for each in cluster.config.disks_of(web1)] == ["data", "data", ""]
        assert [each.name for each in cluster.config.nics_of(web1)] == ["lan", "lan", ""]

    tell(story)


def test_an_instance_has_at_most_sixteen_disks() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        more = [disk("add", size=1)] * 16
        with pytest.raises(InvalidRequest, match="at most 16 disks; web1 would have more"):
            await cluster.run(modify(*more, hotplug=True))
        await cluster.run(modify(*more[:15], hotplug=True))
        assert len(seen(cluster)) == 16

    tell(story)
