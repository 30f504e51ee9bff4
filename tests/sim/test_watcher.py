"""Guests that should run and do not are started again: once, where they belong, or not at all."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from common.errors import GntError
from common.model.job import Job, Status
from common.names import JobId
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.reboot import RebootInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.test.delay import Delay
from coordinator.watcher.conversation import SOURCE, Round, Told
from coordinator.watcher.decide import ATTEMPTS, PAUSES_S
from coordinator.watcher.round import one_round, run_hooks
from tests.sim.settings import GAMMA, WEB1, create, web1_half_moved
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.seeds import seeds

ROUND_S = 30.0


async def watch(
    cluster: SimulatedCluster,
    *talks: Callable[[float], Round],
    killed_after: int | None = None,
) -> list[Told]:
    """Hold a round with the master; or be killed with so many requests answered."""
    told: list[Told] = []
    answered = 0
    for talk in talks or (one_round, run_hooks):
        conversation, answer = talk(cluster.now()), None
        try:
            while answered != killed_after:
                request = conversation.send(answer)
                answer = await cluster.master.luxi(request.method, *request.args)
                answered += 1
        except StopIteration as end:
            told += end.value
    return told


async def at_rest(cluster: SimulatedCluster) -> None:
    """Return when all jobs have ended."""
    for number, job in cluster.state.jobs.items():
        if not job.status.is_final:
            await cluster.finished(number)


def attempts(cluster: SimulatedCluster) -> list[Job]:
    """Return the watcher's jobs, oldest first."""
    return [
        job
        for _, job in sorted(cluster.state.jobs.items())
        if any(source == SOURCE for op in job.ops for source, _, _ in op.input.get("reason", ()))
    ]


async def reboot(cluster: SimulatedCluster, name: str) -> None:
    await cluster.lose_power(name)
    await cluster.machines[name].boot()


async def running(cluster: SimulatedCluster) -> dict[str, dict[str, str]]:
    """Return the guests on each node; none may run twice."""
    guests = (await cluster.snapshot()).guests
    names = [name for node in guests.values() for name in node]
    assert len(names) == len(set(names)), guests
    return {node: dict(found) for node, found in guests.items()}


def test_guests_of_a_node_that_was_rebooted_are_started_once() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for name, start in (("web1", True), ("web2", True), ("idle", False)):
                await cluster.run(create(name, "gamma", start=start))
            await cluster.run(create("web3", "beta"))
            await reboot(cluster, "gamma")
            for _ in range(5):  # rounds that come while jobs are under way order nothing
                await watch(cluster)
                await asyncio.sleep(0.001)
            await at_rest(cluster)
            await watch(cluster)
            assert [job.ops[0].input["instance_name"] for job in attempts(cluster)] == [
                "web1", "web2",
            ]  # fmt: skip
            assert {job.status for job in attempts(cluster)} == {Status.SUCCESS}
            assert await running(cluster) == {
                "alpha": {}, "beta": {"web3": "running"},
                "gamma": {"web1": "running", "web2": "running"},
            }  # fmt: skip

    simulate(scenario())


def test_a_guest_whose_disk_found_no_room_goes_on_by_itself_and_is_named_until_then() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            web1 = cluster.config.instance("web1").uuid
            cluster.machines["gamma"].guests.fill(web1)
            found = await cluster.run(VerifyGroup(group_name="default", findings=True))
            assert any("“gnt-instance startup web1” has it go on" in f["message"] for f in found)
            await watch(cluster)
            await at_rest(cluster)
            before = cluster.machines["gamma"].guests.number(web1)
            await asyncio.sleep(10)
            assert cluster.machines["gamma"].guests.number(web1) > before

    simulate(scenario())


def test_a_node_that_does_not_answer_or_is_offline_is_left_alone() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            cluster.network.isolate("gamma")  # its guest runs on, which nobody can see
            await watch(cluster)
            await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
            await watch(cluster)
            cluster.heal()
            await watch(cluster)
            assert not attempts(cluster)
            assert (await running(cluster))["gamma"] == {"web1": "running"}

    simulate(scenario())


def test_guests_of_a_drained_node_are_started() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            await cluster.run(ModifyNode(node_name=GAMMA, drained=True))
            await reboot(cluster, "gamma")
            await watch(cluster)
            await at_rest(cluster)
            assert (await running(cluster))["gamma"] == {"web1": "running"}

    simulate(scenario())


def test_what_runs_elsewhere_than_it_should_is_not_started() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await web1_half_moved(cluster)  # runs on beta, and is recorded on gamma
            await reboot(cluster, "gamma")
            await watch(cluster)
            await at_rest(cluster)
            assert not attempts(cluster)
            # Nor is it when the node where it runs was not heard by the watcher, but is by the job.
            order = StartInstance(instance_name=WEB1, only_if_up=True)
            with pytest.raises(GntError, match="web1 runs on beta"):
                await cluster.run(order)
            assert await running(cluster) == {"alpha": {}, "beta": {"web1": "running"}, "gamma": {}}

    simulate(scenario())


def test_an_instance_that_was_stopped_for_good_meanwhile_stays_down() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            await reboot(cluster, "gamma")
            # The queue is busy, so the watcher's job waits until the operator has changed its mind.
            limit = cluster.config.cluster.max_running_jobs
            busy = [await cluster.submit(Delay(duration=60.0)) for _ in range(limit)]
            await watch(cluster)
            stop = await cluster.submit(ShutDownInstance(instance_name=WEB1))
            await asyncio.gather(*(cluster.finished(number) for number in (*busy, stop)))  # noqa: TID251
            await at_rest(cluster)
            (job,) = attempts(cluster)
            assert job.id < stop  # and yet later, its priority being low
            assert job.ops[0].failure is not None
            assert "marked as down meanwhile" in job.ops[0].failure.message
            assert (await running(cluster))["gamma"] == {}

    simulate(scenario())


