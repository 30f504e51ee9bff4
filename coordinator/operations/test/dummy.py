"""Do nothing, and end as asked: to try programs that submit jobs."""

from collections.abc import Iterator
from typing import Annotated, Any

from common.errors import GntError, InvalidRequest
from common.messages import Order
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation, read_operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.operations.step import Step, act
from coordinator.state.config import Config

Jobs = tuple[tuple[dict[str, Any], ...], ...]


class DummyPlan(Order):
    result: Any
    fails: bool
    jobs: Jobs


@operation("OP_TEST_DUMMY")
class Dummy(Operation[None, DummyPlan], kw_only=True, rename={"outcome": "result"}):
    """Say what is asked, submit what is asked, and end with what is asked, be it a failure."""

    outcome: Annotated[Any, hidden("what its result is")] = None
    messages: Annotated[tuple[str, ...], hidden("what it logs")] = ()
    fail: Annotated[Any, hidden("anything true: have it fail")] = None
    submit_jobs: Annotated[Jobs, hidden("lists of operations, each a job that it submits")] = ()

    def __post_init__(self) -> None:
        for inner in _all_of(self.submit_jobs):
            if any(p.secret and getattr(inner, name) for name, p in inner.parameters().items()):
                raise InvalidRequest(
                    f"{inner.opcode} is given secrets, which the row of a job that submits it "
                    "would keep; submit it by itself."
                )

    def is_for_root(self) -> bool:
        return any(inner.is_for_root() for inner in _all_of(self.submit_jobs))

    def locks(self, config: Config, _: None) -> Wanted:  # noqa: ARG002 -- needs none
        return wanted()

    async def prepare(self, cluster: Cluster, _: None) -> DummyPlan:
        for message in self.messages:
            cluster.log(message)
        return DummyPlan(result=self.outcome, fails=bool(self.fail), jobs=self.submit_jobs)

    def recipe(self, cluster: Cluster, plan: DummyPlan) -> Iterator[Step]:  # noqa: ARG002
        async def fail() -> None:
            raise GntError(f"Error requested ({plan.result}).")

        if plan.fails:
            yield act("fail", fail)

    def jobs(self, plan: DummyPlan) -> FollowUps:
        return tuple(tuple(FollowUp(input=wire) for wire in job) for job in plan.jobs)

    def result(self, plan: DummyPlan) -> Any:
        """Return what was asked for; beside the numbers of jobs, under a name of its own."""
        return {"result": plan.result} if plan.jobs else plan.result


def _all_of(jobs: Jobs) -> Iterator[Operation[Any, Any]]:
    """Read the operations of jobs.

    Raises:
        InvalidRequest: one is unknown, or does not fit.
    """
    return (read_operation(wire) for job in jobs for wire in job)
