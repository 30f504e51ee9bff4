"""A machine that is slow to make its key joins all the same, and the job says what it waits for."""

from common.model.job import Status
from tests.sim.members import add_delta
from tests.support.clock import simulate
from tests.support.cluster import simulated_cluster
from tests.support.faults import Slow

WORDS = "delta makes its key"


def test_a_machine_that_takes_long_to_make_its_key_joins() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            slow = Slow(lambda trip: trip.call.name == "join.request", delay_s=14.0)
            cluster.network.faults.append(slow)
            job = await cluster.finished(await cluster.submit(add_delta(cluster)))
            assert job.status is Status.SUCCESS
            assert sum(WORDS in entry.message for entry in job.ops[0].log) == 1
            assert cluster.config.find_node("delta")

    simulate(scenario())


def test_of_one_that_is_soon_done_nothing_is_said() -> None:
    async def scenario() -> None:
        async with simulated_cluster(strangers=1) as cluster:
            job = await cluster.finished(await cluster.submit(add_delta(cluster)))
            assert job.status is Status.SUCCESS
            assert not any(WORDS in entry.message for entry in job.ops[0].log)

    simulate(scenario())
