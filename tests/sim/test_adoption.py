"""Disks that are there before their instance is."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NotFound
from common.model.backing import LvmBacking
from common.model.template import DiskTemplate
from common.names import DiskId, InstanceName
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.remove import RemoveInstance
from noded.storage.lvm.volumes import VolumeReport
from tests.sim.settings import WEB1, create, disk
from tests.sim.stories.adopted import ADOPT, OLD, a_volume
from tests.sim.stories.templates import LUN, a_lun, with_disks_of
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Slow
from tests.support.image import GROUP
from tests.support.network import Trip


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with a volume on gamma that is nobody's."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await a_volume(cluster)
            await story(cluster)

    simulate(scenario())


def volumes(cluster: SimulatedCluster) -> dict[str, VolumeReport]:
    return cluster.machines["gamma"].volumes.groups[GROUP].volumes


def test_a_volume_becomes_a_disk_with_its_size_and_all_that_is_on_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ADOPT)
        (made,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert made.size == 48
        (there,) = volumes(cluster).values()
        assert (there.disk, there.place) == (made.uuid, made.backing)
        assert list(cluster.machines["gamma"].contents.values()) == ["data of the old server"]
        await cluster.run(RemoveInstance(instance_name=WEB1))
        assert volumes(cluster) == {}

    tell(story)


def test_a_volume_in_a_thin_pool_stays_there() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        thin = LvmBacking(group=GROUP, name=OLD, thin_pool="thin")
        volumes(cluster)[OLD] = dataclasses.replace(volumes(cluster)[OLD], place=thin)
        await cluster.run(ADOPT)
        (made,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert isinstance(made.backing, LvmBacking)
        assert made.backing.thin_pool == "thin"

    tell(story)


def test_it_takes_no_room_that_was_free() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        group = cluster.machines["gamma"].volumes.groups[GROUP]
        group.capacity = volumes(cluster)[OLD].size
        await cluster.run(ADOPT)

    tell(story)


def requests(*disks: DiskRequest) -> CreateInstance:
    return replace(ADOPT, disks=disks)


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (requests(DiskRequest(adopt="another")), "no volume gantry/another on gamma"),
        (requests(DiskRequest(adopt=OLD, vg="slow")), "no volume slow/old-server on gamma"),
        (requests(DiskRequest(adopt=OLD, size=64)), "has 48M, not 64M; leave the size out"),
        (requests(DiskRequest(adopt=OLD), DiskRequest(size=64)), "all disks of an instance"),
        (requests(DiskRequest(adopt=OLD), DiskRequest(adopt=OLD)), "Two disks cannot be made"),
        (replace(ADOPT, pnode=None), "Name the node that has what is adopted"),
        (replace(ADOPT, disk_template=DiskTemplate.FILE), "take no “adopt”"),
    ],
)
def test_what_cannot_be_adopted_is_left_alone(order: CreateInstance, why: str) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        before = dict(volumes(cluster))
        with pytest.raises(GntError, match=why):
            await cluster.run(order)
        assert volumes(cluster) == before

    tell(story)


def test_a_volume_that_is_in_use_or_somebodys_is_not_adopted() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["gamma"].volumes.held.add(f"{GROUP}/{OLD}")
        with pytest.raises(Conflict, match="is in use; unmount it first"):
            await cluster.run(ADOPT)
        cluster.machines["gamma"].volumes.held.clear()
        owner = DiskId("dddddddd-0000-4000-8000-00000000000a")
        volumes(cluster)[OLD] = dataclasses.replace(volumes(cluster)[OLD], disk=owner)
        with pytest.raises(Conflict, match=f"one of the disk {owner} already"):
            await cluster.run(ADOPT)

    tell(story)


def test_volumes_are_adopted_when_an_instance_is_made_and_not_later() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(create("web1", "gamma", template=DiskTemplate.PLAIN, start=False))
        late = (
            ModifyInstance(instance_name=WEB1, disks=(disk("add", adopt=OLD),)),
            RecreateDisks(instance_name=WEB1, disks=((0, {"adopt": OLD}),)),
        )
        for order in late:
            with pytest.raises(InvalidRequest, match="adopted when an instance is made"):
                await cluster.run(order)

    tell(story)


def test_a_device_tells_its_size_where_nobody_else_does() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            order = replace(
                with_disks_of(DiskTemplate.BLOCKDEV, "gamma"), disks=(DiskRequest(adopt=LUN),)
            )
            with pytest.raises(NotFound, match=f"no device {LUN} on gamma"):
                await cluster.run(order)
            await a_lun(cluster)
            with pytest.raises(InvalidRequest, match="Tell the sizes of what is adopted"):
                await cluster.run(replace(order, pnode=None, iallocator="hail"))
            await cluster.run(order)
            (made,) = cluster.config.disks_of(cluster.config.instance("web1"))
            assert made.size == 64

    simulate(scenario())


def test_a_device_is_adopted_by_one_of_two_that_want_it_at_the_same_time() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await a_lun(cluster)
            reached = asyncio.Event()

            def is_checked(trip: Trip) -> bool:
                if trip.call.name == "instances.check_startable":
                    reached.set()
                    return True
                return False

            cluster.network.faults.append(Slow(is_checked, 5))
            order = with_disks_of(DiskTemplate.BLOCKDEV, "gamma")
            order = replace(order, disks=(DiskRequest(adopt=LUN),), start=False)
            first = await cluster.submit(order)
            await reached.wait()
            with pytest.raises(Conflict, match="is a disk already"):
                await cluster.run(replace(order, instance_name=InstanceName("web2")))
            outcome(await cluster.finished(first))

    simulate(scenario())
