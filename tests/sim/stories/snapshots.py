"""Stories of snapshots of an instance's disks."""

from msgspec.structs import replace

from common.model.template import DiskTemplate
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.remove_snapshot import RemoveSnapshot
from coordinator.operations.instance.rollback import RollBack
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.snapshot import TakeSnapshot
from coordinator.operations.specs import present_guest
from tests.sim.settings import WEB1, create, mirrored
from tests.support.cluster import SimulatedCluster
from tests.support.seeds import is_thorough
from tests.support.story import Story

TAKE = TakeSnapshot(instance_name=WEB1, name="before")
ROLL_BACK = RollBack(instance_name=WEB1, name="before")
REMOVE = RemoveSnapshot(instance_name=WEB1, name="before")
LEFT = frozenset({"disks gamma", "contents gamma"})


async def written(cluster: SimulatedCluster, word: str) -> None:
    """Have web1 write a word to its disks."""
    for spec in present_guest(cluster.config, cluster.config.instance("web1")).disks:
        cluster.machines["gamma"].written.write(spec, word)


async def with_data(cluster: SimulatedCluster) -> None:
    order = create("web1", "gamma", template=DiskTemplate.PLAIN)
    await cluster.run(replace(order, hvparams={"use_guest_agent": True}))
    await written(cluster, "first")


async def with_snapshot(cluster: SimulatedCluster) -> None:
    """Begin with web1, which has written something else since a snapshot was taken."""
    await with_data(cluster)
    await cluster.run(TAKE)
    await written(cluster, "second")


async def stopped_with_snapshot(cluster: SimulatedCluster) -> None:
    await with_snapshot(cluster)
    await cluster.run(ShutDownInstance(instance_name=WEB1))


async def image_with_data(cluster: SimulatedCluster) -> None:
    order = create("web1", "gamma", template=DiskTemplate.FILE)
    await cluster.run(replace(order, disks=(DiskRequest(size="64M", format="qcow2"),)))
    await written(cluster, "first")


async def image_and_stopped(cluster: SimulatedCluster) -> None:
    await image_with_data(cluster)
    await cluster.run(TAKE)
    await written(cluster, "second")
    await cluster.run(ShutDownInstance(instance_name=WEB1))


async def mirrored_with_data(cluster: SimulatedCluster) -> None:
    await cluster.run(mirrored())
    await written(cluster, "first")


async def mirrored_with_snapshot(cluster: SimulatedCluster) -> None:
    """Begin with web1 on gamma, and on beta, with something else written since a snapshot."""
    await mirrored_with_data(cluster)
    await cluster.run(TAKE)
    await written(cluster, "second")


async def mirrored_and_stopped(cluster: SimulatedCluster) -> None:
    await mirrored_with_snapshot(cluster)
    await cluster.run(ShutDownInstance(instance_name=WEB1))


STORIES = {
    "take a snapshot": Story(replace(TAKE, freeze=True), with_data),
    "remove a snapshot": Story(REMOVE, with_snapshot, again=REMOVE, uncertain=LEFT),
    "roll back mirrored disks": Story(
        ROLL_BACK, mirrored_and_stopped, again=ROLL_BACK, candidates=1, successor=""
    ),
}

# They differ in a step or two.
_IN_DETAIL = {
    "roll back to a snapshot": Story(
        ROLL_BACK, stopped_with_snapshot, again=ROLL_BACK, uncertain=LEFT
    ),
    "take a snapshot inside of an image": Story(TAKE, image_with_data),
    "roll back to a snapshot inside of an image": Story(
        ROLL_BACK, image_and_stopped, again=ROLL_BACK, uncertain=LEFT
    ),
    "take a snapshot of mirrored disks": Story(TAKE, mirrored_with_data),
    "remove a snapshot of mirrored disks": Story(
        REMOVE, mirrored_with_snapshot, again=REMOVE, uncertain=LEFT
    ),
    "remove a mirrored instance with a snapshot": Story(
        RemoveInstance(instance_name=WEB1), mirrored_and_stopped,
        again=RemoveInstance(instance_name=WEB1), uncertain=LEFT,
    ),
    "remove an instance with a snapshot": Story(
        RemoveInstance(instance_name=WEB1), stopped_with_snapshot,
        again=RemoveInstance(instance_name=WEB1), uncertain=LEFT,
    ),
}  # fmt: skip

if is_thorough():
    STORIES |= _IN_DETAIL
