import asyncio
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from common.errors import InvalidRequest
from common.names import CallId, NodeName
from common.rpc.server import Reply
from common.tasks import Background
from noded.calls.recorded import MOST_ANSWERS, MOST_BYTES, RecordedAnswers
from tests.support.clock import simulate

ALPHA, BETA = NodeName("alpha"), NodeName("beta")
QUESTION = ("disks.ensure_present", b"{}")


class Counting:
    """Calls that take a second and count how often they were carried out."""

    def __init__(self) -> None:
        self.background = Background()
        self.answers = RecordedAnswers(self.background)
        self.carried_out = 0

    def run(self, size: int = 0) -> Callable[[], Coroutine[Any, Any, Reply]]:
        async def carry_out() -> Reply:
            self.carried_out += 1
            number = self.carried_out
            await asyncio.sleep(1)
            return Reply(200, b"%d" % number + bytes(size))

        return carry_out

    async def ask(
        self, call: str, *, caller: NodeName = ALPHA, question: tuple[str, bytes] = QUESTION
    ) -> bytes:
        return (await self.answers.once(caller, CallId(call), question, self.run())).body


def test_a_repeat_gets_the_recorded_answer() -> None:
    async def scenario() -> None:
        node = Counting()
        assert await node.ask("a") == await node.ask("a") == b"1"
        assert await node.ask("b") == b"2"
        assert await node.ask("a", caller=BETA) == b"3"

    simulate(scenario())


def test_of_what_was_answered_the_answer_alone_is_kept() -> None:
    """Noded's memory is locked, and a task is larger than most answers."""

    async def scenario() -> None:
        node, tasks = Counting(), []

        async def carry_out() -> Reply:
            tasks.append(weakref.ref(asyncio.current_task()))
            return Reply(200, b"1")

        for _ in range(2):
            reply = await node.answers.once(ALPHA, CallId("a"), QUESTION, carry_out)
            assert reply.body == b"1"
        assert [task() for task in tasks] == [None]

    simulate(scenario())


def test_a_repeat_in_flight_shares_the_answer() -> None:
    async def scenario() -> None:
        node = Counting()
        async with asyncio.TaskGroup() as group:
            both = [group.create_task(node.ask("a")) for _ in range(2)]
        assert [each.result() for each in both] == [b"1", b"1"]
        assert asyncio.get_running_loop().time() == 1

    simulate(scenario())


def test_a_caller_who_hangs_up_ends_nothing() -> None:
    async def scenario() -> None:
        node = Counting()
        first = asyncio.ensure_future(node.ask("a"))
        await asyncio.sleep(0.5)
        first.cancel()
        assert await node.ask("a") == b"1"
        assert node.carried_out == 1

    simulate(scenario())


def test_an_id_is_for_one_question() -> None:
    async def scenario() -> None:
        node = Counting()
        await node.ask("a")
        for question in (("disks.ensure_absent", b"{}"), (QUESTION[0], b'{"disk":1}')):
            with pytest.raises(InvalidRequest, match="id a was used for another call"):
                await node.ask("a", question=question)

    simulate(scenario())


def test_memory_is_bounded_and_the_newest_are_kept() -> None:
    async def scenario() -> None:
        node = Counting()
        async with asyncio.TaskGroup() as group:
            for number in range(2 * MOST_ANSWERS):
                group.create_task(node.ask(f"{number}"))
        assert len(node.answers._calls) == MOST_ANSWERS
        await node.ask(f"{2 * MOST_ANSWERS - 1}")
        assert node.carried_out == 2 * MOST_ANSWERS

    simulate(scenario())


def test_large_answers_push_out_the_oldest() -> None:
    async def scenario() -> None:
        node = Counting()
        await node.ask("small")
        for number in range(10):
            run = node.run(MOST_BYTES // 4)
            await node.answers.once(ALPHA, CallId(f"large {number}"), QUESTION, run)
        assert node.answers._bytes <= MOST_BYTES
        assert 1 <= len(node.answers._calls) < 10
        await node.ask("small")
        assert node.carried_out == 12

    simulate(scenario())


def test_a_call_ended_by_nodeds_end_is_not_remembered_as_answered() -> None:
    async def scenario() -> None:
        node = Counting()
        asking = asyncio.ensure_future(node.ask("a"))
        await asyncio.sleep(0.5)
        await node.background.close()
        with pytest.raises(asyncio.CancelledError):
            await asking

    simulate(scenario())
