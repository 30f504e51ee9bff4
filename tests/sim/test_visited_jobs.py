"""Jobs that stop for whoever wants to look at them, as tests of the queue do."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.errors import Conflict, GntError, InvalidRequest
from common.model.job import Status
from common.names import JobId
from coordinator.operations.base import read_operation
from coordinator.operations.test.delay import Delay
from coordinator.operations.test.job_queue import QUEUE_TEST, TryQueue
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

Look = Callable[[str, Any], Awaitable[None]]


async def nothing(_moment: str, _number: Any) -> None:
    """See, and say nothing."""


async def told(cluster: SimulatedCluster, number: JobId, kind: str) -> list[Any]:
    """Return what programs that follow a job are told of a kind."""
    ((logs,),) = await cluster.master.luxi("QueryJobs", [number], ["oplog"])
    return [entry[3] for log in logs for entry in log if entry[2] == kind]


async def visit_all(cluster: SimulatedCluster, number: JobId, look: Look = nothing) -> list[str]:
    """Visit a job wherever it waits for somebody, until it ends; return at which moments."""
    moments: list[str] = []
    while not cluster.state.jobs[number].status.is_final:
        waits = await told(cluster, number, QUEUE_TEST)
        for path, moment, count in waits[len(moments) :]:
            _, writer = await asyncio.open_unix_connection(path)
            await look(moment, count)
            writer.close()
            moments.append(moment)
        await cluster.settle(0.1)
    return moments


def test_a_job_waits_for_a_visitor_at_each_moment_and_is_seen_as_what_it_then_is() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            seen: list[tuple[str, Any, str, int]] = []

            async def look(moment: str, count: Any) -> None:
                ((status,),) = await cluster.master.luxi("QueryJobs", [number], ["status"])
                lines = await told(cluster, number, "message")
                said = sum(line.startswith("TESTMSG=") for line in lines)
                seen.append((moment, count, status, said))

            order = TryQueue(notify_waitlock=True, notify_exec=True, log_messages=("a", ""))
            number = await cluster.submit(order)
            await visit_all(cluster, number, look)
            assert seen == [
                ("expandnames", None, "waiting", 0),
                ("exec", None, "running", 0),
                ("startmsg", 2, "running", 0),
                ("logmsg", 1, "running", 1),
                ("logmsg", 2, "running", 2),
            ]
            job = await cluster.finished(number)
            assert job.ops[0].result is True
            said = await told(cluster, number, "message")
            assert [each for each in said if each[:4] == "TEST"] == ["TESTMSG=a", "TESTMSG="]
            sockets = cluster.machines["alpha"].paths.luxi_socket.parent
            assert not list(sockets.iterdir()), "sockets are taken away"

    simulate(scenario())


def test_a_job_that_is_to_fail_fails_after_its_messages_and_those_behind_it_with_it() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            bad = TryQueue(log_messages=("a",), fail=True)
            number = await cluster.submit(TryQueue(), bad, TryQueue())
            assert await visit_all(cluster, number) == ["startmsg", "logmsg"]
            job = cluster.state.jobs[number]
            assert [op.status for op in job.ops] == [Status.SUCCESS, Status.ERROR, Status.ERROR]
            ((results,),) = await cluster.master.luxi("QueryJobs", [number], ["opresult"])
            assert results[1] == ["OpExecError", ["The operation fails, as was asked."]]

    simulate(scenario())


def test_a_job_that_nobody_visits_says_so_and_ends() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            with pytest.raises(Conflict, match=r"Nobody has connected to .*sock within 20 seconds"):
                await cluster.run(TryQueue(notify_exec=True))
            for order in (TryQueue(notify_waitlock=True), TryQueue(notify_exec=True)):
                number = await cluster.submit(order)
                await cluster.settle(1.0)
                await cluster.master.luxi("CancelJob", number)
                assert (await cluster.finished(number)).status is Status.CANCELED

    simulate(scenario())


def test_who_comes_and_does_not_go_holds_a_job_up_for_a_minute_and_no_longer() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(TryQueue(notify_exec=True))
            await cluster.settle(1.0)
            ((path, _, _),) = await told(cluster, number, QUEUE_TEST)
            _, writer = await asyncio.open_unix_connection(path)
            await cluster.settle(1.0)
            with pytest.raises(FileNotFoundError):  # there is one visitor
                await asyncio.open_unix_connection(path)
            job = await cluster.finished(number)
            writer.close()
            assert job.status is Status.ERROR
            failure = job.ops[0].failure
            assert failure is not None
            assert "has not hung up within 60 seconds" in failure.message

    simulate(scenario())


def test_a_job_begun_by_a_coordinator_that_died_is_visited_under_the_next_one() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(TryQueue(notify_exec=True))
            await cluster.settle(1.0)
            await cluster.crash_master()
            await cluster.start_master("alpha")
            await cluster.settle(1.0)
            path, _, _ = (await told(cluster, number, QUEUE_TEST))[-1]
            _, writer = await asyncio.open_unix_connection(path)
            writer.close()
            assert (await cluster.finished(number)).status is Status.SUCCESS

    simulate(scenario())


@pytest.mark.parametrize("says", [b"", b"x"])
def test_a_delay_is_ended_with_its_repeats_by_who_connects_and_hangs_up_or_speaks(
    says: bytes,
) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            number = await cluster.submit(Delay(duration=1000.0, repeat=3, interruptible=True))
            await cluster.settle(5.0)
            ((path,),) = await told(cluster, number, "delay-test")
            _, writer = await asyncio.open_unix_connection(path)
            await cluster.settle(5.0)
            assert not cluster.state.jobs[number].status.is_final, "to come is not to interrupt"
            writer.write(says)
            if not says:
                writer.close()
            await cluster.settle(1.0)
            job = cluster.state.jobs[number]
            writer.close()
            assert job.status is Status.SUCCESS
            assert [entry.message for entry in job.ops[0].log][-2:] == [
                "Received connection, time to go is 995",
                "Interrupted, time spent waiting: 10",
            ]
            values = [entry.value for entry in job.ops[0].log if entry.value is not None]
            assert values == [{"list": [path]}], "older coordinators read no list there"
            with pytest.raises(FileNotFoundError):
                await asyncio.open_unix_connection(path)

    simulate(scenario())


def test_a_delay_that_could_be_interrupted_takes_its_time_and_is_cancelled_like_others() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            loop = asyncio.get_running_loop()
            begin = loop.time()
            await cluster.run(Delay(duration=10.0, repeat=2, interruptible=True))
            assert 30 <= loop.time() - begin < 31
            number = await cluster.submit(Delay(duration=1000.0, interruptible=True))
            await cluster.settle(1.0)
            await cluster.master.luxi("CancelJob", number)
            assert (await cluster.finished(number)).status is Status.CANCELED

    simulate(scenario())


def test_a_dummy_ends_as_asked_and_submits_what_is_asked() -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            said = {"OP_ID": "OP_TEST_DUMMY", "result": {"a": [1]}, "messages": ["x", "y"]}
            number = await cluster.master.luxi("SubmitJob", [said])
            op = (await cluster.finished(number)).ops[0]
            assert op.result == {"a": [1]}
            assert [entry.message for entry in op.log] == ["x", "y"]
            with pytest.raises(GntError, match=r"Error requested \(bad\)"):
                await cluster.run(read_operation(said | {"result": "bad", "fail": 1}))
            inner = [[{"OP_ID": "OP_TEST_DUMMY", "result": n}] for n in (1, 2)]
            number = await cluster.master.luxi("SubmitJob", [said | {"submit_jobs": [*inner, []]}])
            result = (await cluster.finished(number)).ops[0].result
            assert result["result"] == {"a": [1]}
            (_, one), (_, two), refused = result["jobs"]
            assert [(await cluster.finished(n)).ops[0].result for n in (one, two)] == [1, 2]
            assert refused == [False, "A job has at least one operation."]

    simulate(scenario())


@pytest.mark.parametrize(
    ("jobs", "match"),
    [
        ([[{"OP_ID": "OP_NOTHING"}]], "no operation “OP_NOTHING”"),
        ([{"OP_ID": "OP_TEST_DUMMY"}], "submit_jobs"),
        (7, "submit_jobs"),
        ([[{"OP_ID": "OP_TEST_OS_PARAMS", "osparams_secret": {"a": "b"}}]], "is given secrets"),
        ([[{"OP_ID": "OP_TEST_DUMMY",
            "submit_jobs": [[{"OP_ID": "OP_TEST_OS_PARAMS", "osparams_secret": {"a": "b"}}]]}]],
         "is given secrets"),
    ],
)  # fmt: skip
def test_a_dummy_submits_nothing_strange_and_keeps_no_secrets(jobs: Any, match: str) -> None:
    with pytest.raises(InvalidRequest, match=match):
        read_operation({"OP_ID": "OP_TEST_DUMMY", "submit_jobs": jobs})
