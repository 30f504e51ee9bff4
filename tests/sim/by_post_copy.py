"""Moves by post-copy, and how far stories about them begin."""

from msgspec.structs import replace

from common.names import InstanceId, JobId
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.migrate import MigrateInstance
from noded.hypervisor.fake_guest import Phase
from tests.sim.mishaps import reaches
from tests.sim.settings import BY_POST_COPY, WEB1, create
from tests.support.cluster import SimulatedCluster

SOURCE, TARGET = "beta", "gamma"
MOVE = MigrateInstance(instance_name=WEB1, target_node=TARGET)
CLEANUP = MigrateInstance(instance_name=WEB1, cleanup=True)


async def begin(cluster: SimulatedCluster, order: CreateInstance | None = None) -> InstanceId:
    """Have web1 run on the source."""
    await cluster.run(replace(order or create("web1", SOURCE), hvparams=BY_POST_COPY))
    return InstanceId(cluster.config.instance("web1").uuid)


async def halve(
    cluster: SimulatedCluster, order: CreateInstance | None = None
) -> tuple[InstanceId, JobId]:
    """Have web1 run on the target with a part of its memory on the source; return its job, too."""
    uuid = await begin(cluster, order)
    number = await cluster.submit(MOVE)
    await reaches(cluster, SOURCE, number, Phase.DONE)
    await cluster.settle(0.5)
    return uuid, number


async def counts(cluster: SimulatedCluster, node: str, uuid: InstanceId) -> None:
    """See the guest run on a node."""
    guests = cluster.machines[node].guests
    before = guests.number(uuid)
    await cluster.settle(1.0)
    assert guests.number(uuid) > before
