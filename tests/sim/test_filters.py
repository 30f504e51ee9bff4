"""Filter rules hold, reject and limit jobs that have not begun."""

import asyncio
from typing import Any

import pytest

from common.errors import Cancelled, InvalidRequest, NotFound
from common.model.job import Status
from common.names import JobId
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.test.delay import Delay
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, outcome, simulated_cluster

DELAYS = ["opcode", ["=", "OP_ID", "OP_TEST_DELAY"]]
NEW = ["jobid", [">", "id", "watermark"]]
WHY = [["gnt:user", "the switch is replaced", 1]]
FIELDS = ["uuid", "watermark", "priority", "predicates", "action", "reason_trail"]


async def _rule(
    cluster: SimulatedCluster,
    action: Any,
    *predicates: Any,
    uuid: str | None = None,
    priority: int = 0,
) -> str:
    return str(
        await cluster.master.luxi("ReplaceFilter", uuid, priority, list(predicates), action, WHY)
    )


async def _delete(cluster: SimulatedCluster, uuid: str) -> None:
    await cluster.master.luxi("DeleteFilter", uuid)


async def _statuses(cluster: SimulatedCluster, *numbers: JobId) -> list[str]:
    rows = await cluster.master.luxi("QueryJobs", list(numbers), ["status"])
    return [status for (status,) in rows]


async def _delays(cluster: SimulatedCluster, count: int, **common: Any) -> list[JobId]:
    return [await cluster.submit(Delay(duration=10.0), **common) for _ in range(count)]


def test_paused_jobs_stay_queued_until_the_rule_is_deleted() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            before = await cluster.submit(Delay(duration=1000.0))
            uuid = await _rule(cluster, "PAUSE", NEW)
            paused = await cluster.submit(Delay(duration=1.0))
            await asyncio.sleep(100)
            assert await _statuses(cluster, before, paused) == ["running", "queued"]
            status, ((why, _),) = await cluster.master.luxi("WhyJob", paused)
            rule = f"the filter rule {uuid} (“the switch is replaced”)"
            assert (status, why) == ("queued", f"{rule} to be deleted or replaced")
            await _delete(cluster, uuid)
            await asyncio.sleep(0.5)
            assert await _statuses(cluster, paused) == ["running"]
            assert (await cluster.finished(paused)).status is Status.SUCCESS

    simulate(scenario())


def test_a_rejected_job_is_cancelled_and_names_the_rule() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            running = await cluster.submit(Delay(duration=10.0))
            uuid = await _rule(cluster, "REJECT", DELAYS)
            rejected = await cluster.submit(Delay(duration=1.0))
            after = await cluster.submit(
                ModifyCluster(max_running_jobs=10), depends=[[rejected, ["canceled"]]]
            )
            with pytest.raises(Cancelled, match=f"rejected by the filter rule {uuid}"):
                outcome(await cluster.finished(rejected))
            assert (await cluster.finished(after)).status is Status.SUCCESS
            assert (await cluster.finished(running)).status is Status.SUCCESS

    simulate(scenario())


def test_a_rule_rejects_jobs_that_wait_for_whatever_when_it_is_made() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(ModifyCluster(max_running_jobs=1))
            (running,) = await _delays(cluster, 1)
            in_line, *_ = await _delays(cluster, 1)
            (dependent,) = await _delays(cluster, 1, depends=[[running, ["success"]]])
            pause = await _rule(cluster, "PAUSE", DELAYS)
            (paused,) = await _delays(cluster, 1)
            await _rule(cluster, "REJECT", DELAYS, uuid=pause)
            await asyncio.sleep(0.5)
            waited = await _statuses(cluster, running, in_line, dependent, paused)
            assert waited == ["running", "canceled", "canceled", "canceled"]

    simulate(scenario())


def test_a_rate_limit_lets_so_many_jobs_run_at_a_time_and_others_pass() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            uuid = await _rule(cluster, ["RATE_LIMIT", 2], DELAYS)
            jobs = await _delays(cluster, 5)
            await cluster.run(ModifyCluster(max_running_jobs=15))
            assert await _statuses(cluster, *jobs) == ["running"] * 2 + ["queued"] * 3
            _, ((why, _),) = await cluster.master.luxi("WhyJob", jobs[2])
            assert why.startswith(f"one of the 2 places that the filter rule {uuid}")
            await asyncio.sleep(11)
            assert await _statuses(cluster, *jobs) == ["success"] * 2 + ["running"] * 2 + ["queued"]
            await asyncio.sleep(11)
            assert await _statuses(cluster, *jobs[2:]) == ["success"] * 2 + ["running"]

    simulate(scenario())


def test_who_waits_at_a_rate_limit_can_be_cancelled_and_put_first() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await _rule(cluster, ["RATE_LIMIT", 1], DELAYS)
            running, second, third, fourth = await _delays(cluster, 4)
            await cluster.master.luxi("ChangeJobPriority", fourth, -10)
            assert (await cluster.master.luxi("CancelJob", second))[0]
            await cluster.finished(running)
            await asyncio.sleep(0.5)
            told = await _statuses(cluster, second, third, fourth)
            assert told == ["canceled", "queued", "running"]

    simulate(scenario())


