"""Instances whose disks are on two nodes, as far as operations know them.

No such disks can be made yet. Files on two nodes stand for them, which nobody keeps equal: what is
looked at is where an instance goes, what is attached there, and what is deleted.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import Conflict
from common.model.template import DiskTemplate
from coordinator.disks import kinds
from coordinator.disks.directory import DirectoryKind
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.remove import RemoveNode
from coordinator.state.rows import Put
from tests.sim.settings import BETA, GAMMA, WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

MIRRORED = DirectoryKind(
    DiskTemplate.DRBD, lambda cluster: cluster.file_storage_dir, option="-", unusable="ENODELVM"
)


@pytest.fixture(autouse=True)
def mirrored_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    every: Any = kinds.KINDS
    monkeypatch.setitem(every, DiskTemplate.DRBD, MIRRORED)


def tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    """Begin with web1 running on gamma, its disk on beta, too."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", template=DiskTemplate.FILE))
            config = cluster.config
            web1 = config.instance("web1")
            (disk,) = config.disks_of(web1)
            both = (config.node("gamma").uuid, config.node("beta").uuid)
            changed = (replace(web1, disk_template=DiskTemplate.DRBD), replace(disk, nodes=both))
            await cluster.master.running.store.commit([Put(item) for item in changed])
            cluster.machines["beta"].files.disks |= cluster.machines["gamma"].files.disks
            await story(cluster)

    simulate(scenario())


def homes(cluster: SimulatedCluster) -> list[str]:
    config = cluster.config
    return [config.nodes[uuid].name for uuid in config.nodes_of(config.instance("web1"))]


def attached(cluster: SimulatedCluster) -> dict[str, list[str]]:
    every = cluster.machines.items()
    return {name: list(machine.attached.values()) for name, machine in every if machine.attached}


def test_it_moves_to_its_secondary_node_and_back() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        assert (homes(cluster), attached(cluster)) == (["gamma", "beta"], {"gamma": ["sole"]})
        await cluster.run(MigrateInstance(instance_name=WEB1))
        assert (homes(cluster), attached(cluster)) == (["beta", "gamma"], {"beta": ["sole"]})
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert (homes(cluster), attached(cluster)) == (["gamma", "beta"], {"gamma": ["sole"]})

    tell(story)


def test_it_goes_nowhere_else() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for operation in (
            MigrateInstance(instance_name=WEB1, target_node="alpha"),
            FailOverInstance(instance_name=WEB1, target_node="alpha"),
        ):
            with pytest.raises(Conflict, match="on gamma and beta only; it cannot run on alpha"):
                await cluster.run(operation)

    tell(story)


def test_it_survives_its_primary_node() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("gamma")
        await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert (homes(cluster), attached(cluster)) == (["beta", "gamma"], {"beta": ["sole"]})
        assert (await cluster.snapshot()).guests["beta"] == {"web1": "running"}

    tell(story)


def test_both_copies_are_deleted_with_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(RemoveInstance(instance_name=WEB1))
        assert [machine.local_disks for machine in cluster.machines.values()] == [[], [], []]
        assert attached(cluster) == {}

    tell(story)


def test_a_node_with_a_copy_stays() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        with pytest.raises(Conflict, match=r"beta still has instances \(web1\)"):
            await cluster.run(RemoveNode(node_name=BETA))

    tell(story)


def test_a_missing_copy_is_found() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.machines["beta"].files.disks.clear()
        found = await cluster.run(VerifyGroup(group_name="default", findings=True))
        (missing,) = (each for each in found if each["code"] == "EINSTANCEMISSINGDISK")
        assert missing["name"] == "web1"
        assert missing["message"].endswith("is missing on beta")

    tell(story)
