"""Jobs that are cancelled: in the queue, while they wait, and while they run."""

import asyncio
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from common.errors import Cancelled
from common.luxi.failures import JobLost
from common.messages import from_json
from common.model.job import Job, Status
from common.names import JobId
from common.noderpc.instances import Instances
from coordinator.jobs.context import JobContext
from coordinator.jobs.running import RunningJob
from coordinator.nodes.calls import Nodes
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.shutdown import ShutDownInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.step import Step
from coordinator.operations.test.delay import Delay
from coordinator.state.rows import Update
from coordinator.state.state import State
from tests.sim.settings import WEB1, create, mirrored
from tests.sim.steps_of_jobs import until_step
from tests.sim.stories.reserved import reserved
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster
from tests.support.faults import Gate
from tests.support.network import Line, Trip
from tests.support.story import changed_recipes


async def cancel(cluster: SimulatedCluster, number: JobId) -> tuple[bool, str]:
    done, told = await cluster.master.luxi("CancelJob", number)
    return done, told


def read_arguments(trip: Trip) -> dict[str, Any]:
    """Return what a call was made with."""
    return dict(from_json(trip.body, dict[str, Any], what="a call"))


def test_a_queued_job_is_cancelled_at_once() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            first = await cluster.submit(Delay(duration=100.0))
            second = await cluster.submit(Delay(duration=1.0), depends=[[first, ["success"]]])
            assert await cancel(cluster, second) == (True, f"Job {second} is cancelled.")
            job = await cluster.finished(second)
            assert job.status is Status.CANCELED
            done, told = await cancel(cluster, second)
            assert not done
            assert "has ended already (canceled)" in told
            with pytest.raises(JobLost, match="no job 99"):
                await cancel(cluster, JobId(99))

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
            await cancel(cluster, waiting)
            job = await cluster.finished(waiting)
            assert job.status is Status.CANCELED
            await cancel(cluster, moving)
            assert (await cluster.finished(moving)).status is Status.CANCELED
            assert before.differences(await cluster.snapshot()) == []

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
            await until_step(cluster, number, "create disk 0")
            assert (await cancel(cluster, number))[0]
            with pytest.raises(Cancelled, match="was cancelled; what it had done is undone"):
                outcome(await cluster.finished(number))
            assert before.differences(await cluster.snapshot()) == []

    simulate(scenario())


def test_a_reservation_that_is_being_forgotten_is_there_again_when_that_is_cancelled() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(reserved(mirrored()))
            before = await cluster.snapshot()
            order, asked = RemoveInstance(instance_name=WEB1), asyncio.Event()

            def telling(steps: Iterator[Step]) -> Iterator[Step]:
                (step,) = steps
                forget = step.edit
                assert forget

                def edit(state: State) -> Iterable[Update]:
                    asked.set()
                    return forget(state)

                yield dataclasses.replace(step, edit=edit)

            with changed_recipes(order, telling):
                number = await cluster.submit(order)
                await asked.wait()  # the commit that forgets it is under way
                assert (await cancel(cluster, number))[0]
                assert (await cluster.finished(number)).status is Status.CANCELED
            assert before.differences(await cluster.snapshot()) == []

    simulate(scenario())


def test_a_delay_is_cancelled_in_the_middle() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(Delay(duration=1000.0))
            await asyncio.sleep(1)
            began = cluster.now()
            await cancel(cluster, number)
            assert (await cluster.finished(number)).status is Status.CANCELED
            assert cluster.now() - began < 1

    simulate(scenario())


def test_a_job_past_its_point_of_no_return_is_not_cancelled() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            number = await cluster.submit(RemoveInstance(instance_name=WEB1))
            await until_step(cluster, number, "delete disk 0")
            done, told = await cancel(cluster, number)
            assert not done
            assert "point of no return" in told
            assert (await cluster.finished(number)).status is Status.SUCCESS

    simulate(scenario())


def test_what_cannot_be_undone_any_more_waits_on_though_its_job_is_cancelled() -> None:
    """The operations after it are not begun."""

    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            running = RunningJob(Job(id=JobId(1000), ops=(), received=cluster.now()))
            context = JobContext(cluster.master.running._around, running, 0)
            running.cancel_wanted.set()
            with pytest.raises(Cancelled):
                await context.sleep(5.0)
            running.past_return = True
            began = cluster.now()
            await context.sleep(5.0)
            assert cluster.now() - began >= 5

    simulate(scenario())
