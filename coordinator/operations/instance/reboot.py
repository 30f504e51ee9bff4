"""Reboot an instance."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated

from common.errors import Conflict
from common.messages import Order
from common.model.instance import AdminState, StateSource
from common.model.node import NodeRef
from common.names import InstanceId, NodeId
from common.noderpc.instances import GuestSpec, Instances
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument, ShutdownTimeout
from coordinator.operations.instance.second_copy import Cast, check_good_copy, find_cast
from coordinator.operations.instance.whereabouts import check_settled, others
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.placement.fit import take_memory
from coordinator.operations.placement.promises import Promise
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import (
    check_answers,
    check_may_start,
    check_not_elsewhere,
    check_online,
    find_guest,
    may_run,
)
from coordinator.operations.steps.disks import detach_elsewhere
from coordinator.operations.steps.guests import (
    mark,
    settle,
    shut_down_guest,
    start_again,
    start_guest,
)
from coordinator.operations.steps.mirrors import fall_behind
from coordinator.state.config import Config


class RebootType(StrEnum):
    """``soft`` presses the reset button; the others stop it and start it again."""

    SOFT = "soft"
    HARD = "hard"
    FULL = "full"


class RebootPlan(Order, kw_only=True):
    instance: InstanceId
    node: NodeRef
    guest: GuestSpec
    attach: Handover
    lost: tuple[NodeRef, ...] = ()  # whose copies of its disks fall behind
    others: tuple[NodeRef, ...] = ()  # nodes on which it might have been, too
    was_running: bool
    maybe_on: tuple[NodeId, ...] = ()  # before
    before: AdminState
    source_before: StateSource = StateSource.ADMIN
    reset: bool
    wait_s: float
    now: float


@operation("OP_INSTANCE_REBOOT")
class RebootInstance(Operation[None, RebootPlan], kw_only=True):
    """Reboot an instance; one that is down is started, but for a soft reboot."""

    instance_name: InstanceArgument
    reboot_type: Annotated[RebootType, option("-t", "--type", help="soft, hard or full")] = (
        RebootType.HARD
    )
    shutdown_timeout: ShutdownTimeout = 120
    ignore_secondaries: Annotated[
        bool,
        option(
            "--ignore-secondaries",
            help="without the second copy of mirrored disks, if it cannot be had",
            syntax=Syntax.FLAG,
        ),
    ] = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        nodes = config.nodes_of(instance)
        return wanted(instance=instance.name, nodes=nodes, room=nodes[:1])

    async def prepare(self, cluster: Cluster, _: None) -> RebootPlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        check_may_start(instance)
        node = config.nodes[instance.primary_node]
        check_online(node)
        found = await find_guest(cluster, instance, node)
        soft = self.reboot_type is RebootType.SOFT
        if soft:
            check_answers(found, instance, node)
        was_running = may_run(found)
        if soft and not was_running:
            raise Conflict(
                f"Instance {instance.name} does not run, so it cannot be reset; start it with "
                f"“gnt-instance startup {instance.name}”."
            )
        if not was_running:
            await check_not_elsewhere(cluster, instance, node)
        elif not soft:
            check_settled(cluster, instance)
        guest, cast = present_guest(config, instance), Cast((node.ref,))
        if not soft:  # which leaves its disks alone
            without = self.ignore_secondaries
            cast = await find_cast(cluster, instance, node, guest, without=without)
        if not was_running:
            check_good_copy(cluster, instance, cast)
        await cluster.call(Instances, node).check_startable(guest=guest)
        if not was_running:
            await take_memory(cluster, node, guest.memory, instance)
        return RebootPlan(
            instance=instance.uuid,
            node=node.ref,
            guest=guest,
            attach=kind_of(instance.disk_template).before_start(cast.nodes),
            lost=cast.lost,
            others=() if was_running else others(cluster, instance),
            was_running=was_running,
            before=instance.admin_state,
            source_before=instance.admin_state_source,
            reset=soft,
            maybe_on=() if was_running else instance.maybe_on,
            wait_s=float(self.shutdown_timeout),
            now=cluster.now(),
        )

    def promises(self, plan: RebootPlan) -> Iterable[Promise]:
        return [Promise(plan.instance, plan.node.uuid, plan.guest.memory)]

    def recipe(self, cluster: Cluster, plan: RebootPlan) -> Iterator[Step]:
        instances = cluster.call(Instances, plan.node)
        if plan.reset:
            yield act(
                f"reset {plan.guest.name} on {plan.node}",
                lambda: instances.reset(instance=plan.guest.id),
            )
            return
        yield from mark(
            plan.instance,
            plan.guest.name,
            plan.now,
            before=plan.before,
            after=AdminState.UP,
            source_before=plan.source_before,
        )
        if plan.was_running:
            stays = Handover(undo=plan.attach.do)  # its disks are needed again in a moment
            yield shut_down_guest(cluster, plan.guest, plan.node, stays, wait_s=plan.wait_s)
        yield from detach_elsewhere(cluster, plan.guest, plan.others)
        yield from settle(plan.instance, plan.guest.name, plan.maybe_on, plan.now)
        yield from fall_behind(plan.guest, plan.lost, plan.now)
        if plan.was_running:
            yield from start_again(cluster, plan.guest, plan.node, plan.attach, plan.now)
        else:
            yield start_guest(cluster, plan.guest, plan.node, plan.attach)
