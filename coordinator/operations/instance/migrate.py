"""Move a running instance without stopping it."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Self

from msgspec.structs import replace

from common.errors import Conflict, GntError, NotFound, Unreachable
from common.messages import Order
from common.model.instance import Instance
from common.names import InstanceName
from common.noderpc.instances import GuestReport, GuestSpec, GuestState
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.filling import present_guest
from coordinator.operations.instance.edits import set_primary
from coordinator.operations.instance.moving import check_can_move, choose_target, reserved_for
from coordinator.operations.instance.traces import find_traces
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, hidden, option
from coordinator.operations.placement.promises import Promise
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.checks import ALIVE, check_online, find_guest, take_memory
from coordinator.state.config import Config

INSISTENCE_S, PAUSE_S = 60.0, 2.0  # with a node that does not answer in the middle


class MigratePlan(Order, kw_only=True):
    """``source`` and ``target`` are the same node when only traces are cleared away."""

    instance: str  # UUID
    source: str  # UUID
    source_name: str
    target: str  # UUID
    target_name: str
    target_host: str
    guest: GuestSpec
    shells: tuple[tuple[str, str], ...]  # UUIDs and names of the nodes to be cleared after all
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
    cleanup: Annotated[
        bool,
        option(
            "--cleanup",
            help="put right what a migration left that was cut off: record where it runs, and "
            "clear it away from other nodes",
            syntax=Syntax.FLAG,
        ),
    ] = False
    mode: Annotated[str | None, hidden("only “live”")] = None
    live: Annotated[bool | None, hidden("Ganeti's old name of mode")] = None

    reserved: Annotated[bool, hidden("has room on its target already, from OP_NODE_EVACUATE")] = (
        False
    )

    def locks(self, config: Config) -> Wanted:
        instance = config.instance(self.instance_name)
        target = [config.node(self.target_node).uuid] if self.target_node else []
        nodes = config.nodes if self.cleanup else [instance.primary_node, *target]
        return wanted(instance=instance.name, nodes=nodes, room=target)

    async def choose(self, cluster: Cluster) -> Self:
        if self.cleanup:
            return self
        instance = cluster.config.instance(self.instance_name)
        target = await choose_target(cluster, instance, self.target_node, self.iallocator)
        return replace(self, target_node=target)

    async def prepare(self, cluster: Cluster) -> MigratePlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        if self.cleanup:
            return await _plan_cleanup(cluster, instance)
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
        guest = _as_it_runs(present_guest(config, instance), found)
        await cluster.instances(target.uuid).check_startable(guest=guest)
        await take_memory(cluster, target, guest.memory, instance)
        return MigratePlan(
            instance=instance.uuid, source=source.uuid, source_name=source.name,
            target=target.uuid, target_name=target.name,
            target_host=target.secondary_ip or target.primary_ip,
            guest=guest, shells=((source.uuid, source.name),), now=cluster.now(),
        )  # fmt: skip

    def intends(self, cluster: Cluster) -> Iterable[Promise]:
        if not self.reserved:
            return ()
        return reserved_for(cluster.config, self.instance_name, self.target_node)

    def promises(self, plan: MigratePlan) -> Iterable[Promise]:
        is_move = plan.source != plan.target
        return [Promise(plan.instance, plan.target, plan.guest.memory)] if is_move else []

    def recipe(self, cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
        yield from _find(cluster, plan) if plan.source == plan.target else _move(cluster, plan)
        for node, name in plan.shells:
            yield _clear(cluster, plan, node, name)


async def _plan_cleanup(cluster: Cluster, instance: Instance) -> MigratePlan:
    traces = await find_traces(cluster, instance)
    node = traces.running or cluster.config.nodes[instance.primary_node]
    return MigratePlan(
        instance=instance.uuid, source=node.uuid, source_name=node.name,
        target=node.uuid, target_name=node.name, target_host="",
        guest=present_guest(cluster.config, instance),
        shells=tuple((shell.uuid, shell.name) for shell in traces.shells), now=cluster.now(),
    )  # fmt: skip


def _find(cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
    # A transfer that still goes on would bring a shell to life that is cleared away below.
    instances = cluster.instances(plan.source)

    async def stay() -> None:
        if any(guest.id == plan.guest.id for guest in await instances.guests()):
            await instances.ensure_not_migrating(instance=plan.guest.id)

    yield act(f"have {plan.guest.name} stay on {plan.source_name}", stay)
    yield record(
        f"record that {plan.guest.name} is on {plan.source_name}",
        set_primary(plan.instance, plan.source, plan.now),
        point_of_no_return=True,
    )


def _move(cluster: Cluster, plan: MigratePlan) -> Iterator[Step]:
    target, guest = cluster.instances(plan.target), plan.guest.id
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
        undo=lambda: _stop_transfer(cluster, plan),
        edit=set_primary(plan.instance, plan.target, plan.now),
        point_of_no_return=True,
    )


def _clear(cluster: Cluster, plan: MigratePlan, node: str, name: str) -> Step:
    instances = cluster.instances(node)
    return act(
        f"clear {plan.guest.name} away from {name}",
        lambda: instances.ensure_gone(instance=plan.guest.id),
    )


def _as_it_runs(guest: GuestSpec, found: GuestReport) -> GuestSpec:
    """Have the target run it in the way the source does, whatever it would choose by itself."""
    if "accelerator" not in guest.parameters or not found.accelerator:
        return guest
    return replace(guest, parameters=guest.parameters | {"accelerator": found.accelerator})


async def _receive(cluster: Cluster, plan: MigratePlan) -> None:
    await cluster.instances(plan.target).ensure_incoming(guest=plan.guest)


async def _transfer(cluster: Cluster, plan: MigratePlan) -> None:
    """See the transfer through; it goes on while noded is restarted on either node."""
    limit = cluster.now() + INSISTENCE_S
    while True:
        try:
            return await _try_transfer(cluster, plan)
        except (Unreachable, NotFound) as error:  # noded is away, or has forgotten its task
            if cluster.now() >= limit:
                raise
            cluster.log(f"Trying again: {error}")
            await cluster.sleep(PAUSE_S)


async def _try_transfer(cluster: Cluster, plan: MigratePlan) -> None:
    if await _has_moved(cluster, plan):
        return  # a predecessor saw it through, or died watching
    source = cluster.instances(plan.source)
    port = await cluster.instances(plan.target).ensure_incoming(guest=plan.guest)
    task = cluster.task_id("migration")
    with suppress(Unreachable):  # it may have begun; whether it has, the next call tells
        await source.begin_migration(
            instance=plan.guest.id, host=plan.target_host, peer=plan.target_name, port=port,
            task=task,
        )  # fmt: skip
    try:
        await cluster.run_task(plan.source, task)
    except GntError:
        # The transfer may have ended well all the same, with only the news of it lost.
        if not await _has_moved(cluster, plan):
            raise


async def _stop_transfer(cluster: Cluster, plan: MigratePlan) -> None:
    # The task is cancelled even if nobody knows it: it may still be on its way.
    await cluster.tasks(plan.source).cancel(task=cluster.task_id("migration"))
    await cluster.instances(plan.source).ensure_not_migrating(instance=plan.guest.id)


async def _has_moved(cluster: Cluster, plan: MigratePlan) -> bool:
    """Tell whether the guest runs on the target.

    The source knows as well, but not any more once it has lost its power.
    """
    for node, states in ((plan.target, ALIVE), (plan.source, (GuestState.MIGRATED,))):
        guests = await cluster.instances(node).guests()
        if any(guest.id == plan.guest.id and guest.state in states for guest in guests):
            return True
    return False