@pytest.mark.parametrize(
    "order",
    [
        ShutDownInstance(instance_name=WEB1),
        RebootInstance(instance_name=WEB1),
        MigrateInstance(instance_name=WEB1, target_node="beta"),
    ],
)
def test_rounds_at_any_moment_of_another_job_disturb_nothing(order: Any) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            number = await cluster.submit(order)
            while not cluster.master.running.queue.find(number).status.is_final:  # type: ignore[union-attr]
                await watch(cluster)
                await asyncio.sleep(0.003)
            job = await cluster.finished(number)
            await at_rest(cluster)
            assert job.status is Status.SUCCESS, job.ops[0].failure
            where = {name: set(found) for name, found in (await running(cluster)).items()}
            match order:
                case ShutDownInstance():
                    assert where["gamma"] == set()
                case MigrateInstance():
                    assert where["beta"] == {"web1"}
                case _:
                    assert where["gamma"] == {"web1"}

    simulate(scenario())


@pytest.mark.parametrize("answered", range(7))
def test_a_watcher_that_is_killed_anywhere_leaves_nothing_half_done(answered: int) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            await reboot(cluster, "gamma")
            await watch(cluster, killed_after=answered)
            await watch(cluster)
            await at_rest(cluster)
            assert (await running(cluster))["gamma"] == {"web1": "running"}
            assert len(attempts(cluster)) == 1

    simulate(scenario())


def test_what_never_starts_is_tried_a_few_times_by_whichever_node_is_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            await cluster.lose_power("gamma")
            cluster.machines["gamma"].shrink_memory(1)
            await cluster.machines["gamma"].start_noded()
            for number in range(int((sum(PAUSES_S[:-1]) + 600.0) / ROUND_S)):
                if number == 20:  # its successor counts on
                    await cluster.crash_master()
                    await cluster.take_over("beta")
                await watch(cluster)
                await asyncio.sleep(ROUND_S)
            tried = attempts(cluster)
            assert len(tried) == ATTEMPTS
            assert {job.status for job in tried} == {Status.ERROR}
            (told,) = await watch(cluster)
            assert "started 5 times in vain" in told.text

    simulate(scenario())


def test_the_pause_outlives_the_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            await cluster.master.luxi("SetWatcherPause", cluster.now() + 3600)
            await cluster.crash_master()
            await cluster.take_over("beta")
            await reboot(cluster, "gamma")
            (told,) = await watch(cluster)
            assert "pauses for another" in told.text
            assert not attempts(cluster)
            await cluster.master.luxi("SetWatcherPause", None)
            await watch(cluster)
            await at_rest(cluster)
            assert (await running(cluster))["gamma"] == {"web1": "running"}

    simulate(scenario())


@pytest.mark.parametrize("until", ["soon", -1, float("nan"), float("inf"), 1e300, True, [1]])
def test_what_is_no_time_does_not_become_a_pause(until: Any) -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=1) as cluster:
            with pytest.raises(GntError, match="is no time in seconds since 1970"):
                await cluster.master.luxi("SetWatcherPause", until)
            assert cluster.config.cluster.watcher_pause is None

    simulate(scenario())


def test_a_round_without_work_changes_nothing() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            before = cluster.state.stamp
            assert await watch(cluster) == []
            assert cluster.state.stamp == before

    simulate(scenario())


def test_old_jobs_are_archived() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=1) as cluster:
            await cluster.run(Delay(duration=0.0))
            await watch(cluster)
            await asyncio.sleep(7 * 3600.0)
            number = await cluster.submit(Delay(duration=0.0))
            await cluster.finished(JobId(number))
            (told,) = await watch(cluster)
            assert told.text == "Archived 1 jobs."
            assert list(cluster.state.jobs) == [number]

    simulate(scenario())


@pytest.mark.parametrize("seed", seeds())
def test_through_a_night_of_power_cuts_and_dead_masters_nothing_runs_twice(seed: int) -> None:
    async def scenario() -> None:
        random = Random(seed)
        async with simulated_cluster(seed=seed) as cluster:
            for name, node in (("web1", "gamma"), ("web2", "beta"), ("web3", "gamma")):
                await cluster.run(create(name, node))
            for _ in range(12):
                match random.randrange(4):
                    case 0:
                        await reboot(cluster, random.choice(("beta", "gamma")))
                    case 1:
                        await cluster.crash_master()
                        await cluster.start_master("alpha")
                    case 2:
                        await cluster.restart_noded(random.choice(("beta", "gamma")))
                    case _:
                        await asyncio.sleep(random.uniform(0.0, 900.0))
                with suppress(GntError):
                    await watch(cluster, killed_after=random.choice((None, 3, 4, 5)))
                await asyncio.sleep(random.uniform(0.0, ROUND_S))
                await running(cluster)
            await cluster.settle()
            wanted = {"alpha": set(), "beta": {"web2"}, "gamma": {"web1", "web3"}}
            while {node: set(found) for node, found in (await running(cluster)).items()} != wanted:
                await watch(cluster)
                await asyncio.sleep(ROUND_S)

    simulate(scenario())
