"""Move a running instance without stopping it."""

from collections.abc import Iterator
from typing import Annotated, Self

from msgspec.structs import replace

from common.errors import Conflict, GntError
from common.messages import Order
from common.names import InstanceId, InstanceName
from common.noderpc.instances import GuestSpec, GuestState
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.filling import present_guest
from coordinator.operations.instance.edits import set_primary
from coordinator.operations.instance.moving import check_can_move, choose_target
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import argument, hidden, option
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import check_memory, check_online, find_guest
from coordinator.state.config import Config


class MigratePlan(Order, kw_only=True):
    instance: str  # UUID
    source: str  # UUID
    source_name: str
    target: str  # UUID
    target_name: str
    target_host: str
    guest: GuestSpec
    now: float


@operation("OP_INSTANCE_MIGRATE", command="gnt-instance migrate")
class MigrateInstance(Operation[MigratePlan], kw_only=True):
    """Move a running instance to another node; it goes on running."""

    instance_name: Annotated[InstanceName, argument("instance to move")]
    target_node: Annotated[str | None, option("-n", "--target-node", help="node to move it to")] = (
        None
    )
    iallocator: Annotated[
        str | None, option("-I", "--iallocator", help="have this allocator choose the node")
    ] = None
    allow_runtime_changes: Annotated[bool, hidden("Ganeti's")] = True
    ignore_ipolicy: Annotated[bool, hidden("Ganeti's")] = False
    mode: Annotated[str | None, hidden("only “live”")] = None
    live: Annotated[bool | None, hidden("Ganeti's old name of mode")] = None

    def locks(self, config: Config) -> Wanted:
        instance = config.instance(self.instance_name)
        target = [config.node(self.target_node).uuid] if self.target_node else []
        return wanted(instance=instance.name, nodes=[instance.primary_node, *target], room=target)

    async def choose(self, cluster: Cluster) -> Self:
        instance = cluster.config.instance(self.instance_name)
        target = await choose_target(cluster, instance, self.target_node, self.iallocator)
        return replace(self, target_node=target)

    async def prepare(self, cluster: Cluster) -> MigratePlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        source, target = check_can_move(config, instance, self.target_node or "")
        check_online(source)
        if self.mode not in (None, "live") or self.live is False:
            raise Conflict("Only live migration is possible; “gnt-instance failover” stops it.")
        found = await find_guest(cluster, instance, source)
        if found is None or found.state is not GuestState.RUNNING:
            state = found.state if found else "not there"
            raise Conflict(
                f"Instance {instance.name} does not run on {source.name} ({state}); use "
                f"“gnt-instance failover {instance.name}”.",
                instance=instance.name,
            )
        guest = present_guest(config, instance)
        await cluster.instances(target.uuid).check_startable(guest=guest)
        await check_memory(cluster, target, guest.memory, instance)
        return MigratePlan(
            instance=instance.uuid, source=source.uuid, source_name=source.name,
            target=target.uuid, target_name=target.name,
            target_host=target.secondary_ip or target.primary_ip,
            guest=guest, now=cluster.now(),
        )  # fmt: skip

    def recipe(self, cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
        source, target = cluster.instances(plan.source), cluster.instances(plan.target)
        guest = plan.guest.id
        yield act(
            f"prepare {plan.target_name} to receive {plan.guest.name}",
            lambda: _receive(cluster, plan),
            undo=lambda: target.ensure_gone(instance=guest),
        )
        # The guest is on the target the moment its memory is: recording that is part of
        # the same step, and nothing before it can be undone any more. Its undo refuses
        # when the memory has left, which keeps the undo above from killing the guest.
        yield Step(
            f"move {plan.guest.name} from {plan.source_name} to {plan.target_name}",
            do=lambda: _transfer(cluster, plan),
            undo=lambda: source.ensure_not_migrating(instance=guest),
            edit=set_primary(plan.instance, plan.target, plan.now),
            point_of_no_return=True,
        )
        yield act(
            f"clear {plan.guest.name} away from {plan.source_name}",
            lambda: source.ensure_gone(instance=guest),
        )


async def _receive(cluster: Cluster, plan: MigratePlan) -> None:
    await cluster.instances(plan.target).ensure_incoming(guest=plan.guest)


async def _transfer(cluster: Cluster, plan: MigratePlan) -> None:
    if await _has_left(cluster, plan.guest.id, plan.source):
        return  # a predecessor saw it through, or died watching
    source = cluster.instances(plan.source)
    port = await cluster.instances(plan.target).ensure_incoming(guest=plan.guest)
    task = cluster.task_id("migration")
    await source.begin_migration(
        instance=plan.guest.id, host=plan.target_host, peer=plan.target_name, port=port, task=task
    )
    try:
        await cluster.run_task(plan.source, task)
    except GntError:
        # The transfer may have ended well all the same, with only the news of it lost.
        if not await _has_left(cluster, plan.guest.id, plan.source):
            raise


async def _has_left(cluster: Cluster, guest: InstanceId, source: str) -> bool:
    guests = await cluster.instances(source).guests()
    return any(g.id == guest and g.state is GuestState.MIGRATED for g in guests)
