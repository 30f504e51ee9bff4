"""Nodes on which no physical volume of an instance's disks is another one's, too."""

import asyncio

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NoCapacity
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import InstanceName, MiB, NodeName
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.importing import ImportInstance
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.commit import CommitInstance
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.move import MoveInstance
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.reserve import ReserveInstance
from coordinator.operations.instance.snapshot import TakeSnapshot
from tests.sim.exclusive import DISK_THAT_FILLS, devices, findings, free, tell
from tests.sim.settings import WEB1, apart, create, disk
from tests.support.cluster import SimulatedCluster
from tests.support.image import GROUP


def test_each_instance_has_its_own_and_nodes_tell_what_is_left() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(apart("web1", "gamma", spindles=2))
        await cluster.run(apart("web2", "gamma"))
        one, other = devices(cluster)
        assert (len(one), len(other)) == (2, 1)
        assert not {*one} & {*other}
        assert await free(cluster) == {"alpha": 3, "beta": 3, "gamma": 0}
        fields = ["disk.spindles", "disk.spindles/0"]
        assert await cluster.master.luxi("QueryInstances", ("web1",), fields) == [[[2], 2]]
        with pytest.raises(NoCapacity, match="gamma has 0 spindles left in the volume group"):
            await cluster.run(apart("web3", "gamma"))
        assert await findings(cluster) == []

    tell(story)


def test_a_node_is_found_that_has_as_many_and_none_where_there_is_none() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for number in range(3):
            await cluster.run(apart(f"web{number}"))
        assert sorted((await free(cluster)).values()) == [0, 3, 3]  # room for large ones is kept
        with pytest.raises(NoCapacity, match="with 3 spindles left in the volume group gantry"):
            await cluster.run(apart("web3", spindles=4))
        await cluster.run(apart("web4", spindles=3))
        assert sorted((await free(cluster)).values()) == [0, 0, 3]

    tell(story)


def test_two_jobs_at_once_do_not_get_the_same() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        orders = [apart(f"web{number}", "gamma", spindles=2) for number in range(2)]
        numbers = [await cluster.submit(order) for order in orders]
        jobs = [await cluster.finished(number) for number in numbers]
        assert sorted(job.status for job in jobs) == [Status.ERROR, Status.SUCCESS]
        (failure,) = [job.ops[0].failure for job in jobs if job.ops[0].failure]
        assert "1 spindles left in the volume group gantry" in failure.message
        assert [len(each) for each in devices(cluster)] == [2]

    tell(story)


