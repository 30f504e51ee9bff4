"""Disks grow to where they should be, on all nodes that have them, and guests see it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NoCapacity, NodeFailure, NotFound
from common.model.disk import Mode
from common.model.template import DiskTemplate
from common.names import InstanceName, MiB
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.state.rows import Put
from noded.storage.lvm.volumes import VolumeReport
from tests.sim.settings import GAMMA, WEB1, mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.faults import Failing
from tests.support.network import Trip

TWO_DISKS = CreateInstance(
    instance_name=WEB1, disk_template=DiskTemplate.FILE, pnode="gamma",
    disks=(DiskRequest(size=64), DiskRequest(size=128, name="data")),
)  # fmt: skip


def grow(disk: int | str, amount: int, **more: Any) -> GrowDisk:
    return GrowDisk(instance_name=WEB1, disk=disk, amount=MiB(amount), **more)


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 running on gamma, with disks of 64 and 128 MiB there."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(TWO_DISKS)
            await story(cluster)

    simulate(scenario())


def sizes(cluster: SimulatedCluster) -> tuple[list[int], list[int], list[int]]:
    """Return the sizes of web1's disks: recorded, on gamma, and as the guest sees them."""
    config, gamma = cluster.config, cluster.machines["gamma"]
    web1 = config.instance("web1")
    disks = config.disks_of(web1)
    real = [gamma.files.disks[disk.backing.paths[0]].size for disk in disks]
    has = gamma.guests.has(web1.uuid)
    seen = list(gamma.guests.seen(web1.uuid).values()) if has else []
    return [disk.size for disk in disks], [int(size) for size in real], seen


async def log_of(cluster: SimulatedCluster, operation: GrowDisk) -> str:
    job = await cluster.finished(await cluster.submit(operation))
    assert job.ops[0].failure is None
    return " ".join(entry.message for entry in job.ops[0].log)


def test_disks_are_found_by_number_name_and_uuid() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(grow(0, 32))
        await cluster.run(grow("data", 256, absolute=True))
        uuid = cluster.config.instance("web1").disks[0]
        await cluster.run(grow(uuid, 4))
        assert sizes(cluster) == ([100, 256],) * 3
        for which in (2, "swap"):
            with pytest.raises(NotFound, match=f"has no disk {which}; it has 2, counted from 0"):
                await cluster.run(grow(which, 1))

    tell(story)


def tell_of_mirrored(story: Callable[[SimulatedCluster], Awaitable[None]], *, start: bool) -> None:
    """Begin with web1 on gamma, its disk of 64 MiB on beta, too."""

    async def scenario() -> None:
        async with simulated_cluster(candidates=1) as cluster:
            await cluster.run(mirrored(start=start))
            await story(cluster)

    simulate(scenario())


@pytest.mark.parametrize("start", [True, False], ids=["up", "down"])
def test_a_mirrored_disk_grows_whether_its_instance_runs_or_not(start: bool) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(grow(0, 32))
        for name in ("beta", "gamma"):
            sizes = {each.size for each in _data_on(cluster, name)}
            assert sizes == {96}
        if not start:
            await cluster.run(StartInstance(instance_name=WEB1))
        assert {end.size for end in cluster.pairs.ends} == {96}

    tell_of_mirrored(story, start=start)


def test_a_mirrored_disk_does_not_grow_while_its_copies_are_parted() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.cut("beta", "gamma")
        await asyncio.sleep(30)
        with pytest.raises(Conflict, match="web1 cannot grow: its disk 0 on gamma is"):
            await cluster.run(grow(0, 32))
        for name in ("beta", "gamma"):
            assert {each.size for each in _data_on(cluster, name)} == {64}

    tell_of_mirrored(story, start=True)


def _data_on(cluster: SimulatedCluster, node: str) -> list[VolumeReport]:
    volumes = cluster.machines[node].volumes.groups.values()
    every = (each for group in volumes for each in group.volumes.values())
    return [each for each in every if each.place.name.endswith(".data")]