def test_jobs_may_bring_a_limit_along_in_their_reason_and_it_outlives_the_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            reason = [["gnt:user", "rate-limit:1:copies", 1]]
            running, waiting = await _delays(cluster, 2, reason=reason)
            (other,) = await _delays(cluster, 1, reason=[["gnt:user", "rate-limit:2:copies", 1]])
            await asyncio.sleep(0.5)
            told = await _statuses(cluster, running, waiting, other)
            assert told == ["running", "queued", "running"]
            _, ((why, _),) = await cluster.master.luxi("WhyJob", waiting)
            assert why == "one of the 1 places of jobs that have the reason “rate-limit:1:copies”"
            await cluster.crash_master()
            await cluster.take_over("beta")
            await asyncio.sleep(0.5)
            assert await _statuses(cluster, running, waiting) == ["running", "queued"]
            await cluster.finished(running)
            assert (await cluster.finished(waiting)).status is Status.SUCCESS

    simulate(scenario())


def test_jobs_that_run_count_towards_a_limit_that_is_new_and_go_on() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            running = await _delays(cluster, 3)
            await asyncio.sleep(5)
            await _rule(cluster, ["RATE_LIMIT", 1], DELAYS)
            (waiting,) = await _delays(cluster, 1)
            await asyncio.sleep(1)
            assert await _statuses(cluster, *running, waiting) == ["running"] * 3 + ["queued"]
            await asyncio.sleep(6)
            assert await _statuses(cluster, *running, waiting) == ["success"] * 3 + ["running"]

    simulate(scenario())


def test_the_first_rule_that_fits_decides_and_continue_never_does() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await _rule(cluster, "CONTINUE", DELAYS)
            wanted = ["reason", ["=~", "reason", "^pink bunny"]]
            await _rule(cluster, "ACCEPT", wanted, priority=1)
            await _rule(cluster, "PAUSE", DELAYS, priority=2)
            (wanted_job,) = await _delays(cluster, 1, reason=[["gnt:user", "pink bunny 7", 1]])
            (other,) = await _delays(cluster, 1)
            await asyncio.sleep(0.5)
            assert await _statuses(cluster, wanted_job, other) == ["running", "queued"]

    simulate(scenario())


def test_rules_and_who_waits_for_them_outlive_the_master() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            limit = await _rule(cluster, ["RATE_LIMIT", 1], DELAYS)
            pause = await _rule(cluster, "PAUSE", ["opcode", ["=", "OP_ID", "OP_CLUSTER_VERIFY"]])
            running, waiting = await _delays(cluster, 2)
            await asyncio.sleep(0.5)
            await cluster.crash_master()
            await cluster.take_over("beta")
            await asyncio.sleep(0.5)
            assert await _statuses(cluster, running, waiting) == ["running", "queued"]
            rows = await cluster.master.luxi("QueryFilters", [limit, pause], ["uuid"])
            assert rows == [[limit], [pause]]
            await cluster.finished(running)
            assert (await cluster.finished(waiting)).status is Status.SUCCESS

    simulate(scenario())


def test_rules_are_listed_as_they_are_asked_and_can_be_replaced() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            (job,) = await _delays(cluster, 1)
            later = await _rule(cluster, "PAUSE", NEW, priority=5)
            sooner = await _rule(cluster, "ACCEPT", DELAYS)
            rows = await cluster.master.luxi("QueryFilters", None, FIELDS)
            assert rows == [
                [sooner, job, 0, [DELAYS], "ACCEPT", WHY],
                [later, job, 5, [NEW], "PAUSE", WHY],
            ]
            (newer,) = await _delays(cluster, 1)
            assert await _rule(cluster, ["RATE_LIMIT", 3], uuid=later) == later
            (row,) = await cluster.master.luxi("QueryFilters", [later], FIELDS)
            assert row == [later, newer, 0, [], ["RATE_LIMIT", 3], WHY]
            await _delete(cluster, later)
            with pytest.raises(NotFound, match="no filter rule"):
                await _delete(cluster, later)
            with pytest.raises(NotFound, match="no filter"):
                await cluster.master.luxi("QueryFilters", [later], FIELDS)

    simulate(scenario())


@pytest.mark.parametrize(
    ("uuid", "priority", "predicates", "action", "told"),
    [
        ("lan", 0, [], "PAUSE", "no UUID"),
        (None, -1, [], "PAUSE", "0 or more"),
        (None, 0, [["jobs", None]], "PAUSE", "jobid, opcode and reason"),
        (None, 0, [["jobid", [">", "name", 1]]], "PAUSE", "“name”, which does not exist"),
        (None, 0, [["opcode", ["=~", "OP_ID", "("]]], "PAUSE", "regular expression"),
        (None, 0, [NEW] * 51, "PAUSE", "50 predicates"),
        (None, 0, [], "HALT", "no action"),
        (None, 0, [], ["RATE_LIMIT", 0], r"^“\[\"RATE_LIMIT\",0\]” is no action"),
        (None, 0, {}, "PAUSE", "the filter rule"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(
    uuid: str | None, priority: int, predicates: Any, action: Any, told: str
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(InvalidRequest, match=told):
                await cluster.master.luxi("ReplaceFilter", uuid, priority, predicates, action, WHY)
            assert await cluster.master.luxi("QueryFilters", None, ["uuid"]) == []

    simulate(scenario())
