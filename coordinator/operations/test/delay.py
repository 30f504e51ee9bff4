"""Do nothing for a while: to try the queue, and what waits for locks."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import Conflict, GntError, InvalidRequest
from common.messages import Order
from common.model.node import Node
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.step import Step, act
from coordinator.state.config import Config

DELAY_TEST = "delay-test"  # Ganeti's word for the path of the socket that ends a delay


class DelayPlan(Order):
    duration: float
    repeat: int
    interruptible: bool = False


@operation("OP_TEST_DELAY")
class Delay(Operation[None, DelayPlan], kw_only=True):
    """Have a job wait while the master, and the nodes that are named, are locked.

    It is the coordinator that waits, until the job is cancelled at the latest. Nodes that are
    named have to answer when it begins.
    """

    duration: Annotated[float, argument("seconds")]
    repeat: Annotated[int, option("-r", "--repeat", help="do it this many times more")] = 0
    on_master: Annotated[
        bool, option("--no-master", help="do not lock the master node", syntax=Syntax.NO_FLAG)
    ] = True
    on_nodes: Annotated[
        tuple[str, ...],
        option("-n", "--nodes", help="nodes to lock, which have to answer", syntax=Syntax.LIST),
    ] = ()
    interruptible: Annotated[
        bool,
        option(
            "-i",
            "--interruptible",
            help="have whoever connects to a socket end it",
            syntax=Syntax.FLAG,
        ),
    ] = False
    no_locks: Annotated[
        bool,
        option("-l", "--no-locks", help="lock no node at all", syntax=Syntax.FLAG, instead=()),
    ] = True

    def locks(self, config: Config, _: None) -> Wanted:
        if self.no_locks:
            return wanted()
        nodes = {node.uuid for node in self._named(config)}
        if self.on_master:
            nodes.add(config.master().uuid)
        return wanted(nodes_exclusive=sorted(nodes))

    async def prepare(self, cluster: Cluster, _: None) -> DelayPlan:
        if not 0 <= self.duration <= 86_400 or not 0 <= self.repeat <= 10_000:
            raise InvalidRequest("A delay takes 0 to 86,400 seconds, at most 10,000 times.")
        if self.on_nodes:
            await _check_answer(cluster, self._named(cluster.config))
        return DelayPlan(
            duration=self.duration, repeat=self.repeat, interruptible=self.interruptible
        )

    def recipe(self, cluster: Cluster, plan: DelayPlan) -> Iterator[Step]:
        if plan.interruptible:
            yield act("wait, or be interrupted", lambda: _wait_for_visitor(cluster, plan))
        elif plan.duration > 0:
            for number in range(plan.repeat + 1):
                title = f"wait {plan.duration:g} s ({number + 1})"
                yield act(title, lambda: cluster.sleep(plan.duration))

    def _named(self, config: Config) -> list[Node]:
        return [config.node(name) for name in self.on_nodes]


async def _wait_for_visitor(cluster: Cluster, plan: DelayPlan) -> None:
    """Wait; who connects and then hangs up, or says something, ends it, with all its repeats."""
    for _ in range(plan.repeat + 1):
        with cluster.meeting() as meeting:
            cluster.log(f"Whoever connects to {meeting.path} ends the delay by hanging up.")
            cluster.announce(DELAY_TEST, [meeting.path])
            begin = cluster.steady()
            if not await cluster.happens(meeting.arrival(), within_s=plan.duration):
                continue
            left_s = max(begin + plan.duration - cluster.steady(), 0)
            cluster.log(f"Received connection, time to go is {left_s:.0f}")
            if await cluster.happens(meeting.departure(), within_s=left_s):
                cluster.log(f"Interrupted, time spent waiting: {cluster.steady() - begin:.0f}")
                return


async def _check_answer(cluster: Cluster, nodes: list[Node]) -> None:
    answers = await cluster.facts_of(nodes)
    for node in nodes:
        if node.uuid not in answers:
            raise Conflict(f"Node {node.name} is marked offline, and is not asked.", node=node.name)
        if isinstance(error := answers[node.uuid], GntError):
            raise error
