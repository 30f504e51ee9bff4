"""Which job goes when: by what it depends on, its priority, its locks, and the places there are."""

import asyncio

import pytest

from common.errors import (
    Conflict,
    InvalidRequest,
)
from common.luxi.failures import JobLost
from common.model.job import Job, Status
from common.names import JobId
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.test.delay import Delay
from tests.sim.settings import WEB1, create
from tests.sim.steps_of_jobs import until_step
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.image import uuid_of


def test_a_job_that_waited_locks_what_it_needs_by_now() -> None:
    """While it waits for the instance, that moves: its node is another one then."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            moving = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
            await asyncio.sleep(0.1)
            waiting = await cluster.submit(ShutDownInstance(instance_name=WEB1))
            assert (await cluster.finished(moving)).status is Status.SUCCESS
            await until_step(cluster, waiting, "shut down")
            alpha, gamma = (f"NODE/{uuid_of(name)}" for name in ("alpha", "gamma"))
            locked = {lock for lock, _ in (await shown(cluster, waiting)).ops[0].locks}
            assert alpha in locked
            assert gamma not in locked
            assert (await cluster.finished(waiting)).status is Status.SUCCESS

    simulate(scenario())


def test_a_job_waits_for_those_it_depends_on() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            first = await cluster.submit(Delay(duration=10.0))
            met = await cluster.submit(Delay(duration=0.0), depends=[[first, ["success"]]])
            unmet = await cluster.submit(Delay(duration=0.0), depends=[[first, ["error"]]])
            after = await cluster.submit(Delay(duration=0.0), depends=[[unmet, ["error"]]])
            began = cluster.now()
            assert (await cluster.finished(met)).status is Status.SUCCESS
            assert cluster.now() - began > 9
            with pytest.raises(Conflict, match=f"Job {first}, which this one depends on"):
                outcome(await cluster.finished(unmet))
            assert (await cluster.finished(after)).status is Status.SUCCESS
            with pytest.raises(InvalidRequest, match="depends on job 77, which does not exist"):
                await cluster.submit(Delay(duration=0.0), depends=[[77, ["success"]]])

    simulate(scenario())


def test_jobs_submitted_together_may_depend_on_each_other() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            later = Delay(duration=0.0).to_input() | {"depends": [[-1, ["success"]]]}
            batches = [[create("web1").to_input()], [later], [later]]
            answers = await cluster.master.luxi("SubmitManyJobs", batches)
            assert [good for good, _ in answers] == [True, True, True]
            numbers = [number for _, number in answers]
            for number in numbers:
                assert (await cluster.finished(number)).status is Status.SUCCESS
            jobs = [cluster.state.jobs[number] for number in numbers]
            assert [job.depends[0].job for job in jobs[1:]] == numbers[:2]
            assert (jobs[1].started or 0) >= (jobs[0].ended or 0)

    simulate(scenario())


def test_more_important_jobs_go_first() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            at_once = cluster.config.cluster.max_running_jobs
            for _ in range(at_once):
                await cluster.submit(Delay(duration=10.0))
            low = await cluster.submit(Delay(duration=10.0), priority=10)
            middle = await cluster.submit(Delay(duration=10.0))
            high = await cluster.submit(Delay(duration=10.0), priority=-10)
            await cluster.master.luxi("ChangeJobPriority", low, -20)
            for number in (low, middle, high):
                await cluster.finished(number)
            jobs = cluster.state.jobs
            assert [jobs[n].started for n in (low, high, middle)] == sorted(
                jobs[n].started or 0.0 for n in (low, high, middle)
            )

    simulate(scenario())


@pytest.mark.parametrize("ending", ["done", "running"])
def test_a_job_cannot_depend_on_what_no_job_ends_as(ending: str) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            first = await cluster.submit(Delay(duration=0.0))
            with pytest.raises(InvalidRequest, match=f"“{ending}” is nothing that a job ends as"):
                await cluster.submit(Delay(duration=0.0), depends=[[first, ["success", ending]]])

    simulate(scenario())


def test_a_job_that_depends_on_what_has_ended_starts_at_once() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            many = [await cluster.submit(Delay(duration=1.0)) for _ in range(20)]
            for number in many:
                await cluster.finished(number)
            wanted = [[number, ["success"]] for number in many]
            after = await cluster.submit(Delay(duration=0.0), depends=wanted)
            assert (await cluster.finished(after)).status is Status.SUCCESS

    simulate(scenario())


def test_a_job_starts_once_when_all_it_depends_on_end_together() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            many = [await cluster.submit(Delay(duration=10.0)) for _ in range(40)]
            last = await cluster.submit(
                Delay(duration=5.0), depends=[[number, ["success"]] for number in many]
            )
            job = await cluster.finished(last)
            assert job.status is Status.SUCCESS
            assert [op.message for op in job.ops[0].log] == ["* wait 5 s (1)"]

    simulate(scenario())


def test_jobs_that_wait_for_locks_do_not_hold_up_others() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            moving = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
            await asyncio.sleep(0.1)
            behind = [await cluster.submit(StartInstance(instance_name=WEB1)) for _ in range(30)]
            await cluster.run(Delay(duration=0.0))
            assert not (await shown(cluster, moving)).status.is_final
            for number in [moving, *behind]:
                assert (await cluster.finished(number)).status is Status.SUCCESS

    simulate(scenario())


def test_no_more_jobs_run_at_once_than_have_places() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(max_running_jobs=3))
            await cluster.run(create("web1", "gamma"))
            mixed = [
                Delay(duration=1.0) if number % 2 else StartInstance(instance_name=WEB1)
                for number in range(20)
            ]
            numbers = [await cluster.submit(operation) for operation in mixed]
            jobs = [await cluster.finished(number) for number in numbers]
            assert all(job.status is Status.SUCCESS for job in jobs)
            spans = [(op.executed or 0.0, op.ended or 0.0) for job in jobs for op in job.ops]
            assert max(sum(a <= at < b for a, b in spans) for at, _ in spans) <= 3

    simulate(scenario())


def test_a_queued_job_that_is_made_less_important_goes_later() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for _ in range(cluster.config.cluster.max_running_jobs):
                await cluster.submit(Delay(duration=10.0))
            lowered = await cluster.submit(Delay(duration=10.0))
            others = [await cluster.submit(Delay(duration=10.0)) for _ in range(20)]
            done, _ = await cluster.master.luxi("ChangeJobPriority", lowered, 19)
            assert done
            jobs = {number: await cluster.finished(number) for number in [lowered, *others]}
            assert all((jobs[n].started or 0) < (jobs[lowered].started or 0) for n in others)

    simulate(scenario())


def test_a_job_that_waits_for_locks_goes_first_once_it_is_more_important() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
            await asyncio.sleep(0.1)
            first = await cluster.submit(StartInstance(instance_name=WEB1))
            second = await cluster.submit(StartInstance(instance_name=WEB1))
            await asyncio.sleep(0.1)
            assert (await cluster.master.luxi("ChangeJobPriority", second, -10))[0]
            jobs = [await cluster.finished(number) for number in (first, second)]
            assert (jobs[1].ops[0].executed or 0) < (jobs[0].ops[0].executed or 0)

    simulate(scenario())


def test_the_priority_of_a_job_that_runs_or_has_ended_stays() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(Delay(duration=10.0))
            await asyncio.sleep(1)
            done, told = await cluster.master.luxi("ChangeJobPriority", number, -10)
            assert (done, told) == (
                False, f"Job {number} runs; a priority only orders jobs that wait.",
            )  # fmt: skip
            assert (await cluster.finished(number)).ops[0].priority == 0
            assert not (await cluster.master.luxi("ChangeJobPriority", number, -10))[0]
            with pytest.raises(JobLost):
                await cluster.master.luxi("ChangeJobPriority", 99, 0)

    simulate(scenario())


async def shown(cluster: SimulatedCluster, number: JobId) -> Job:
    job = cluster.master.running.queue.find(number)
    assert job is not None
    return job
