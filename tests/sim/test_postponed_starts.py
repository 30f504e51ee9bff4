"""A failover to a node without a copy may wait for one: till then nothing is given up."""

from collections.abc import Awaitable, Callable

import pytest

from common.model.job import Job, Status
from common.names import JobId, NodeName
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.failover import FailOverInstance
from tests.sim.mirrored_pair import attached, behind, guests, homes, lose, tell
from tests.sim.settings import BETA, GAMMA, WEB1
from tests.support.cluster import SimulatedCluster, outcome


def postponed(target: str = "alpha") -> FailOverInstance:
    return FailOverInstance(instance_name=WEB1, target_node=target, wait_for_sync=True)


async def copying(cluster: SimulatedCluster, target: str = "alpha") -> JobId:
    """Have it wait for its copy there, which takes a quarter of a minute."""
    await cluster.run(ModifyCluster(diskparams={"drbd": {"resync-rate": 4096}}))
    job = await cluster.submit(postponed(target))
    while target not in attached(cluster) or await guests(cluster):
        await cluster.settle(0.05)
    await cluster.settle(5.0)
    assert not await guests(cluster), "it has not waited for its copy"
    return job


def disturbed(
    disturb: Callable[[SimulatedCluster, JobId], Awaitable[Job]], target: str = "alpha"
) -> None:
    """Disturb the wait; it runs again where it was, on what it had."""

    async def story(cluster: SimulatedCluster) -> None:
        job = await disturb(cluster, await copying(cluster, target))
        assert job.status is not Status.SUCCESS
        assert homes(cluster) == ["gamma", "beta"]
        assert (await guests(cluster))["gamma"] == {"web1": "running"}

    tell(story, nodes=4)


def test_it_starts_when_its_copy_is_up_to_date_and_tells_how_far_that_is() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        job = await cluster.finished(await copying(cluster))
        assert outcome(job) is None
        said = [entry.message for entry in job.ops[0].log]
        told = next(place for place, line in enumerate(said) if "%" in line)
        start = next(place for place, line in enumerate(said) if "start web1 on alpha" in line)
        assert told < start
        assert (homes(cluster), behind(cluster)) == (["alpha", "beta"], [])
        assert await guests(cluster) == {"alpha": {"web1": "running"}}
        assert attached(cluster) == {"alpha": ["sole"], "beta": ["standby"]}
        assert cluster.machines["gamma"].local_disks == []

    tell(story)


def test_who_cancels_the_wait_has_it_run_where_it_was() -> None:
    async def cancel(cluster: SimulatedCluster, job: JobId) -> Job:
        assert (await cluster.master.luxi("CancelJob", job))[0]
        ended = await cluster.finished(job)
        assert attached(cluster) == {"gamma": ["sole"], "beta": ["standby"]}
        assert cluster.machines["alpha"].local_disks == []
        return ended

    disturbed(cancel)


def test_it_runs_where_it_was_if_the_good_copy_fails_meanwhile() -> None:
    async def fail(cluster: SimulatedCluster, job: JobId) -> Job:
        await cluster.lose_power("beta")
        ended = await cluster.finished(job)
        assert behind(cluster) == ["beta"], "it lacks what is written from now on"
        assert cluster.machines["alpha"].local_disks == []
        return ended

    disturbed(fail)


def test_it_runs_where_it_was_if_the_new_node_fails_meanwhile() -> None:
    async def fail(cluster: SimulatedCluster, job: JobId) -> Job:
        await cluster.lose_power("delta")
        return await cluster.finished(job)

    disturbed(fail, "delta")


@pytest.mark.parametrize("dead", [BETA, GAMMA])
def test_what_is_left_of_a_pair_is_copied_first_too(dead: NodeName) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, dead)
        await cluster.run(postponed())
        left = "gamma" if dead == BETA else "beta"
        assert (homes(cluster), behind(cluster)) == (["alpha", left], [])
        assert await guests(cluster) == {"alpha": {"web1": "running"}}

    tell(story)


def test_who_cannot_wait_any_more_cancels_it_and_has_it_start_at_once() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await lose(cluster, GAMMA)
        job = await copying(cluster)
        assert (await cluster.master.luxi("CancelJob", job))[0]
        assert (await cluster.finished(job)).status is Status.CANCELED
        assert homes(cluster) == ["gamma", "beta"]
        await cluster.run(FailOverInstance(instance_name=WEB1))
        assert await guests(cluster) == {"beta": {"web1": "running"}}

    tell(story)


def test_a_node_of_its_pair_has_nothing_to_wait_for() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.run(FailOverInstance(instance_name=WEB1, wait_for_sync=True))
        assert await guests(cluster) == {"beta": {"web1": "running"}}

    tell(story)
