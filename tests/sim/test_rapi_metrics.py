"""What Prometheus reads of a cluster, and where."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from common.exposition import MEDIA
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster
from tests.support.rest import Rest, rest_of

Scenario = Callable[[SimulatedCluster, Rest], Awaitable[None]]


def with_rest(folder: Path, scenario: Scenario, **options: Any) -> None:
    async def run() -> None:
        async with (
            simulated_cluster(nodes=2, seed=1) as cluster,
            rest_of(cluster, folder, **options) as rest,
        ):
            await scenario(cluster, rest)

    simulate(run())


async def scraped(rest: Rest) -> dict[str, float]:
    """Ask as Prometheus 2 does."""
    accept = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5"
    answer = await rest.ask("GET", "/metrics", user=None, Accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, MEDIA), answer.text
    lines = answer.text.decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def test_metrics_follow_the_cluster_and_cost_the_coordinator_nothing(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        await cluster.run(create("web1", "beta"))
        running = 'gantry_cluster_instances{status="running"}'
        while (told := await scraped(rest))[running] == 0:
            await rest.copy.changed()
        assert told['gantry_cluster_nodes{role="master"}'] == 1
        assert told['gantry_cluster_node_primaries{node="beta"}'] == 1
        assert told['gantry_cluster_node_answers{node="beta"}'] == 1
        free = told['gantry_cluster_node_memory_free_bytes{node="beta"}']
        assert 0 < free < told['gantry_cluster_node_memory_bytes{node="beta"}']
        assert told["gantry_rapi_is_up_to_date"] == 1
        assert 0 <= told["gantry_rapi_age_seconds"] < 60
        assert {*rest.luxi.asked} <= {"Subscribe", "NextChanges"}

    with_rest(tmp_path, scenario)


def test_a_silent_node_is_told_as_such(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        cluster.cut("alpha", "beta")
        while (told := await scraped(rest))['gantry_cluster_node_answers{node="beta"}'] == 1:
            await rest.copy.changed()
        assert told['gantry_cluster_node_answers{node="alpha"}'] == 1
        assert 'gantry_cluster_node_memory_bytes{node="beta"}' not in told

    with_rest(tmp_path, scenario)


def test_a_job_that_waits_grows_older(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        delay = [{"OP_ID": "OP_TEST_DELAY", "duration": 25}]
        await cluster.master.luxi("SubmitManyJobs", [delay])
        running = 'gantry_cluster_jobs{status="running",opcode="OP_TEST_DELAY"}'
        while (told := await scraped(rest)).get(running) != 1:
            await rest.copy.changed()
        while (now := await scraped(rest)).get(running) == 1:
            told = now
            await rest.copy.changed()
        assert 5 < told['gantry_cluster_oldest_job_seconds{status="running"}'] < 30
        assert now['gantry_cluster_oldest_job_seconds{status="running"}'] == 0

    with_rest(tmp_path, scenario)


def test_without_a_coordinator_nothing_is_told_of_the_cluster(tmp_path: Path) -> None:
    """Every candidate may be scraped; the figures of a cluster come from its master alone."""

    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        assert (await scraped(rest))["gantry_rapi_is_up_to_date"] == 1
        await cluster.crash_master()
        await rest.until_whole(is_whole=False)
        told = await scraped(rest)
        assert told["gantry_rapi_is_up_to_date"] == 0
        assert not [name for name in told if name.startswith("gantry_cluster_")]
        await cluster.start_master("alpha")
        await rest.until_whole()
        assert (await scraped(rest))['gantry_cluster_nodes{role="master"}'] == 1

    with_rest(tmp_path, scenario)


def test_metrics_take_a_user_where_all_reading_does(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        refused = await rest.ask("GET", "/metrics", user=None)
        assert (refused.status, refused.headers["Content-Type"]) == (401, "application/json")
        assert (await rest.ask("GET", "/metrics")).status == 200

    with_rest(tmp_path, scenario, is_closed=True)
