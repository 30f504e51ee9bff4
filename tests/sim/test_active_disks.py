"""Disks are attached and detached as asked, and made anew only where nothing is lost by it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.errors import Conflict, InvalidRequest, NodeFailure, NotFound
from common.model.template import DiskTemplate
from coordinator.operations.instance.activate_disks import ActivateDisks
from coordinator.operations.instance.deactivate_disks import DeactivateDisks
from coordinator.operations.instance.recreate_disks import RecreateDisks
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from tests.sim.settings import GAMMA, WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster


def recreate(**fields: Any) -> RecreateDisks:
    return RecreateDisks(instance_name=WEB1, **fields)


def tell(story: Callable[[SimulatedCluster], Awaitable[None]], *, start: bool = False) -> None:
    """Begin with web1 on gamma, with one disk of 64 MiB there."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", template=DiskTemplate.FILE, start=start))
            await story(cluster)

    simulate(scenario())


async def active(cluster: SimulatedCluster) -> tuple[bool, int]:
    """Return whether web1's disks are said to be attached, and how many are."""
    told = cluster.config.instance("web1").has_active_disks
    return told, len(cluster.machines["gamma"].attached)


def test_disks_are_attached_until_they_are_detached() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert await active(cluster) == (False, 0)
        for _ in range(2):
            result = await cluster.run(ActivateDisks(instance_name=WEB1))
            assert result == [["gamma", "disk/0", None]]
            assert await active(cluster) == (True, 1)
        await cluster.run(StartInstance(instance_name=WEB1))
        with pytest.raises(Conflict, match="runs and uses its disks; stop it"):
            await cluster.run(DeactivateDisks(instance_name=WEB1))
        with pytest.raises(NodeFailure, match="in use by a running guest"):
            await cluster.run(DeactivateDisks(instance_name=WEB1, force=True))
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        assert await active(cluster) == (False, 0)
        await cluster.run(ActivateDisks(instance_name=WEB1))
        for _ in range(2):
            await cluster.run(DeactivateDisks(instance_name=WEB1))
            assert await active(cluster) == (False, 0)

    tell(story)


def test_the_log_tells_where_disks_are() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        job = await cluster.finished(await cluster.submit(ActivateDisks(instance_name=WEB1)))
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        told = [entry.message for entry in job.ops[0].log]
        assert f"gamma:disk/0:{disk.backing.paths[0]}" in told

    tell(story)


def test_what_is_there_is_not_made_anew() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for order in (recreate(), recreate(disks=(0,)), recreate(nodes=("beta",))):
            with pytest.raises(Conflict, match=r"(there on gamma, so none|only what is missing)"):
                await cluster.run(order)
        assert cluster.machines["beta"].local_disks == []

    tell(story)


def test_disks_of_what_runs_or_shall_run_are_left_alone() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match="web1 runs; stop it first"):
            await cluster.run(recreate())
        await cluster.lose_power("gamma")
        await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
        with pytest.raises(Conflict, match="web1 is to run; stop it first"):
            await cluster.run(recreate(nodes=("beta",)))
        await cluster.run(ShutDownInstance(instance_name=WEB1, ignore_offline_nodes=True))
        await cluster.run(recreate(nodes=("beta",)))
        await cluster.run(StartInstance(instance_name=WEB1))
        assert (await cluster.snapshot()).guests["beta"] == {"web1": "running"}

    tell(story, start=True)


@pytest.mark.parametrize(
    ("fields", "kind", "said"),
    [
        ({"disks": (1,)}, NotFound, "has no disk 1"),
        ({"disks": ((0, {"size": "none"}),)}, InvalidRequest, "is no size"),
        ({"disks": ((0, {"vg": "xenvg"}),)}, InvalidRequest, "leave out “vg”"),
        ({"nodes": ("beta", "alpha")}, InvalidRequest, "has one node"),
        ({"nodes": ("beta",), "iallocator": "hail"}, InvalidRequest, "not both"),
    ],
)
def test_what_cannot_be_made_is_named(
    fields: dict[str, Any], kind: type[Exception], said: str
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["gamma"].files.disks.clear()
        with pytest.raises(kind, match=said):
            await cluster.run(recreate(**fields))

    tell(story)


def test_a_disk_is_made_anew_as_it_is_wished() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["gamma"].files.disks.clear()
        assert await cluster.run(recreate(disks=((0, {"size": "96M", "mode": "ro"}),))) == [0]
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        assert (disk.size, disk.mode) == (96, "ro")
        assert list(cluster.machines["gamma"].local_sizes.values()) == [96]

    tell(story)
