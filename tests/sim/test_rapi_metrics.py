"""What Prometheus reads of a cluster, and where."""

import asyncio
from pathlib import Path

from common.exposition import MEDIA
from coordinator.master.figures import LEAST_REST_S
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.rapi.inside import EVERY_S
from tests.sim.settings import WEB1, create
from tests.support.cluster import SimulatedCluster
from tests.support.rest import Rest, with_rest


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
        assert {*rest.luxi.asked} <= {"Subscribe", "NextChanges", "Figures"}
        before = len(rest.luxi.asked)
        for _ in range(5):
            await scraped(rest)
        assert len(rest.luxi.asked) == before

    with_rest(tmp_path, scenario, nodes=2)


def test_a_silent_node_is_told_as_such(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        cluster.cut("alpha", "beta")
        while (told := await scraped(rest))['gantry_cluster_node_answers{node="beta"}'] == 1:
            await rest.copy.changed()
        assert told['gantry_cluster_node_answers{node="alpha"}'] == 1
        assert 'gantry_cluster_node_memory_bytes{node="beta"}' not in told

    with_rest(tmp_path, scenario, nodes=2)


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

    with_rest(tmp_path, scenario, nodes=2)


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

    with_rest(tmp_path, scenario, nodes=2)


def test_metrics_take_a_user_where_all_reading_does(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        refused = await rest.ask("GET", "/metrics", user=None)
        assert (refused.status, refused.headers["Content-Type"]) == (401, "application/json")
        assert (await rest.ask("GET", "/metrics")).status == 200

    with_rest(tmp_path, scenario, nodes=2, is_closed=True)


async def told_anew(rest: Rest) -> dict[str, float]:
    """Return what is told when the coordinator has been asked since, and has asked others."""
    await asyncio.sleep(2 * EVERY_S + LEAST_REST_S)
    return await scraped(rest)


def test_waits_for_commits_and_locks_are_counted(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        await cluster.run(create("web1", "beta"))
        before = await told_anew(rest)
        moving = await cluster.submit(MigrateInstance(instance_name=WEB1, target_node="alpha"))
        await asyncio.sleep(0.1)
        cluster.cut("alpha", "beta")
        waiting = await cluster.submit(StartInstance(instance_name=WEB1))
        await asyncio.sleep(EVERY_S)
        told = await scraped(rest)
        commits = "gantry_cluster_commit_seconds_count"
        assert told[commits] > before[commits] > 0
        assert told["gantry_cluster_lock_waiters"] == 1
        assert 0 < told["gantry_cluster_longest_lock_wait_seconds"] <= EVERY_S
        assert told['gantry_cluster_locks{level="instance"}'] == 1
        cluster.heal()
        for job in (moving, waiting):
            await cluster.finished(job)
        told = await told_anew(rest)
        assert told["gantry_cluster_lock_waiters"] == 0
        assert told["gantry_cluster_longest_lock_wait_seconds"] == 0
        waits = 'gantry_cluster_lock_wait_seconds_bucket{le="%s"}'
        longer = told[waits % "+Inf"] - told[waits % "3.0"]
        assert longer - (before[waits % "+Inf"] - before[waits % "3.0"]) == 1

    with_rest(tmp_path, scenario, nodes=3)


def test_a_candidate_that_falls_behind_is_told_as_such(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        cluster.cut("alpha", "gamma")
        await cluster.run(ModifyCluster(max_running_jobs=10))
        told = await told_anew(rest)
        name = 'gantry_cluster_candidate_%s{node="%s"}'
        assert told["gantry_cluster_is_writable"] == 1
        assert told[name % ("stores", "gamma")] == 0
        assert told[name % ("behind_commits", "gamma")] > 1
        assert 40 < told[name % ("behind_seconds", "gamma")] < 70
        assert told[name % ("stores", "beta")] == 1
        assert told[name % ("behind_commits", "beta")] == 0
        assert told[name % ("behind_seconds", "beta")] == 0
        cluster.heal()
        told = await told_anew(rest)
        assert told[name % ("stores", "gamma")] == 1
        assert told[name % ("behind_seconds", "gamma")] == 0

    with_rest(tmp_path, scenario, nodes=3)


def test_score_safety_and_room_are_those_of_the_allocator(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster, rest: Rest) -> None:
        size = {"memory_size": 700, "cpu_count": 1, "disk_count": 2, "disk_size": 100}
        std = size | {"nic_count": 1, "spindle_use": 1}
        await cluster.run(ModifyCluster(ipolicy={"std": std}))
        told = await told_anew(rest)
        capacity = 'gantry_cluster_capacity_instances{group="default",disk_template="sharedfile"}'
        question = {
            "type": "capacity", "disk_template": "sharedfile", "disks": [{"size": 100}] * 2,
            "beparams": {"memory": 700},
        }  # fmt: skip
        answer = await cluster.master.luxi("AskAllocator", question)
        assert told[capacity] == answer["count"] > 1
        assert told['gantry_cluster_unsafe_nodes{group="default"}'] == 0
        balanced = told['gantry_cluster_score{group="default"}']
        await cluster.run(create("web1", "beta"))
        now = await told_anew(rest)
        assert now[capacity] < told[capacity]
        assert now['gantry_cluster_score{group="default"}'] > balanced
        assert now["gantry_cluster_outlook_age_seconds"] < 2 * LEAST_REST_S

    with_rest(tmp_path, scenario, nodes=2)
