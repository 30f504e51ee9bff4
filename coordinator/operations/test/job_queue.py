"""Have a job stop where a program that tries the queue wants to look at it."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict, GntError
from common.messages import Order
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.operations.step import Step, act
from coordinator.state.config import Config

QUEUE_TEST = "jqueue-test"  # Ganeti's word for: where the socket is, which moment this is, a number
EXPAND_NAMES, EXEC, START_MESSAGES, MESSAGE = "expandnames", "exec", "startmsg", "logmsg"
MESSAGE_PREFIX = "TESTMSG="
ARRIVAL_S, DEPARTURE_S = 20.0, 60.0  # patience with whoever looks


class Visited(Order):
    """It has been, before it asks for locks, if that was asked."""


class QueuePlan(Order):
    at_start: bool
    messages: tuple[str, ...]
    fail: bool


@operation("OP_TEST_JQUEUE")
class TryQueue(Operation[Visited, QueuePlan], kw_only=True):
    """Wait for a visitor at certain moments, say what is asked, and fail if that is asked."""

    notify_waitlock: Annotated[bool, hidden("have it visited before it asks for locks")] = False
    notify_exec: Annotated[bool, hidden("have it visited when it has begun")] = False
    log_messages: Annotated[tuple[str, ...], hidden("what it logs, with a visit for each")] = ()
    fail: Annotated[bool, hidden("have it fail")] = False

    async def choose(self, cluster: Cluster) -> Visited:
        if self.notify_waitlock:
            await _be_visited(cluster, EXPAND_NAMES)
        return Visited()

    def locks(self, config: Config, _: Visited) -> Wanted:
        return wanted(nodes_exclusive=[config.master().uuid])

    async def prepare(self, cluster: Cluster, _: Visited) -> QueuePlan:  # noqa: ARG002
        return QueuePlan(at_start=self.notify_exec, messages=self.log_messages, fail=self.fail)

    def recipe(self, cluster: Cluster, plan: QueuePlan) -> Iterator[Step]:
        if plan.at_start:
            yield act("be visited", lambda: _be_visited(cluster, EXEC))
        if plan.messages:
            number = len(plan.messages)
            yield act("announce messages", lambda: _be_visited(cluster, START_MESSAGES, number))
        for number, message in enumerate(plan.messages, 1):
            yield _say(cluster, message, number)
        if plan.fail:
            yield act("fail", _fail)

    def result(self, plan: QueuePlan) -> bool:  # noqa: ARG002 -- it has succeeded
        return True


def _say(cluster: Cluster, message: str, number: int) -> Step:
    async def say() -> None:
        cluster.log(MESSAGE_PREFIX + message)
        await _be_visited(cluster, MESSAGE, number)

    return act(f"say message {number}", say)


async def _fail() -> None:
    raise GntError("The operation fails, as was asked.")


async def _be_visited(cluster: Cluster, moment: str, number: int | None = None) -> None:
    """Have whoever follows the job come, look, and go.

    Raises:
        Conflict: nobody comes, or who has come does not go.
    """
    with cluster.meeting() as meeting:
        cluster.announce(QUEUE_TEST, [meeting.path, moment, number])
        if not await cluster.happens(meeting.arrival(), within_s=ARRIVAL_S):
            raise Conflict(f"Nobody has connected to {meeting.path} within {ARRIVAL_S:g} seconds.")
        if not await cluster.happens(meeting.departure(), within_s=DEPARTURE_S):
            raise Conflict(
                f"Who has connected to {meeting.path} has not hung up within {DEPARTURE_S:g} "
                "seconds."
            )
