"""Reports of nodes, shared by all who ask."""

import asyncio

import pytest

from common.errors import GntError, Unreachable
from common.model.node import Node
from common.names import GroupId, MiB, NodeId, NodeName
from common.noderpc.facts import NodeFacts
from coordinator.nodes.reports import Reports
from tests.support.clock import simulate

ALPHA = Node(uuid=NodeId("a"), name=NodeName("alpha"), primary_ip="192.0.2.1", group=GroupId("g"))
BETA = Node(uuid=NodeId("b"), name=NodeName("beta"), primary_ip="192.0.2.2", group=GroupId("g"))
GONE = Node(
    uuid=NodeId("c"),
    name=NodeName("gone"),
    primary_ip="192.0.2.3",
    group=GroupId("g"),
    offline=True,
)


class Asked:
    """Answers after a second, with how often it was asked as the free memory."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, node: Node) -> NodeFacts:
        self.count += 1
        number = self.count
        await asyncio.sleep(1.0)
        if node is BETA:
            raise Unreachable("beta is silent")
        return NodeFacts(
            name=node.name, version="1", boot_id="b", clock=0.0, memory_total=MiB(0),
            memory_free=MiB(number), memory_dom0=MiB(0), cpus=1, cpu_sockets=1, cpu_nodes=1,
        )  # fmt: skip


async def free(reports: Reports, max_age_s: float = 0.0) -> int:
    answer = (await reports.of([ALPHA], max_age_s=max_age_s))[NodeId("a")]
    assert isinstance(answer, NodeFacts)
    return answer.memory_free


def test_whoever_asks_at_once_is_told_the_same() -> None:
    async def scenario() -> None:
        asked = Asked()
        reports = Reports(asked)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(free(reports)) for _ in range(50)]
        assert {task.result() for task in tasks} == {1}
        assert asked.count == 1

    simulate(scenario())


def test_a_question_asked_before_is_no_answer_but_the_next_is_for_all() -> None:
    async def scenario() -> None:
        asked = Asked()
        reports = Reports(asked)

        async def later() -> int:
            await asyncio.sleep(0.5)
            return await free(reports)

        async with asyncio.TaskGroup() as group:
            first = group.create_task(free(reports))
            others = [group.create_task(later()) for _ in range(20)]
        assert first.result() == 1
        assert {task.result() for task in others} == {2}

    simulate(scenario())


@pytest.mark.parametrize(("age_s", "seen"), [(0.0, 2), (1.4, 2), (1.6, 1)])
def test_reports_may_be_as_old_as_is_said(age_s: float, seen: int) -> None:
    async def scenario() -> None:
        reports = Reports(Asked())
        assert await free(reports) == 1
        await asyncio.sleep(0.5)
        assert await free(reports, age_s) == seen

    simulate(scenario())


def test_failures_are_told_and_offline_nodes_left_out() -> None:
    async def scenario() -> None:
        answers = await Reports(Asked()).of([ALPHA, BETA, GONE])
        assert set(answers) == {"a", "b"}
        assert isinstance(answers[NodeId("b")], GntError)

    simulate(scenario())


def test_whoever_gives_up_takes_nothing_from_others() -> None:
    async def scenario() -> None:
        reports = Reports(Asked())
        impatient = asyncio.ensure_future(free(reports))
        patient = asyncio.ensure_future(free(reports))
        await asyncio.sleep(0.5)
        impatient.cancel()
        assert await patient == 1
        with pytest.raises(asyncio.CancelledError):
            await impatient

    simulate(scenario())
