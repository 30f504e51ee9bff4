"""Stories of an instance's disks, where they are."""

from typing import Any

from common.model.template import DiskTemplate
from common.names import MiB
from coordinator.operations.cluster.remove_disk import RemoveDisk
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.deactivate_disks import DeactivateDisks
from coordinator.operations.instance.disk_changes import DiskChange
from coordinator.operations.instance.grow_disk import GrowDisk
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.startup import StartInstance
from tests.sim.settings import (
    WEB1,
    apart,
    create,
    disk,
    web1_mirrored,
    web1_on,
    with_exclusive_storage,
)
from tests.support.cluster import SimulatedCluster
from tests.support.image import GROUP
from tests.support.seeds import is_thorough
from tests.support.story import Setting, Story

DELETED = frozenset({"disks gamma", "sizes gamma"})  # or left, which the job's log tells


def grow(amount: int, *, absolute: bool = False) -> GrowDisk:
    return GrowDisk(instance_name=WEB1, disk=-1, amount=MiB(amount), absolute=absolute)


def modify(*disks: DiskChange, **fields: Any) -> ModifyInstance:
    return ModifyInstance(instance_name=WEB1, disks=disks, **fields)


def with_two_disks(*, start: bool = True) -> Setting:
    """Begin with an instance on gamma that has a disk called “data” besides."""

    async def setting(cluster: SimulatedCluster) -> None:
        await cluster.run(create(node="gamma", template=DiskTemplate.FILE, start=False))
        await cluster.run(modify(disk("add", size=128, name="data")))
        if start:
            await cluster.run(StartInstance(instance_name=WEB1))

    return setting


async def with_detached_disk(cluster: SimulatedCluster) -> None:
    await with_two_disks(start=False)(cluster)
    await cluster.run(modify(disk("detach", "data")))
    await cluster.run(StartInstance(instance_name=WEB1))


async def with_a_detached_disk_that_all_reach(cluster: SimulatedCluster) -> None:
    await cluster.run(create(node="gamma", start=False))
    await cluster.run(modify(disk("add", size=128, name="data")))
    await cluster.run(modify(disk("detach", "data")))


async def with_active_disks(cluster: SimulatedCluster) -> None:
    await cluster.run(create(node="gamma", start=False))
    await cluster.run(ActivateDisks(instance_name=WEB1))


async def without_disks(cluster: SimulatedCluster) -> None:
    await cluster.run(create(node="gamma", template=DiskTemplate.FILE, start=False))
    cluster.machines["gamma"].files.disks.clear()


async def with_active_mirrored_disks(cluster: SimulatedCluster) -> None:
    await web1_mirrored(start=False)(cluster)
    await cluster.run(ActivateDisks(instance_name=WEB1))


async def without_mirrored_disks(cluster: SimulatedCluster) -> None:
    await web1_mirrored(start=False)(cluster)
    for name in ("beta", "gamma"):
        cluster.machines[name].volumes.groups[GROUP].volumes.clear()


async def with_a_disk_of_its_own(cluster: SimulatedCluster) -> None:
    await with_exclusive_storage(cluster)
    await cluster.run(apart("web1", "gamma", spindles=2))


GROWN = frozenset({"sizes beta", "sizes gamma", "disks beta", "disks gamma"})
NOTED = frozenset({"config disk web1 disk 0"})  # that a copy may lack something


async def with_only_a_detached_mirror(cluster: SimulatedCluster) -> None:
    await web1_mirrored(start=False)(cluster)
    await cluster.run(modify(disk("add", size=32, name="data")))
    await cluster.run(modify(disk("detach", "data")))


