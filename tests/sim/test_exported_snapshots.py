"""Exports of who runs on, or is stopped for a moment: of snapshots of its volumes."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from common.errors import NoCapacity
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import MiB
from coordinator.operations.backup.export import ExportInstance
from tests.sim.settings import WEB1, create, mirrored
from tests.sim.stories.snapshots import written
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.image import GROUP

DATA = "written before"
EXPORT = ExportInstance(instance_name=WEB1, target_node="beta")


def tell(
    story: Callable[[SimulatedCluster], Awaitable[None]], *, is_mirrored: bool = False
) -> None:
    """Begin with web1 running on gamma, with data on a volume there."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            if is_mirrored:
                await cluster.run(mirrored())
            else:
                await cluster.run(create("web1", "gamma", template=DiskTemplate.PLAIN))
            await written(cluster, DATA)
            await story(cluster)

    simulate(scenario())


async def begun(cluster: SimulatedCluster, node: str) -> None:
    """Return when an export is being made on a node."""
    async with asyncio.timeout(60.0):
        while not cluster.machines[node].exports.unfinished:
            await cluster.settle(0.05)


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_who_runs_on_while_it_is_exported_is_exported_as_it_was(is_mirrored: bool) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        before = await cluster.snapshot()
        number = await cluster.submit(
            ExportInstance(instance_name=WEB1, target_node="alpha", shutdown=False)
        )
        await begun(cluster, "alpha")
        await written(cluster, "written since")
        assert (await cluster.finished(number)).status is Status.SUCCESS
        after = await cluster.snapshot()
        assert (after.guests, after.disks["gamma"]) == (before.guests, before.disks["gamma"])
        assert [*cluster.machines["alpha"].exports.words.values()] == [DATA]

    tell(story, is_mirrored=is_mirrored)


def test_who_is_stopped_for_its_snapshot_runs_while_it_is_copied() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        uuid, guests = cluster.config.instance("web1").uuid, cluster.machines["gamma"].guests
        await cluster.settle(60.0)
        counted = guests.number(uuid)
        number = await cluster.submit(EXPORT)
        await begun(cluster, "beta")
        assert guests.lives(uuid)
        assert guests.number(uuid) < counted, "it was not started anew"
        assert (await cluster.finished(number)).status is Status.SUCCESS

    tell(story)


def test_without_room_for_a_snapshot_it_is_stopped_or_not_exported() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["gamma"].volumes.groups[GROUP].capacity = MiB(64 + 16)
        running = ExportInstance(instance_name=WEB1, target_node="beta", shutdown=False)
        with pytest.raises(NoCapacity, match="16 MiB left in"):
            await cluster.run(running)
        await cluster.run(replace(running, room=MiB(8)))
        job = await cluster.finished(await cluster.submit(EXPORT))
        assert job.status is Status.SUCCESS
        told = [entry.message for entry in job.ops[0].log]
        assert any("web1 is stopped while its disks are copied" in each for each in told)

    tell(story)
