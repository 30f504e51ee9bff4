"""What an operator does with snapshots of an instance's disks."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_order

from common.errors import Conflict, GntError, InvalidRequest, NoCapacity, NotFound
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import MiB, NodeName
from common.noderpc.instances import GuestState
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.base import Operation
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.move import MoveInstance
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.snapshot import TakeSnapshot
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.remove_leftovers import RemoveLeftovers
from noded.storage.lvm.volumes import VolumeReport
from tests.sim.settings import GAMMA, WEB1, create, disk
from tests.sim.stories.snapshots import REMOVE, ROLL_BACK, TAKE, with_snapshot, written
from tests.sim.stories.templates import with_disks_of
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import GROUP

EXCHANGED = (disk("remove", 0), disk("add", size=8))


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 running on gamma, with a snapshot, and something else on its disk since."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await with_snapshot(cluster)
            await story(cluster)

    simulate(scenario())


def volumes(cluster: SimulatedCluster) -> dict[str, VolumeReport]:
    return cluster.machines["gamma"].volumes.groups[GROUP].volumes


async def findings(cluster: SimulatedCluster) -> str:
    """Return what verify says of disks."""
    job = await cluster.finished(await cluster.submit(VerifyGroup(group_name="default")))
    told = (entry.message for entry in job.ops[0].log)
    return "\n".join(
        line for line in told if "snapshot" in line or "volume" in line or "file" in line
    )


def contents(cluster: SimulatedCluster) -> list[str]:
    return sorted(cluster.machines["gamma"].contents.values())


def test_a_snapshot_keeps_what_was_there_and_the_guest_goes_on() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert contents(cluster) == ["first", "second"]
        (report,) = await cluster.machines["gamma"].guest_list()
        assert report.state is GuestState.RUNNING

    tell(story)


def test_rolling_back_brings_back_what_was_there_as_often_as_one_likes() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for word in ("third", "fourth"):
            await cluster.run(ShutDownInstance(instance_name=WEB1))
            await cluster.run(ROLL_BACK)
            assert contents(cluster) == ["first", "first"]
            await cluster.run(StartInstance(instance_name=WEB1))
            await written(cluster, word)

    tell(story)


def test_who_runs_is_not_rolled_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match="stop it first"):
            await cluster.run(ROLL_BACK)
        assert contents(cluster) == ["first", "second"]

    tell(story)


def test_a_snapshot_that_there_is_not_is_told_with_those_that_there_are() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match="has a snapshot before already"):
            await cluster.run(TAKE)
        await cluster.run(TakeSnapshot(instance_name=WEB1, name="later"))
        await cluster.run(REMOVE)
        with pytest.raises(NotFound, match="no snapshot before; it has later"):
            await cluster.run(REMOVE)

    tell(story)


@pytest.mark.parametrize(
    ("operation", "undergoing"),
    [
        (GrowDisk(instance_name=WEB1, disk=0, amount=MiB(8)), "grown"),
        (MoveInstance(instance_name=WEB1, target_node=NodeName("beta")), "moved"),
        (RecreateDisks(instance_name=WEB1), "made anew"),
        (ModifyInstance(instance_name=WEB1, disks=EXCHANGED), "taken away"),
        (
            ModifyInstance(
                instance_name=WEB1, disk_template=DiskTemplate.FILE,
            ),
            "converted",
        ),
    ],
)  # fmt: skip
def test_what_snapshots_would_not_survive_is_refused(
    operation: Operation[object, object], undergoing: str
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        with pytest.raises(Conflict, match=f"cannot be {undergoing} while there are snapshots"):
            await cluster.run(operation)

    tell(story)


def test_a_removed_instance_leaves_no_snapshot() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(RemoveInstance(instance_name=WEB1))
        assert volumes(cluster) == {}

    tell(story)


def test_a_disk_that_has_come_since_stands_in_the_way_of_going_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        await cluster.run(ModifyInstance(instance_name=WEB1, disks=(disk("add", size=8),)))
        with pytest.raises(Conflict, match="Disk 1 of web1 has come since the snapshot before"):
            await cluster.run(ROLL_BACK)

    tell(story)


def test_snapshots_take_room_and_are_not_taken_where_there_is_none() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        group = cluster.machines["gamma"].volumes.groups[GROUP]
        group.capacity = MiB(64 + 64 + 32)
        later = TakeSnapshot(instance_name=WEB1, name="later")
        with pytest.raises(NoCapacity, match=re.escape("32 MiB left in")):
            await cluster.run(later)
        await cluster.run(replace_room(later, 16))
        assert group.free == 16

    tell(story)


def replace_room(order: TakeSnapshot, room: int) -> TakeSnapshot:
    return TakeSnapshot(instance_name=order.instance_name, name=order.name, room=MiB(room))


def test_verify_names_what_is_missing_lost_or_left_over_of_snapshots() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert not await findings(cluster)
        (name,) = (name for name, each in volumes(cluster).items() if each.origin)
        kept = volumes(cluster)[name]
        volumes(cluster)[name] = replace(kept, is_lost=True)
        assert "the snapshot before of disk 0 on gamma is of no use" in await findings(cluster)
        del volumes(cluster)[name]
        assert "the snapshot before of disk 0 is missing on gamma" in await findings(cluster)
        await cluster.run(REMOVE)
        volumes(cluster)[name] = kept
        assert f"the volume {GROUP}/{name} is left over" in await findings(cluster)

    tell(story)


def test_a_guest_goes_on_though_its_noded_died_while_it_stood_still() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        gamma = cluster.machines["gamma"]
        await gamma.guests.stand_still(cluster.config.instance("web1").uuid)
        await cluster.restart_noded("gamma")
        await cluster.settle(10.0)
        (report,) = await gamma.guest_list()
        assert report.state is GuestState.RUNNING

    tell(story)


def test_a_guest_that_does_not_answer_keeps_its_snapshots_for_later() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        gamma, uuid = cluster.machines["gamma"], cluster.config.instance("web1").uuid
        gamma.guests.hang(uuid)
        with pytest.raises(GntError):
            await cluster.run(TakeSnapshot(instance_name=WEB1, name="later"))
        gamma.guests.wake(uuid)
        assert len(volumes(cluster)) == 2
        job = await cluster.finished(
            await cluster.submit(TakeSnapshot(instance_name=WEB1, name="later"))
        )
        assert job.status is Status.SUCCESS

    tell(story)


def test_a_guest_with_an_agent_is_frozen_for_a_snapshot_or_an_export_that_wants_that() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            order = create("web1", "gamma", template=DiskTemplate.PLAIN)
            await cluster.run(replace_order(order, hvparams={"use_guest_agent": True}))
            gamma, uuid = cluster.machines["gamma"], cluster.config.instance("web1").uuid
            frozen: list[bool] = []
            gamma.volumes.on_copy = lambda *_: frozen.append(gamma.guests._guests[uuid].is_frozen)
            await cluster.run(replace_order(TAKE, freeze=True))
            export = ExportInstance(
                instance_name=WEB1, target_node="beta", shutdown=False, freeze=True
            )
            await cluster.run(export)
            assert frozen == [True, True]
            assert not gamma.guests._guests[uuid].is_frozen
            with pytest.raises(InvalidRequest, match="give --noshutdown with it"):
                await cluster.run(replace_order(export, shutdown=True))

    simulate(scenario())


def test_without_a_line_to_an_agent_nothing_is_frozen_or_kept() -> None:
    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            await cluster.run(create("web1", "gamma", template=DiskTemplate.PLAIN))
            with pytest.raises(Conflict, match="web1 cannot be frozen"):
                await cluster.run(replace_order(TAKE, freeze=True))
            assert len(volumes(cluster)) == 1

    simulate(scenario())


def test_what_nobody_can_keep_has_no_snapshots() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", template=DiskTemplate.GLUSTER))
            with pytest.raises(InvalidRequest, match="template gluster, which web1 has"):
                await cluster.run(TAKE)

    simulate(scenario())


@pytest.mark.parametrize("template", [DiskTemplate.FILE, DiskTemplate.SHAREDFILE])
def test_files_are_kept_where_their_file_system_shares_data(template: DiskTemplate) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", template=template))
            await written(cluster, "first")
            with pytest.raises(InvalidRequest, match="No snapshot of web1 can be taken on gamma"):
                await cluster.run(TAKE)
            cluster.machines["gamma"].storage.clones = True
            await cluster.run(TAKE)
            await written(cluster, "second")
            assert not await findings(cluster)
            await cluster.run(ShutDownInstance(instance_name=WEB1))
            await cluster.run(ROLL_BACK)
            here = cluster.machines["gamma"].files if template == "file" else cluster.shared
            assert sorted(here.contents.values()) == ["first", "first"]
            await cluster.run(RemoveInstance(instance_name=WEB1))
            assert here.disks == {}

    simulate(scenario())


def test_images_of_ceph_are_kept_and_gone_back_to_on_any_node() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", template=DiskTemplate.RBD))
            await written(cluster, "first")
            await cluster.run(TAKE)
            await written(cluster, "second")
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node=NodeName("beta")))
            await cluster.run(ShutDownInstance(instance_name=WEB1))
            await cluster.run(ROLL_BACK)
            assert sorted(cluster.shared.contents.values()) == ["first", "first"]
            await cluster.run(RemoveInstance(instance_name=WEB1))
            assert cluster.shared.disks == {}

    simulate(scenario())


def test_a_provider_keeps_snapshots_if_it_can_and_goes_back_to_none() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(with_disks_of(DiskTemplate.EXT, "gamma"))
            cluster.machines["gamma"].elsewhere.clones = False
            with pytest.raises(InvalidRequest, match="No snapshot of web1 can be taken on gamma"):
                await cluster.run(TAKE)
            cluster.machines["gamma"].elsewhere.clones = True
            await cluster.run(TAKE)
            await cluster.run(ShutDownInstance(instance_name=WEB1))
            with pytest.raises(InvalidRequest, match="template ext cannot be rolled back"):
                await cluster.run(ROLL_BACK)
            await cluster.run(REMOVE)
            assert len(cluster.shared.disks) == 1

    simulate(scenario())


def test_a_snapshot_is_nothing_that_is_left_over() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        before = sorted(volumes(cluster))
        await cluster.run(RemoveLeftovers(node_name=GAMMA))
        assert sorted(volumes(cluster)) == before

    tell(story)