def test_who_lets_a_disk_grow_by_nothing_is_told() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert "Disk 0 of web1 has 64 MiB, and keeps them." in await log_of(cluster, grow(0, 0))

    tell(story)


def test_a_disk_never_shrinks() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(InvalidRequest, match="Disk 1 of web1 has 128 MiB, and cannot shrink"):
            await cluster.run(grow(1, 127, absolute=True))
        await cluster.run(grow(1, 128, absolute=True))
        assert sizes(cluster) == ([64, 128],) * 3

    tell(story)


def test_what_does_not_fit_is_refused_before_anything_grows() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["gamma"].files.capacity = MiB(1000)
        with pytest.raises(NoCapacity, match=r"808 MiB left in .*, and 809 MiB are needed"):
            await cluster.run(grow(0, 809))
        await cluster.run(grow(0, 808))
        assert sizes(cluster) == ([872, 128],) * 3

    tell(story)


def test_two_that_grow_at_once_are_not_given_the_same_space() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        db1 = replace(TWO_DISKS, instance_name=InstanceName("db1"))
        await cluster.run(db1)
        cluster.machines["gamma"].files.capacity = MiB(1000)
        both = (grow(0, 400), replace(grow(0, 400), instance_name=InstanceName("db1")))
        numbers = [await cluster.submit(each) for each in both]
        jobs = [await cluster.finished(number) for number in numbers]
        failures = [job.ops[0].failure for job in jobs if job.ops[0].failure]
        assert [failure.code for failure in failures] == ["no-capacity"]

    tell(story)


def test_the_policy_holds_for_what_has_grown() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match="does not allow web1"):
            await cluster.run(grow(0, 1 << 20))
        with pytest.raises(NoCapacity):
            await cluster.run(grow(0, 1 << 20, ignore_ipolicy=True))

    tell(story)


def test_what_is_zeroed_in_the_background_is_waited_for_and_told() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        db1 = InstanceName("db1")
        plain = {"instance_name": db1, "disk_template": DiskTemplate.PLAIN}
        await cluster.run(replace(TWO_DISKS, **plain))
        cluster.machines["gamma"].volumes.delays = 3
        assert "grow disk 0 on gamma" in await log_of(
            cluster, replace(grow(0, 32), instance_name=db1)
        )
        disks = cluster.config.disks_of(cluster.config.instance("db1"))
        assert [disk.size for disk in disks] == [96, 128]
        assert cluster.machines["gamma"].volumes.delays == 0

    tell(story)


def test_a_node_out_of_service_is_named() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
        with pytest.raises(Conflict, match="gamma is marked offline"):
            await cluster.run(grow(0, 1))

    tell(story)


def test_a_guest_that_may_only_read_sees_it_later_and_that_is_said() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        disk = cluster.config.disks_of(cluster.config.instance("web1"))[0]
        await cluster.master.running.store.commit([Put(replace(disk, mode=Mode.READ_ONLY))])
        assert "sees the new size at its next start" in await log_of(cluster, grow(0, 32))

    tell(story)


def test_disks_of_what_is_down_are_detached_afterwards_unless_they_were_attached() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        gamma = cluster.machines["gamma"]
        await cluster.run(replace(TWO_DISKS, instance_name=InstanceName("db1"), start=False))
        before = dict(gamma.attached)
        await cluster.run(replace(grow(0, 32), instance_name=InstanceName("db1")))
        assert gamma.attached == before
        await cluster.run(StartInstance(instance_name=InstanceName("db1")))
        assert len(gamma.attached) == 4

    tell(story)


def test_a_guest_that_cannot_be_told_sees_it_when_it_is_told_again() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.network.faults.append(Failing(_of_disks))
        with pytest.raises(NodeFailure):
            await cluster.run(grow(0, 32))
        cluster.network.faults.clear()
        assert sizes(cluster) == ([96, 128], [96, 128], [64, 128])
        await cluster.run(grow(0, 0))
        assert sizes(cluster) == ([96, 128],) * 3

    tell(story)


def _of_disks(trip: Trip) -> bool:
    return trip.call.name == "instances.ensure_disks"
