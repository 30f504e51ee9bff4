"""Jobs in a queue: what is taken, what becomes of it, and what is seen of it."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest

from common.errors import (
    Conflict,
    GntError,
    InvalidRequest,
    NoCapacity,
    NodeFailure,
    Unreachable,
)
from common.luxi.failures import QueueDrained
from common.model.job import Status
from common.model.template import DiskTemplate
from common.names import InstanceName
from common.noderpc.instances import GuestState
from coordinator.operations.cluster.verify_group import VerifyGroup
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.test.delay import Delay
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import outcome, simulated_cluster


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
                ({"OP_ID": "OP_TEST_DELAY", "duration": 1, "priority": 9}, "-10 .high., 0 or 10"),
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


def test_of_jobs_submitted_together_none_is_taken_when_one_makes_no_sense() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            good = [Delay(duration=0.0).to_input()]
            for bad in ({"priority": 99}, {"OP_ID": "OP_NOTHING"}, {"warp": 9}):
                with pytest.raises(InvalidRequest):
                    await cluster.master.luxi("SubmitManyJobs", [good, [*good, good[0] | bad]])
            assert not cluster.state.jobs

    simulate(scenario())
