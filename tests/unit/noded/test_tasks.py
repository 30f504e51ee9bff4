import asyncio

import pytest

from common.errors import NodeFailure, NotFound
from common.names import TaskId
from common.noderpc.tasks import TaskState, TaskStatus
from noded.tasks.registry import LONGEST_WATCH_S, MOST_KEPT, Progress, TaskRegistry
from tests.support.clock import simulate

COPY = TaskId("copy")


async def copying(progress: Progress) -> None:
    for tenth in range(10):
        progress.tell(f"copied {tenth * 10} %", tenth / 10)
        await asyncio.sleep(1)


async def wait_for_end(tasks: TaskRegistry, task: TaskId = COPY) -> TaskStatus:
    status = await tasks.watch(task, seen="", wait_s=30)
    while status.state is TaskState.RUNNING:
        status = await tasks.watch(task, seen=status.message, wait_s=30)
    return status


def test_a_watcher_hears_of_each_step_as_it_happens() -> None:
    async def scenario() -> None:
        tasks, heard = TaskRegistry(), []
        tasks.begin(COPY, copying)
        status = await tasks.watch(COPY, seen="", wait_s=30)
        while status.state is TaskState.RUNNING:
            heard.append((asyncio.get_running_loop().time(), status.share))
            status = await tasks.watch(COPY, seen=status.message, wait_s=30)
        assert heard == [(tenth, tenth / 10) for tenth in range(10)]
        assert (status.state, status.share) == (TaskState.DONE, 1.0)
        assert tasks.running == ()

    simulate(scenario())


def test_a_watch_without_news_ends_in_time() -> None:
    async def scenario() -> None:
        tasks = TaskRegistry()
        loop = asyncio.get_running_loop()
        tasks.begin(COPY, lambda _: asyncio.sleep(1000))
        assert (await tasks.watch(COPY, seen="", wait_s=5)).state is TaskState.RUNNING
        assert loop.time() == 5
        await tasks.watch(COPY, seen="", wait_s=10_000)
        assert loop.time() == 5 + LONGEST_WATCH_S
        await tasks.watch(COPY, seen="", wait_s=-1)
        assert loop.time() == 5 + LONGEST_WATCH_S
        await tasks.close()

    simulate(scenario())


def test_a_task_is_begun_once() -> None:
    async def scenario() -> None:
        tasks, begun = TaskRegistry(), []

        async def work(_: Progress) -> None:
            begun.append(1)
            await asyncio.sleep(1)

        tasks.begin(COPY, work)
        tasks.begin(COPY, work)
        await wait_for_end(tasks)
        tasks.begin(COPY, work)
        assert (await wait_for_end(tasks)).state is TaskState.DONE
        assert begun == [1]

    simulate(scenario())


def test_an_expected_failure_keeps_its_code_and_detail() -> None:
    async def work(_: Progress) -> None:
        raise NodeFailure("The target did not answer.", host="192.0.2.7")

    async def scenario() -> None:
        tasks = TaskRegistry()
        tasks.begin(COPY, work)
        assert await wait_for_end(tasks) == TaskStatus(
            id=COPY, state=TaskState.FAILED, message="The target did not answer.",
            error_code="node-failure", error_detail={"host": "192.0.2.7"},
        )  # fmt: skip

    simulate(scenario())


def test_an_unexpected_failure_is_told_as_a_bug() -> None:
    async def work(_: Progress) -> None:
        raise ZeroDivisionError

    async def scenario() -> None:
        tasks = TaskRegistry()
        tasks.begin(COPY, work)
        status = await wait_for_end(tasks)
        assert (status.state, status.error_code) == (TaskState.FAILED, "bug")

    simulate(scenario())


@pytest.mark.parametrize("after_s", [0, 2.5])
def test_cancelling_returns_when_the_task_has_cleaned_up(after_s: float) -> None:
    async def scenario() -> None:
        tasks = TaskRegistry()
        loop = asyncio.get_running_loop()

        async def work(progress: Progress) -> None:
            try:
                await copying(progress)
            finally:
                await asyncio.sleep(4)

        tasks.begin(COPY, work)
        if after_s:
            await asyncio.sleep(after_s)
        begun_s = loop.time()
        await tasks.cancel(COPY)
        # One that was cancelled before its first step has nothing to clean up.
        assert loop.time() - begun_s == (4 if after_s else 0)
        assert (await wait_for_end(tasks)).state is TaskState.CANCELLED
        await tasks.cancel(COPY)

    simulate(scenario())


def test_a_task_that_is_over_stays_as_it_is_when_cancelled() -> None:
    async def scenario() -> None:
        tasks = TaskRegistry()
        tasks.begin(COPY, copying)
        await wait_for_end(tasks)
        await tasks.cancel(COPY)
        assert (await wait_for_end(tasks)).state is TaskState.DONE

    simulate(scenario())


def test_a_begin_that_was_overtaken_by_its_cancel_begins_nothing() -> None:
    async def scenario() -> None:
        tasks = TaskRegistry()
        await tasks.cancel(COPY)
        tasks.begin(COPY, copying)
        assert (await wait_for_end(tasks)).state is TaskState.CANCELLED

    simulate(scenario())


def test_an_unknown_task_is_said_to_be_unknown() -> None:
    with pytest.raises(NotFound, match="no task copy"):
        simulate(TaskRegistry().watch(COPY, seen="", wait_s=1))


def test_the_oldest_ended_tasks_are_forgotten_and_running_ones_never() -> None:
    async def scenario() -> None:
        tasks = TaskRegistry()
        tasks.begin(COPY, lambda _: asyncio.sleep(1000))
        for number in range(MOST_KEPT + 10):
            tasks.begin(TaskId(f"{number}"), lambda _: asyncio.sleep(1))
        await asyncio.sleep(1001)
        assert tasks.running == ()
        with pytest.raises(NotFound):
            await tasks.watch(TaskId("0"), seen="", wait_s=1)
        assert (await wait_for_end(tasks)).state is TaskState.DONE

    simulate(scenario())
