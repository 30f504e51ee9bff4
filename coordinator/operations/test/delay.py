"""Do nothing for a while: to try the queue."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import InvalidRequest
from common.messages import Order
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument, option
from coordinator.operations.step import Step, act
from coordinator.state.config import Config


class DelayPlan(Order):
    duration: float
    repeat: int


@operation("OP_TEST_DELAY")
class Delay(Operation[None, DelayPlan], kw_only=True):
    """Wait on the master, holding no lock but the shared one of the cluster."""

    duration: Annotated[float, argument("seconds")]
    repeat: Annotated[int, option("-r", "--repeat", help="do it this many times more")] = 0

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- needs none
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> DelayPlan:  # noqa: ARG002
        if not 0 <= self.duration <= 86_400 or not 0 <= self.repeat <= 10_000:
            raise InvalidRequest("A delay takes 0 to 86,400 seconds, at most 10,000 times.")
        return DelayPlan(duration=self.duration, repeat=self.repeat)

    def recipe(self, cluster: Cluster, plan: DelayPlan) -> Iterator[Step]:
        if plan.duration > 0:
            for number in range(plan.repeat + 1):
                title = f"wait {plan.duration:g} s ({number + 1})"
                yield act(title, lambda: cluster.sleep(plan.duration))
