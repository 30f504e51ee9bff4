"""Clusters on which no physical volume of an instance's disks is another one's, too."""

from collections.abc import Awaitable, Callable

from common.names import GroupName, InstanceName
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest
from coordinator.operations.group.modify import ModifyGroup
from tests.sim.settings import with_exclusive_storage
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import GROUP

WEB2 = InstanceName("web2")
DISK_THAT_FILLS = DiskRequest(size=900, spindles=1)
GROUP_OF_ALL, OTHER = GroupName("default"), GroupName("other")


def tell(story: Callable[[SimulatedCluster], Awaitable[None]], *, nodes: int = 3) -> None:
    """Begin with three empty physical volumes of 1000 MiB on each node, and nothing on them."""

    async def scenario() -> None:
        async with simulated_cluster(nodes) as cluster:
            await with_exclusive_storage(cluster)
            await story(cluster)

    simulate(scenario())


def devices(cluster: SimulatedCluster, node: str = "gamma") -> list[tuple[str, ...]]:
    """Return the physical volumes of each volume of a node."""
    volumes = cluster.machines[node].volumes.groups[GROUP].volumes
    return [each.devices for each in volumes.values()]


async def free(cluster: SimulatedCluster) -> dict[str, int]:
    """Return how many physical volumes each node has left."""
    fields = ["name", "spfree", "sptotal"]
    told = await cluster.master.luxi("QueryNodes", (), fields)
    assert {total for _, _, total in told} == {3}
    return {name: left for name, left, _ in told}


async def exclusive(cluster: SimulatedCluster, *, value: bool) -> None:
    ndparams = {"exclusive_storage": value}
    await cluster.run(ModifyGroup(group_name=GROUP_OF_ALL, ndparams=ndparams))


async def findings(cluster: SimulatedCluster) -> list[tuple[str, str]]:
    """Return what verify finds, by code and name."""
    told = await cluster.run(VerifyGroup(group_name="default", findings=True))
    return [(each["code"], each["name"]) for each in told if each["severity"] != "NOTICE"]
