"""Sizes of disks that are otherwise than they were recorded."""

import dataclasses
from collections.abc import Awaitable, Callable

from common.names import InstanceName, MiB
from coordinator.operations.cluster.repair_disk_sizes import RepairDiskSizes
from tests.sim.settings import mirrored
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import GROUP


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 running on gamma, its disk on beta, too."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(mirrored())
            await story(cluster)

    simulate(scenario())


def grow_behind_our_back(cluster: SimulatedCluster, node: str, size: int) -> None:
    volumes = cluster.machines[node].volumes.groups[GROUP].volumes
    for name, volume in volumes.items():
        if name.endswith(".data"):
            volumes[name] = dataclasses.replace(volume, size=MiB(size))


def recorded(cluster: SimulatedCluster) -> int:
    (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
    return disk.size


async def repair(cluster: SimulatedCluster, *names: str) -> tuple[list[object], list[str]]:
    order = RepairDiskSizes(instances=tuple(map(InstanceName, names)))
    job = await cluster.finished(await cluster.submit(order))
    assert job.ops[0].failure is None
    return job.ops[0].result, [entry.message for entry in job.ops[0].log]


def test_the_size_that_all_copies_have_is_recorded() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert await repair(cluster) == ([], [])
        grow_behind_our_back(cluster, "gamma", 96)
        changed, told = await repair(cluster, "web1")
        assert (changed, recorded(cluster)) == ([], 64)
        assert "64 MiB on beta" in told[0]
        assert "grow-disk --absolute web1 0 96" in told[0]
        grow_behind_our_back(cluster, "beta", 80)
        changed, told = await repair(cluster)
        assert changed == [["web1", 0, "size", 80]]
        assert recorded(cluster) == 80
        assert "Disk 0 of web1 has 80 MiB, and 64 were recorded." in told

    tell(story)


def test_nothing_is_recorded_of_a_disk_of_which_a_copy_is_not_seen() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        grow_behind_our_back(cluster, "gamma", 96)
        await cluster.lose_power("beta")
        changed, told = await repair(cluster)
        assert (changed, recorded(cluster)) == ([], 64)
        assert any("not known to be there" in message for message in told)

    tell(story)
