"""Masters without a majority: they commit nothing, and an operator's word replaces it."""

import asyncio

import pytest

from common.errors import Conflict, Unreachable
from common.model.job import Status
from common.names import JobId, NodeName
from coordinator.master.confirm import NotMaster
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.test.delay import Delay
from coordinator.quorum.question import Word
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster


def test_without_a_majority_the_master_is_read_only_and_recovers() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            cluster.network.isolate("alpha")
            # The first change shows that nobody answers; it is not lost, it waits.
            with pytest.raises(Unreachable, match="not known whether job 1 will run") as late:
                await cluster.submit(Delay(duration=0.0))
            await asyncio.sleep(60)
            with pytest.raises(Conflict, match=r"read-only.*beta.*gamma") as refused:
                await cluster.submit(Delay(duration=0.0))
            assert refused.value.detail["nodes"] == ["beta", "gamma"]
            assert await cluster.master.luxi("QueryClusterInfo")  # looking is possible
            cluster.heal()
            (number,) = late.value.detail["jobs"]
            await cluster.settle(30.0)
            assert (await cluster.finished(number)).status is Status.SUCCESS
            await cluster.run(Delay(duration=0.0))
            await cluster.settle()
            cluster.check_replicas()

    simulate(scenario())


def test_a_job_that_waits_for_the_majority_goes_on_when_it_is_back() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(create("web1", "alpha"))
            cluster.network.isolate("alpha")
            await asyncio.sleep(300)
            cluster.heal()
            assert (await cluster.finished(number)).status is Status.SUCCESS
            assert (await cluster.snapshot()).guests["alpha"] == {"web1": "running"}

    simulate(scenario())


def test_a_take_over_needs_a_majority() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.crash_master()
            cluster.network.isolate("beta")
            with pytest.raises(NotMaster, match="does not become master"):
                await cluster.take_over("beta")

    simulate(scenario())


def test_the_operators_word_replaces_the_majority_and_is_recorded() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=2) as cluster:
            await cluster.run(create("web1", "beta"))
            await cluster.lose_power("alpha")
            with pytest.raises(NotMaster):
                await cluster.take_over("beta")
            await cluster.take_over("beta", Word.NO_VOTING)
            assert {override.unheard for override in cluster.config.cluster.overrides} == {
                ("alpha",)
            }
            await cluster.run(create("web2", "beta"))

    simulate(scenario())


async def _changed_without_gamma(cluster: SimulatedCluster, change: ModifyNode) -> JobId:
    """Change the pool while gamma is cut off; then it is back, and no coordinator and no beta.

    Returns:
        A job that was acknowledged last, which gamma does not know of.
    """
    await cluster.settle()
    cluster.network.isolate("gamma")
    await cluster.run(change)
    known = await cluster.submit(Delay(duration=0.0))
    await cluster.finished(known)
    await cluster.crash_master()
    await cluster.lose_power("beta")
    cluster.heal()
    return known


@pytest.mark.parametrize("word", [Word.NO_VOTING, Word.LOCAL_IS_RIGHT])
def test_no_voting_drops_nothing_on_a_node_that_knows_this_one_as_demoted(word: Word) -> None:
    """Alpha answers, if only to refuse: what it holds is within reach. A stronger word drops it."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            demotion = ModifyNode(node_name=NodeName("gamma"), master_candidate=False)
            known = await _changed_without_gamma(cluster, demotion)
            if word is Word.NO_VOTING:
                with pytest.raises(NotMaster, match=r"alpha answers, .* not listen to gamma"):
                    await cluster.take_over("gamma", word)
                await cluster.machines["beta"].boot()
                await cluster.take_over("alpha")
                assert known in cluster.state.jobs
            else:
                await cluster.take_over("gamma", word)
                assert known not in cluster.state.jobs
                (override,) = {each.unheard for each in cluster.config.cluster.overrides}
                assert override == ("alpha", "beta")

    simulate(scenario())


@pytest.mark.parametrize("word", [Word.NO_VOTING, Word.LOCAL_IS_RIGHT])
def test_no_voting_drops_nothing_on_a_node_that_this_one_does_not_know_as_promoted(
    word: Word,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=4, candidates=3) as cluster:
            promotion = ModifyNode(node_name=NodeName("delta"), master_candidate=True)
            known = await _changed_without_gamma(cluster, promotion)
            await cluster.lose_power("alpha")
            if word is Word.NO_VOTING:
                with pytest.raises(NotMaster, match=r"delta shows a newer state"):
                    await cluster.take_over("gamma", word)
                await cluster.take_over("delta", word)
                assert known in cluster.state.jobs
            else:
                await cluster.take_over("gamma", word)
                assert known not in cluster.state.jobs

    simulate(scenario())


@pytest.mark.parametrize("hears_them", [True, False])
def test_no_job_number_is_given_twice_after_a_state_was_set_aside(*, hears_them: bool) -> None:
    """Nor a task's, which has its job's number: a second one would find its work done."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            cluster.network.isolate("beta")
            await cluster.run(Delay(duration=0.0))
            lost = await cluster.submit(Delay(duration=0.0))
            await cluster.finished(lost)
            await cluster.crash_master()
            if hears_them:
                cluster.heal()
            await cluster.take_over("beta", Word.LOCAL_IS_RIGHT)
            assert lost not in cluster.state.jobs
            cluster.heal()
            assert await cluster.submit(Delay(duration=0.0)) > lost
            await cluster.settle()
            await cluster.crash_master()
            await cluster.take_over("gamma")
            assert await cluster.submit(Delay(duration=0.0)) > lost + 1

    simulate(scenario())


def test_numbers_that_were_set_aside_stay_so_though_no_job_came_after() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.settle()
            cluster.network.isolate("beta")
            lost = await cluster.submit(Delay(duration=0.0))
            await cluster.finished(lost)
            await cluster.crash_master()
            cluster.heal()
            await cluster.take_over("beta", Word.LOCAL_IS_RIGHT)
            await cluster.settle()
            cluster.check_replicas()
            await cluster.lose_power("alpha")  # whose replica, and gamma's, have heard of it
            await cluster.crash_master()
            await cluster.take_over("beta")
            assert await cluster.submit(Delay(duration=0.0)) > lost

    simulate(scenario())