STORIES = {
    "delete a detached disk": Story(
        RemoveDisk(disk_name="data"), with_detached_disk, again=RemoveDisk(disk_name="data"),
        uncertain=DELETED,
    ),
    "delete a detached disk that all reach": Story(
        RemoveDisk(disk_name="data"), with_a_detached_disk_that_all_reach,
        again=RemoveDisk(disk_name="data"), uncertain=frozenset({"disks shared", "sizes shared"}),
    ),
    "grow a disk": Story(
        grow(32), web1_on("gamma", start=False),
        again=grow(96, absolute=True), uncertain=frozenset({"sizes shared"}),
    ),
    "grow a disk in use": Story(
        grow(96, absolute=True), web1_on("gamma"),
        again=grow(96, absolute=True), uncertain=frozenset({"sizes shared"}),
    ),
    "activate disks": Story(ActivateDisks(instance_name=WEB1), web1_on("gamma", start=False)),
    "deactivate disks": Story(DeactivateDisks(instance_name=WEB1), with_active_disks),
    "start with active disks": Story(StartInstance(instance_name=WEB1), with_active_disks),
    "recreate disks elsewhere": Story(
        RecreateDisks(instance_name=WEB1, nodes=("beta",)), without_disks
    ),
    "add a disk": Story(
        modify(disk("add", size="32M", name="data")), web1_on("gamma", start=False)
    ),
    "remove a disk": Story(
        modify(disk("remove", 0)), with_two_disks(start=False), uncertain=DELETED
    ),
    "exchange disks at once": Story(
        modify(disk("remove", 1), disk("add", 0, size=32), disk("detach", 1), hotplug=True),
        with_two_disks(), uncertain=DELETED,
    ),
    "attach a disk at once": Story(
        modify(disk("attach", name="data"), hotplug_if_possible=True), with_detached_disk
    ),
    "add a mirrored disk at once": Story(
        modify(disk("add", size=32), hotplug=True), web1_mirrored()
    ),
    "give disks a second copy": Story(
        modify(disk_template=DiskTemplate.DRBD, remote_node="beta"),
        web1_on("gamma", template=DiskTemplate.PLAIN, start=False),
        again=DeactivateDisks(instance_name=WEB1),
    ),
    "give the second copy up": Story(
        modify(disk_template=DiskTemplate.PLAIN), web1_mirrored(start=False),
        uncertain=frozenset({"disks beta", "disks gamma", "sizes beta", "sizes gamma"}),
    ),
    "add with spindles": Story(apart("web1", "gamma", spindles=2), with_exclusive_storage),
    "grow on own spindles": Story(
        grow(32), with_a_disk_of_its_own, again=grow(96, absolute=True),
        uncertain=frozenset({"sizes gamma"}),
    ),
    "rename a disk": Story(modify(disk("modify", 0, name="root", mode="ro")), web1_on("gamma")),
}  # fmt: skip

# What differs in a step or two takes its time, and is told where time does not matter.
_IN_DETAIL = {
    "delete a detached mirror": Story(
        RemoveDisk(disk_name="data"), with_only_a_detached_mirror,
        again=RemoveDisk(disk_name="data"),
        uncertain=frozenset({"disks beta", "disks gamma", "sizes beta", "sizes gamma"}),
    ),
    "grow a mirrored disk": Story(
        grow(96, absolute=True), web1_mirrored(), again=grow(96, absolute=True), uncertain=GROWN
    ),
    "grow a mirrored disk of what is down": Story(
        grow(32), web1_mirrored(start=False), again=grow(96, absolute=True), uncertain=GROWN
    ),
    "activate mirrored disks": Story(
        ActivateDisks(instance_name=WEB1, wait_for_sync=True), web1_mirrored(start=False)
    ),
    "deactivate mirrored disks": Story(
        DeactivateDisks(instance_name=WEB1), with_active_mirrored_disks, uncertain=NOTED
    ),
    "recreate mirrored disks elsewhere": Story(
        RecreateDisks(instance_name=WEB1, nodes=("alpha", "beta")), without_mirrored_disks
    ),
    "exchange mirrored disks": Story(
        modify(disk("add", 0, size=32), disk("remove", 1)), web1_mirrored(start=False),
        uncertain=frozenset({"disks beta", "disks gamma", "sizes beta", "sizes gamma"}),
    ),
}  # fmt: skip

if is_thorough():
    STORIES |= _IN_DETAIL
