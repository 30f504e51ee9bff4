"""Jobs in a queue: their order, their end before the end, and what is seen of them."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest

from common.errors import (
    Cancelled,
    Conflict,
    GntError,
    InvalidRequest,
    NoCapacity,
    NodeFailure,
    Unreachable,
)
from common.luxi.failures import JobLost, QueueDrained
from common.messages import from_json
from common.model.job import Job, Status
from common.model.template import DiskTemplate
from common.names import InstanceName, JobId
from common.noderpc.instances import GuestState, Instances
from coordinator.nodes.calls import Nodes
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.test.delay import Delay
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Gate
from tests.support.image import uuid_of
from tests.support.network import Line, Trip


async def _cancel(cluster: SimulatedCluster, number: JobId) -> tuple[bool, str]:
    done, told = await cluster.master.luxi("CancelJob", number)
    return done, told


def read_arguments(trip: Trip) -> dict[str, Any]:
    """Return what a call was made with."""
    return dict(from_json(trip.body, dict[str, Any], what="a call"))


async def _until_step(cluster: SimulatedCluster, number: JobId, title: str) -> None:
    """Wait until a job says that it has begun a step."""
    seen = 0
    while True:
        news = await cluster.master.luxi("WaitForJobChange", number, ["status"], None, seen, 60.0)
        for serial, _, _, message in news[1]:
            seen = serial
            if title in message:
                return
        await asyncio.sleep(0.001)


def test_a_queued_job_is_cancelled_at_once() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            first = await cluster.submit(Delay(duration=100.0))
            second = await cluster.submit(Delay(duration=1.0), depends=[[first, ["success"]]])
            assert await _cancel(cluster, second) == (True, f"Job {second} is cancelled.")
            job = await cluster.finished(second)
            assert job.status is Status.CANCELED
            done, told = await _cancel(cluster, second)
            assert not done
            assert "has ended already (canceled)" in told
            with pytest.raises(JobLost, match="no job 99"):
                await _cancel(cluster, JobId(99))

    simulate(scenario())


def test_a_job_that_waits_for_locks_is_cancelled_at_once() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            before = await cluster.snapshot()
            moving = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
            await asyncio.sleep(0.1)
            waiting = await cluster.submit(StartInstance(instance_name=WEB1))
            await asyncio.sleep(0.1)
            assert cluster.master.running.queue.find(waiting).status is Status.WAITING  # type: ignore[union-attr]
            await _cancel(cluster, waiting)
            job = await cluster.finished(waiting)
            assert job.status is Status.CANCELED
            await _cancel(cluster, moving)
            assert (await cluster.finished(moving)).status is Status.CANCELED
            assert before.differences(await cluster.snapshot()) == []

    simulate(scenario())


def test_a_job_that_waited_locks_what_it_needs_by_now() -> None:
    """While it waits for the instance, that moves: its node is another one then."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            moving = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
            await asyncio.sleep(0.1)
            waiting = await cluster.submit(ShutDownInstance(instance_name=WEB1))
            assert (await cluster.finished(moving)).status is Status.SUCCESS
            await _until_step(cluster, waiting, "shut down")
            alpha, gamma = (f"NODE/{uuid_of(name)}" for name in ("alpha", "gamma"))
            locked = {lock for lock, _ in (await _shown(cluster, waiting)).ops[0].locks}
            assert alpha in locked
            assert gamma not in locked
            assert (await cluster.finished(waiting)).status is Status.SUCCESS

    simulate(scenario())


