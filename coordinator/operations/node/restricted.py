"""Run a command that root of nodes has allowed, where nobody can log in any more."""

from collections.abc import Iterator
from typing import Annotated

from common.errors import GntError, InvalidRequest
from common.messages import Order
from common.model.node import NodeRef
from common.names import NodeName
from common.noderpc.programs import CommandName, Programs
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.operations.step import Step
from coordinator.state.config import Config


class RestrictedPlan(Order):
    """Where it is run; ``said`` is filled when it was, and empty for who resumes the job later.

    It has for each node whether it went well, and what was written or went wrong.
    """

    nodes: tuple[NodeRef, ...]
    said: list[tuple[bool, str]] = []


@operation("OP_RESTRICTED_COMMAND")
class RunRestricted(Operation[None, RestrictedPlan], kw_only=True):
    """Run a command of root's on nodes."""

    command: Annotated[CommandName, hidden("its name, in each node's directory of such commands")]
    nodes: Annotated[tuple[NodeName, ...], hidden("where")]
    use_locking: Annotated[bool, hidden("not beside jobs that change these nodes")] = False

    def is_for_root(self) -> bool:
        return True

    def locks(self, config: Config, _: None) -> Wanted:
        named = [config.node(name).uuid for name in self.nodes]
        return wanted(nodes=named if self.use_locking else ())

    async def prepare(self, cluster: Cluster, _: None) -> RestrictedPlan:
        if not self.nodes:
            raise InvalidRequest("Say on which nodes the command is to be run.")
        return RestrictedPlan(nodes=tuple(cluster.config.node(name).ref for name in self.nodes))

    def recipe(self, cluster: Cluster, plan: RestrictedPlan) -> Iterator[Step]:
        yield Step(
            f"run {self.command} on {', '.join(map(str, plan.nodes))}",
            do=lambda: self._run(cluster, plan),
            point_of_no_return=True,
        )

    def result(self, plan: RestrictedPlan) -> list[list[bool | str]]:
        lost = [(False, "What it said is lost: the coordinator that ran it has ended.")]
        return [list(each) for each in plan.said or lost * len(plan.nodes)]

    async def _run(self, cluster: Cluster, plan: RestrictedPlan) -> None:
        told = await cluster.each(
            {n.uuid: cluster.call(Programs, n).restricted(command=self.command) for n in plan.nodes}
        )
        answers = (told[node.uuid] for node in plan.nodes)
        plan.said[:] = [
            (False, answer.message) if isinstance(answer, GntError) else (True, answer)
            for answer in answers
        ]