def test_what_is_reserved_counts() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        order = apart("web1", "gamma", spindles=2)
        told = {name: getattr(order, name) for name in order.__struct_fields__}
        await cluster.run(ReserveInstance(**(told | {"forthcoming": True})))
        other = told | {"commit": True, "disks": (DiskRequest(size="64M", spindles=1),)}
        with pytest.raises(NoCapacity, match="and 2 spindles are needed for web2"):
            await cluster.run(apart("web2", "gamma", spindles=2))
        assert await free(cluster) == {"alpha": 3, "beta": 3, "gamma": 3}
        with pytest.raises(InvalidRequest, match="was reserved with spindles of"):
            await cluster.run(CommitInstance(**other))
        await cluster.run(CommitInstance(**(told | {"commit": True})))
        assert await free(cluster) == {"alpha": 3, "beta": 3, "gamma": 1}

    tell(story)


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (create("web1", "gamma"), "where disks are plain ones, not sharedfile"),
        (
            create("web1", "gamma", "beta", template=DiskTemplate.DRBD),
            "where disks are plain ones, not drbd",
        ),
        (create("web1", template=DiskTemplate.FILE), "where disks are plain ones, not file"),
        (create("web1", "gamma", template=DiskTemplate.PLAIN), "say how many spindles disk 0"),
        (create("web1", template=DiskTemplate.PLAIN), "say how many spindles disk 0"),
        (
            replace(apart("web1", "gamma"), disks=(DiskRequest(size=971, spindles=1),)),
            "spindles of 970 MiB, so disk 0 needs 2 of them for its 971 MiB, and has 1",
        ),
    ],
)
def test_what_could_not_be_kept_apart_is_refused(order: CreateInstance, says: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises((Conflict, NoCapacity), match=says):
            await cluster.run(order)
        assert devices(cluster) == []

    tell(story)


@pytest.mark.parametrize("spindles", [0, -1, "two", 1000, "1.5"])
def test_a_number_that_makes_no_sense_is_refused(spindles: int | str) -> None:
    with pytest.raises(ValueError, match="spindles is a number from 1 to 999"):
        DiskRequest(size=8, spindles=spindles)


def test_a_disk_that_is_added_has_its_own_and_grows_on_them() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(apart("web1", "gamma"))
        with pytest.raises(Conflict, match="say how many spindles disk 1 has"):
            await cluster.run(ModifyInstance(instance_name=WEB1, disks=(disk("add", size=32),)))
        change = disk("add", size=32, spindles=1)
        await cluster.run(ModifyInstance(instance_name=WEB1, disks=(change,)))
        (one,), (other,) = devices(cluster)
        assert one != other
        await cluster.run(GrowDisk(instance_name=WEB1, disk=1, amount=MiB(900)))
        with pytest.raises(NoCapacity, match="needs 2 of them for its 1032 MiB, and has 1"):
            await cluster.run(GrowDisk(instance_name=WEB1, disk=1, amount=MiB(100)))
        assert devices(cluster) == [(one,), (other,)]
        assert (await free(cluster))["gamma"] == 1

    tell(story)


def test_what_is_kept_of_a_disk_is_beside_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(apart("web1", "gamma"))
        await cluster.run(TakeSnapshot(instance_name=WEB1, name="before", room=MiB(64)))
        one, kept = devices(cluster)
        assert one == kept
        with pytest.raises(NoCapacity, match="needs 2 of them"):
            await cluster.run(TakeSnapshot(instance_name=WEB1, name="again", room=MiB(900)))

    tell(story)


def test_an_export_stops_an_instance_that_has_no_room_for_a_snapshot() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(replace(apart("web1", "gamma"), disks=(DISK_THAT_FILLS,)))
        running = ExportInstance(instance_name=WEB1, target_node=NodeName("beta"), shutdown=False)
        with pytest.raises(NoCapacity, match="needs 2 of them"):
            await cluster.run(running)
        await cluster.run(replace(running, shutdown=True))
        assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}
        made = ImportInstance(
            instance_name=InstanceName("web2"), src_node="beta", src_path="web1", pnode="alpha",
            nics=(), disks=(DISK_THAT_FILLS,), disk_template=DiskTemplate.PLAIN,
        )  # fmt: skip
        with pytest.raises(Conflict, match="say how many spindles disk 0"):
            await cluster.run(replace(made, disks=()))
        await cluster.run(made)
        assert len(devices(cluster, "alpha")) == 1

    tell(story)


def test_how_many_more_fit_is_counted_in_spindles() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(apart("web1", "gamma"))
        await asyncio.sleep(2.0)  # what nodes told before is too old then
        question = {"type": "capacity", "disk_template": "plain"}
        disks = [{"size": 64, "spindles": 2}]
        told = await cluster.master.luxi("AskAllocator", question | {"disks": disks})
        assert told["count"] == 3
        disks = [{"size": 64, "spindles": 3}]
        told = await cluster.master.luxi("AskAllocator", question | {"disks": disks})
        assert (told["count"], set(told["refused"])) == (2, {"alpha", "beta", "gamma"})

    tell(story)


def test_an_instance_moves_to_empty_ones() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(apart("web1", "gamma", spindles=2))
        await cluster.run(apart("web2", "beta", spindles=2))
        with pytest.raises(NoCapacity, match="beta has 1 spindles left"):
            await cluster.run(MoveInstance(instance_name=WEB1, target_node=NodeName("beta")))
        await cluster.run(MoveInstance(instance_name=WEB1, target_node=NodeName("alpha")))
        assert await free(cluster) == {"alpha": 1, "beta": 1, "gamma": 3}

    tell(story)


def test_disks_are_made_anew_with_as_many_or_as_said() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(apart("web1", "gamma", start=False))
        cluster.machines["gamma"].volumes.groups[GROUP].volumes.clear()
        told = RecreateDisks(instance_name=WEB1, disks=((0, {"spindles": 3}),))
        await cluster.run(told)
        assert [len(each) for each in devices(cluster)] == [3]
        (made,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert made.spindles == 3

    tell(story)
