"""A job that waits says for what, and whose it is."""

import asyncio
from typing import Any

from common.names import InstanceName, JobId
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.test.delay import Delay
from tests.sim.settings import WEB1, create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster


async def _why(cluster: SimulatedCluster, number: JobId) -> tuple[str, list[str], list[Any]]:
    status, reasons = await cluster.master.luxi("WhyJob", number)
    return status, [what for what, _ in reasons], [for_s for _, for_s in reasons]


def test_a_job_that_waits_for_a_lock_names_it_and_who_has_it() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma"))
            moving = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
            await asyncio.sleep(0.1)
            waiting = await cluster.submit(StartInstance(instance_name=WEB1))
            await asyncio.sleep(0.5)
            held = f"instance web1, held by job {moving} (INSTANCE_MIGRATE(web1), running)"
            status, told, for_s = await _why(cluster, waiting)
            assert (status, told) == ("waiting", [held])
            assert 0.4 < for_s[0] < 0.6
            rows = await cluster.master.luxi("QueryJobs", [waiting], ["status", "waits"])
            assert rows == [["waiting", held]]
            await cluster.finished(waiting)
            assert await _why(cluster, waiting) == ("success", [], [])

    simulate(scenario())


def test_a_lock_on_a_node_is_called_by_its_name() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            moving = await cluster.submit(create("web1", "gamma"))
            cluster.cut("alpha", "gamma")
            await asyncio.sleep(1.0)
            asked = await cluster.master.luxi("Query", "lock", ["name"], None)
            names = {row[0][1] for row in asked["data"]}
            assert {"node/gamma", "node-res/gamma", "instance/web1"} <= names
            cluster.heal()
            await cluster.finished(moving)

    simulate(scenario())


def test_a_job_in_the_queue_tells_its_turn_and_what_it_depends_on() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(max_running_jobs=1))
            first = await cluster.submit(Delay(duration=100.0))
            second = await cluster.submit(Delay(duration=1.0))
            third = await cluster.submit(Delay(duration=1.0))
            after = await cluster.submit(Delay(duration=1.0), depends=[[first, ["success"]]])
            place = "one of the 1 places to run"
            assert (await _why(cluster, second))[1] == [f"{place} (no job goes before it)"]
            assert (await _why(cluster, third))[1] == [f"{place} (1 job goes before it)"]
            other = f"the end of job {first} (TEST_DELAY(100.0), running)"
            assert (await _why(cluster, after))[1] == [other]

    simulate(scenario())


def test_a_job_that_waits_for_a_node_names_node_and_call() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "gamma", start=False))
            number = await cluster.submit(StartInstance(instance_name=InstanceName("web1")))
            cluster.cut("alpha", "gamma")
            await asyncio.sleep(3.0)
            status, told, for_s = await _why(cluster, number)
            assert any("node gamma to answer" in what for what in told), (status, told)
            assert max(for_s) > 2.0
            cluster.heal()
            await cluster.finished(number)

    simulate(scenario())


def test_a_job_that_cannot_be_stored_says_who_does_not_store_it() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            job = await cluster.submit(Delay(duration=1.0))
            cluster.cut("alpha", "beta")
            cluster.cut("alpha", "gamma")
            await asyncio.sleep(60)
            status, (why,), _ = await _why(cluster, job)
            assert status == "running"
            assert why.startswith("a majority that stores what it does. The cluster is read-only")
            assert "beta: " in why
            assert "gamma: " in why
            cluster.heal()
            await cluster.finished(job)

    simulate(scenario())
