"""Operations that have several moves planned at once, and leave each to a job of its own."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from common.errors import Conflict
from common.messages import Order
from coordinator.iallocator.response import Moves
from coordinator.operations.base import Batches, Operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.parameter import hidden
from coordinator.operations.placement.moves import orders_of, promises_of
from coordinator.operations.placement.promises import Promise
from coordinator.operations.step import Step


class MovesPlan(Order):
    """Jobs that move instances, what they take, and what they come to in words."""

    jobs: tuple[tuple[dict[str, Any], ...], ...] = ()
    promises: tuple[Promise, ...] = ()
    lines: tuple[str, ...] = ()


def plan_of(cluster: Cluster, moves: Moves) -> MovesPlan:
    """Plan the moves that an allocator wants."""
    return MovesPlan(
        jobs=orders_of(cluster.config, moves),
        promises=promises_of(cluster.config, moves),
        lines=tuple(f"move {name} to {', '.join(nodes)}" for name, _, nodes in moves.moved),
    )


class PlannedMoves(Operation[MovesPlan], kw_only=True):
    """Has ``choose`` plan ``moves``; changes nothing itself."""

    moves: Annotated[MovesPlan | None, hidden("what is to be done; the allocator says it")] = None

    async def prepare(self, cluster: Cluster) -> MovesPlan:  # noqa: ARG002
        if self.moves is None:
            raise Conflict("No allocator has said yet which instance goes where.")
        return self.moves

    def promises(self, plan: MovesPlan) -> Iterable[Promise]:
        return plan.promises

    def recipe(self, cluster: Cluster, plan: MovesPlan) -> Iterator[Step]:  # noqa: ARG002
        yield from ()

    def jobs(self, plan: MovesPlan) -> Batches:
        return plan.jobs

    def result(self, plan: MovesPlan) -> dict[str, Any]:  # noqa: ARG002
        return {"jobs": []}

    def dry_result(
        self,
        cluster: Cluster,  # noqa: ARG002
        plan: MovesPlan,
        titles: list[str],
    ) -> list[str]:
        return [*titles, *plan.lines]
