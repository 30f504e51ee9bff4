"""Instances whose disks are on two nodes go to any other, and their second copy follows."""

from collections.abc import Awaitable, Callable

import pytest

from common.errors import Conflict
from common.model.job import Status
from common.names import NodeName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.failover import FailOverInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from tests.sim.mirrored_pair import attached, behind, bring_back, guests, homes, lose, tell
from tests.sim.settings import BETA, GAMMA, WEB1
from tests.support.cluster import SimulatedCluster, outcome
from tests.support.faults import Gate


def test_it_migrates_to_any_node_and_its_copy_follows() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(diskparams={"drbd": {"resync-rate": 4096}}))  # 16 s
        job = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        while await guests(cluster) != {"alpha": {"web1": "running"}}:
            await cluster.settle(0.05)
        assert behind(cluster) == ["alpha"], "it has waited for its copy"
        assert outcome(await cluster.finished(job)) is None
        assert (homes(cluster), behind(cluster)) == (["alpha", "gamma"], [])
        assert attached(cluster) == {"alpha": ["sole"], "gamma": ["standby"]}
        assert not any(end.allows_two for end in cluster.pairs.ends)
        assert cluster.machines["beta"].local_disks == []

    tell(story)


def test_it_migrates_to_any_node_while_its_secondary_node_is_dead() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, BETA)
        await cluster.run(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        assert (homes(cluster), behind(cluster)) == (["alpha", "gamma"], [])
        assert (await guests(cluster))["alpha"] == {"web1": "running"}

    tell(story)


def test_the_good_copy_may_fail_while_the_new_one_follows_and_nothing_is_taken_for_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(ModifyCluster(diskparams={"drbd": {"resync-rate": 1024}}))  # a minute
        job = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        while homes(cluster) != ["alpha", "gamma"]:
            await cluster.settle(0.05)
        await lose(cluster, GAMMA)  # which it has left, and reads from
        assert (await cluster.finished(job)).status is Status.ERROR
        assert (homes(cluster), behind(cluster)) == (["alpha", "gamma"], ["alpha"])
        await cluster.run(ShutDownInstance(instance_name=WEB1))
        with pytest.raises(Conflict, match="on alpha is behind the copy on gamma"):
            await cluster.run(StartInstance(instance_name=WEB1))
        await bring_back(cluster, GAMMA)
        await cluster.run(StartInstance(instance_name=WEB1))
        assert (await guests(cluster))["alpha"] == {"web1": "running"}

    tell(story)


def test_a_migration_to_any_node_that_is_cancelled_leaves_the_former_pair() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        job = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        while homes(cluster) != ["gamma", "alpha"]:
            await cluster.settle(0.05)
        assert (await cluster.master.luxi("CancelJob", job))[0]
        assert (await cluster.finished(job)).status is Status.CANCELED
        assert homes(cluster) == ["gamma", "beta"]
        assert await guests(cluster) == {"gamma": {"web1": "running"}}
        assert attached(cluster) == {"gamma": ["sole"], "beta": ["standby"]}
        assert cluster.machines["alpha"].local_disks == []

    tell(story)


def test_it_does_not_migrate_to_any_node_from_a_copy_that_is_not_good() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        (disk,) = cluster.config.disks_of(cluster.config.instance("web1"))
        cluster.machines["gamma"].drbd.fail_volumes(f"gantry-{disk.uuid}")
        with pytest.raises(Conflict, match="would be the only ones"):
            await cluster.run(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        assert homes(cluster) == ["gamma", "beta"]

    tell(story)


def test_it_fails_over_to_any_node_with_a_copy_that_follows() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(FailOverInstance(instance_name=WEB1, target_node="alpha"))
        assert (homes(cluster), behind(cluster)) == (["alpha", "beta"], [])
        assert await guests(cluster) == {"alpha": {"web1": "running"}}
        assert attached(cluster) == {"alpha": ["sole"], "beta": ["standby"]}
        assert cluster.machines["gamma"].local_disks == []

    tell(story)


@pytest.mark.parametrize("dead", [BETA, GAMMA])
def test_it_fails_over_to_any_node_from_the_copy_that_is_left(dead: NodeName) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, dead)
        await cluster.run(FailOverInstance(instance_name=WEB1, target_node="alpha"))
        left = "gamma" if dead == BETA else "beta"
        assert (homes(cluster), behind(cluster)) == (["alpha", left], [])
        assert await guests(cluster) == {"alpha": {"web1": "running"}}

    tell(story)


def test_it_is_not_failed_over_to_any_node_from_a_copy_that_is_not_proven() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.lose_power("beta")
        await cluster.machines["beta"].boot()
        await lose(cluster, GAMMA)
        with pytest.raises(Conflict, match="may lack what was written last"):
            await cluster.run(FailOverInstance(instance_name=WEB1, target_node="alpha"))
        assert cluster.machines["alpha"].local_disks == []

    tell(story)


async def lose_and_boot(cluster: SimulatedCluster) -> None:
    await cluster.lose_power("beta")
    await cluster.settle(5.0)
    cluster.pairs.settle()  # the guest has written to one copy
    await cluster.machines["beta"].boot()


async def cut(cluster: SimulatedCluster) -> None:
    """Have a copy that takes itself for good, since it was in standby all the time."""
    cluster.cut("gamma", "beta")
    await cluster.settle(5.0)
    cluster.pairs.settle()


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("disturb", [lose_and_boot, cut])
def test_it_is_not_failed_over_to_any_node_from_a_copy_that_has_missed_writes_meanwhile(
    disturb: Callable[[SimulatedCluster], Awaitable[None]], waits: bool
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        stopping = Gate(lambda trip: trip.call.name == "instances.begin_shutdown")
        cluster.network.faults.append(stopping)
        job = await cluster.submit(
            FailOverInstance(instance_name=WEB1, target_node="alpha", wait_for_sync=waits)
        )
        await stopping.until_held()
        await disturb(cluster)
        stopping.opened.set()
        assert (await cluster.finished(job)).status is Status.ERROR
        assert (homes(cluster), behind(cluster)) == (["gamma", "beta"], ["beta"])
        assert await guests(cluster) == {"gamma": {"web1": "running"}}

    tell(story)