def test_a_shutdown_that_was_undone_cannot_begin_any_more() -> None:
    """Its order may still be on its way, or be given again by whoever was told nothing."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            lost = Gate(lambda trip: trip.call.name == "instances.begin_shutdown")
            cluster.network.faults.append(lost)
            number = await cluster.submit(ShutDownInstance(instance_name=WEB1))
            assert (await cluster.finished(number)).status is Status.ERROR
            late = lost.held[0]
            begun = read_arguments(late)
            line = Line(cluster.network, cluster.machines["alpha"])
            nodes = Nodes(line, cluster.state.stamp.epoch, cluster.random)
            cluster.network.faults.clear()
            gamma = nodes.service(Instances, cluster.config.node("gamma"))
            await gamma.begin_shutdown(**begun)
            await asyncio.sleep(600)
            assert (await cluster.snapshot()).guests["gamma"] == {"web1": "running"}

    simulate(scenario())


def test_a_running_job_is_cancelled_and_undone() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = await cluster.snapshot()
            number = await cluster.submit(create("web1", "gamma"))
            await _until_step(cluster, number, "create disk 0")
            assert (await _cancel(cluster, number))[0]
            with pytest.raises(Cancelled, match="was cancelled; what it had done is undone"):
                outcome(await cluster.finished(number))
            assert before.differences(await cluster.snapshot()) == []

    simulate(scenario())


def test_a_delay_is_cancelled_in_the_middle() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(Delay(duration=1000.0))
            await asyncio.sleep(1)
            began = cluster.now()
            await _cancel(cluster, number)
            assert (await cluster.finished(number)).status is Status.CANCELED
            assert cluster.now() - began < 1

    simulate(scenario())


def test_a_job_past_its_point_of_no_return_is_not_cancelled() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            number = await cluster.submit(RemoveInstance(instance_name=WEB1))
            await _until_step(cluster, number, "delete disk 0")
            done, told = await _cancel(cluster, number)
            assert not done
            assert "point of no return" in told
            assert (await cluster.finished(number)).status is Status.SUCCESS

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


def test_a_drained_queue_takes_no_jobs_but_runs_those_it_has() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(Delay(duration=10.0))
            await cluster.master.luxi("SetDrainFlag", 1)
            with pytest.raises(QueueDrained, match="drained"):
                await cluster.submit(Delay(duration=0.0))
            assert (await cluster.finished(number)).status is Status.SUCCESS
            await cluster.master.luxi("SetDrainFlag", 0)
            await cluster.run(Delay(duration=0.0))

    simulate(scenario())


def test_the_log_of_a_job_streams() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(create("web1", "gamma"))
            status, seen = None, 0
            said: list[str] = []
            while True:
                news = await cluster.master.luxi(
                    "WaitForJobChange", number, ["status"], status, seen, 30.0
                )
                assert news != "nochange"
                status, log = news
                said += [message for _, _, _, message in log]
                seen = max([seen, *(serial for serial, _, _, _ in log)])
                if status == ["success"]:
                    break
            assert said == [
                "* create disk 0 (64 MiB) on gamma",
                "* add web1 to the configuration",
                "* start web1 on gamma",
            ]
            assert await cluster.master.luxi("ArchiveJob", number)

    simulate(scenario())


def test_a_watcher_without_news_is_told_so() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(Delay(duration=1000.0))
            await asyncio.sleep(1)
            waiting = ("WaitForJobChange", number, ["status"], ["running"], 99, 5.0)
            assert await cluster.master.luxi(*waiting) == "nochange"

    simulate(scenario())


def test_fifty_creations_at_once_neither_overcommit_nor_leak() -> None:
    async def scenario() -> None:
        async with simulated_cluster(nodes=3) as cluster:
            for machine in cluster.machines.values():
                machine.shrink_memory(4096)
            orders = [
                CreateInstance(
                    instance_name=InstanceName(f"web{number}"),
                    disk_template=DiskTemplate.SHAREDFILE, disks=(DiskRequest(size=64),),
                    beparams={"memory": 256},
                )
                for number in range(50)
            ]  # fmt: skip
            answers = await cluster.master.luxi("SubmitManyJobs", [[o.to_input()] for o in orders])
            made = 0
            for _, number in answers:
                try:
                    outcome(await cluster.finished(number))
                    made += 1
                except (NoCapacity, Conflict):
                    pass
            for machine in cluster.machines.values():
                guests = await machine.guest_list()
                assert sum(g.memory for g in guests if g.state is GuestState.RUNNING) <= 3072
            assert made == len(cluster.config.instances) == len(cluster.shared.disks)
            # 11 fit on each node, and two nodes have to be able to take what is on three.
            assert made == 22
            await cluster.settle()
            assert (await cluster.snapshot()).held == ()
            assert await cluster.run(VerifyGroup(group_name="default")) is True

    simulate(scenario())


def test_jobs_of_all_kinds_are_taken_up_by_the_next_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            running = await cluster.submit(Delay(duration=100.0))
            queued = await cluster.submit(Delay(duration=1.0), depends=[[running, ["success"]]])
            await asyncio.sleep(10)
            await cluster.crash_master()
            await cluster.take_over("gamma")
            assert (await cluster.finished(running)).status is Status.SUCCESS
            assert (await cluster.finished(queued)).status is Status.SUCCESS
            assert await cluster.submit(Delay(duration=0.0)) == queued + 1

    simulate(scenario())


def test_a_dry_run_names_the_steps_and_does_none() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", start=False))
            before = await cluster.snapshot()
            titles = await cluster.run(StartInstance(instance_name=WEB1), dry_run=True)
            assert titles == ["mark web1 as up", "start web1 on gamma"]
            assert before.differences(await cluster.snapshot()) == []

    simulate(scenario())


def test_a_job_of_several_operations_ends_with_the_first_that_fails() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(
                create("web1", "gamma"), create("web1", "gamma"), create("web2", "gamma")
            )
            job = await cluster.finished(number)
            assert [op.status for op in job.ops] == [Status.SUCCESS, Status.ERROR, Status.ERROR]
            with pytest.raises(Conflict, match="There is an instance web1 already"):
                outcome(job)
            assert [i.name for i in cluster.config.sorted_instances()] == ["web1"]

    simulate(scenario())


def test_a_job_that_makes_no_sense_is_refused_beforehand() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for wire, complaint in (
                ({"OP_ID": "OP_COFFEE_MAKE"}, "no operation “OP_COFFEE_MAKE”"),
                ({"OP_ID": "OP_TEST_DELAY", "duration": "long"}, "duration"),
                ({"OP_ID": "OP_TEST_DELAY", "duration": 1, "colour": "red"}, "colour"),
                ({"OP_ID": "OP_TEST_DELAY", "duration": 1, "priority": 99}, "from -20"),
            ):
                with pytest.raises(InvalidRequest, match=complaint):
                    await cluster.master.luxi("SubmitJob", [wire])
            with pytest.raises(InvalidRequest, match="at least one operation"):
                await cluster.master.luxi("SubmitJob", [])

    simulate(scenario())


def test_fields_of_an_error_reach_the_client() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(GntError) as caught:
                await cluster.run(StartInstance(instance_name=InstanceName("nope")))
            assert caught.value.code == "not-found"
            assert "nope" in caught.value.message

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
            assert not (await _shown(cluster, moving)).status.is_final
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


def test_a_submission_that_no_majority_confirms_promises_nothing() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            for other in ("beta", "gamma"):
                cluster.network.cut("alpha", other)
            with pytest.raises(Unreachable, match="not known whether job 1 will run") as caught:
                await cluster.submit(Delay(duration=0.0))
            assert "“gnt-job info 1”" in caught.value.message
            assert "was lost and never ran" in caught.value.message

    simulate(scenario())


def test_an_error_that_is_too_large_to_be_stored_still_ends_its_job() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            loud = NodeFailure("No room. " * 2_000_000, log=["x" * 2**20] * 20, deep=[[[[7]]]])
            with patch.object(Delay, "prepare", _raising(loud)):
                job = await cluster.finished(await cluster.submit(Delay(duration=1.0)))
            assert job.status is Status.ERROR
            failure = job.ops[0].failure
            assert failure is not None
            assert failure.message.startswith("No room. ")
            assert "more characters" in failure.message

    simulate(scenario())


def test_a_job_whose_end_cannot_be_stored_is_stored_without_what_it_said() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with (
                patch("coordinator.jobs.bounds.MESSAGE_CHARACTERS", 2**30),
                patch.object(Delay, "prepare", _raising(NodeFailure("No. " * 3_000_000))),
                patch("coordinator.jobs.running.STRIPPED_CHARACTERS", 100),
            ):
                job = await cluster.finished(await cluster.submit(Delay(duration=1.0)))
            assert job.status is Status.ERROR
            await cluster.run(Delay(duration=0.0))

    simulate(scenario())


def _raising(error: GntError) -> Any:
    async def prepare(*_: Any) -> Any:
        raise error

    return prepare


async def _shown(cluster: SimulatedCluster, number: JobId) -> Job:
    job = cluster.master.running.queue.find(number)
    assert job is not None
    return job


def test_of_jobs_submitted_together_none_is_taken_when_one_makes_no_sense() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            good = [Delay(duration=0.0).to_input()]
            for bad in ({"priority": 99}, {"OP_ID": "OP_NOTHING"}, {"warp": 9}):
                with pytest.raises(InvalidRequest):
                    await cluster.master.luxi("SubmitManyJobs", [good, [*good, good[0] | bad]])
            assert not cluster.state.jobs

    simulate(scenario())
