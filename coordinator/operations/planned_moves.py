"""Operations that have several moves planned at once, and leave each to a job of its own."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from common.messages import Order
from common.model.instance import AdminState
from coordinator.iallocator.answers import Moves
from coordinator.operations.base import Operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.instance.place import Place
from coordinator.operations.placement.moves import promises_of
from coordinator.operations.placement.promises import Promise
from coordinator.state.config import Config

_TARGETS = {
    "OP_INSTANCE_MIGRATE": "target_node",
    "OP_INSTANCE_FAILOVER": "target_node",
    "OP_INSTANCE_REPLACE_DISKS": "remote_node",
}
"""Which parameter of an operation names the node that was chosen."""


class MovesPlan(Order):
    """Jobs that move instances, what they take, and what they come to in words."""

    jobs: tuple[tuple[FollowUp, ...], ...] = ()
    promises: tuple[Promise, ...] = ()
    lines: tuple[str, ...] = ()


def plan_of(cluster: Cluster, moves: Moves, *, stopping: bool = False) -> MovesPlan:
    """Plan the moves that an allocator wants, by stopping what runs if ``stopping``."""
    return MovesPlan(
        jobs=tuple(
            tuple(_follow_up(cluster.config, op, stopping=stopping) for op in job)
            for job in moves.jobs
        ),
        promises=promises_of(cluster.config, moves),
        lines=tuple(f"move {name} to {', '.join(nodes)}" for name, _, nodes in moves.moved),
    )


def with_release(plan: MovesPlan, *, early: bool) -> MovesPlan:
    """Have old copies deleted before the new ones are up to date, if ``early``."""

    def released(order: FollowUp) -> FollowUp:
        is_replaced = order.input["OP_ID"] == "OP_INSTANCE_REPLACE_DISKS"
        given = order.input | {"early_release": True}
        return replace(order, input=given) if is_replaced else order

    jobs = tuple(tuple(map(released, job)) for job in plan.jobs)
    return replace(plan, jobs=jobs) if early else plan


def _follow_up(config: Config, op: dict[str, Any], *, stopping: bool) -> FollowUp:
    """Return the operation for a move; one that is only possible by stopping the instance stops it.

    Allocators ask for migrations throughout, as Ganeti's own does.
    """
    node = config.find_node(op.get(_TARGETS.get(op["OP_ID"], "")) or "")
    place = Place(node=node.ref) if node else None  # whose room is kept until the job begins
    if op["OP_ID"] != "OP_INSTANCE_MIGRATE":
        return FollowUp(input=op, choice=place)
    instance = config.instance(op.get("instance_name", ""))
    is_up = instance.admin_state is AdminState.UP
    if is_up and not stopping and not config.nodes[instance.primary_node].offline:
        return FollowUp(input=op, choice=place)
    failover = {
        "OP_ID": "OP_INSTANCE_FAILOVER",
        "instance_name": instance.name,
        "target_node": op.get("target_node"),
    }
    return FollowUp(input=failover, choice=place)


class PlannedMoves(Operation[MovesPlan, MovesPlan], kw_only=True):
    """Has ``choose`` plan the moves; changes nothing itself."""

    async def prepare(self, cluster: Cluster, moves: MovesPlan) -> MovesPlan:  # noqa: ARG002
        return moves

    def promises(self, plan: MovesPlan) -> Iterable[Promise]:
        return plan.promises

    def jobs(self, plan: MovesPlan) -> FollowUps:
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
