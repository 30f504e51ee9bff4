"""Start an instance."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.instance import AdminState, Instance, StateSource
from common.model.node import NodeRef
from common.names import InstanceId, NodeId, NodeName
from common.noderpc.instances import GuestSpec, Instances
from common.noderpc.mirrors import Parted
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import IgnoreOffline, InstanceArgument, NoRemember
from coordinator.operations.instance.second_copy import check_good_copy, find_cast
from coordinator.operations.instance.whereabouts import others
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, hidden, option
from coordinator.operations.placement.fit import take_memory
from coordinator.operations.placement.promises import Promise
from coordinator.operations.specs import guest_spec, read_backend
from coordinator.operations.step import Step, record
from coordinator.operations.steps.checks import (
    check_answers,
    check_may_start,
    check_not_elsewhere,
    check_online,
    find_guest,
    is_alive,
)
from coordinator.operations.steps.disks import detach_elsewhere
from coordinator.operations.steps.edits import set_disks_active
from coordinator.operations.steps.guests import mark, settle, start_guest
from coordinator.operations.steps.mirrors import fall_behind, meet
from coordinator.state.config import Config


class StartPlan(Order, kw_only=True):
    instance: InstanceId
    node: NodeRef | None  # None: it is out of reach, and only what is wanted is recorded
    guest: GuestSpec
    attach: Handover = Handover()
    nodes: tuple[NodeRef, ...] = ()  # that have its disks
    lost: tuple[NodeRef, ...] = ()  # whose copies of its disks fall behind
    others: tuple[NodeRef, ...] = ()  # nodes on which it might have been, too
    may_part: bool = False  # whether it starts though its nodes do not reach each other
    was_running: bool
    maybe_on: tuple[NodeId, ...] = ()  # before
    before: AdminState
    source_before: StateSource = StateSource.ADMIN
    remember: bool
    paused: bool = False
    disks_active: bool = False  # before: they were attached already
    now: float


@operation("OP_INSTANCE_STARTUP")
class StartInstance(Operation[None, StartPlan], kw_only=True):
    """Start an instance on its primary node; one that runs is left alone."""

    instance_name: InstanceArgument
    hvparams: Annotated[
        dict[str, Any],
        option("-H", "--hypervisor-parameters", help="for this start only", syntax=Syntax.KEYVAL),
    ] = {}
    beparams: Annotated[
        dict[str, Any],
        option("-B", "--backend-parameters", help="for this start only", syntax=Syntax.KEYVAL),
    ] = {}
    no_remember: NoRemember = False
    force: Annotated[
        bool,
        option(
            "-f",
            "--force",
            help="without the second copy of mirrored disks, if it cannot be had",
            syntax=Syntax.FLAG,
        ),
    ] = False
    startup_paused: Annotated[
        bool,
        option(
            "--paused",
            help="have it do nothing until somebody opens its console, or it is started without",
            syntax=Syntax.FLAG,
        ),
    ] = False
    ignore_offline_nodes: IgnoreOffline = False
    only_if_up: Annotated[bool, hidden("only if it is marked as up still; the watcher's")] = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        nodes = config.nodes_of(instance)
        return wanted(instance=instance.name, nodes=nodes, room=nodes[:1])

    async def prepare(self, cluster: Cluster, _: None) -> StartPlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        if self.only_if_up and instance.admin_state is not AdminState.UP:
            raise Conflict(
                f"Instance {instance.name} is marked as {instance.admin_state} meanwhile, so it is "
                "not started.",
                instance=instance.name,
            )
        check_may_start(instance)
        node = config.nodes[instance.primary_node]
        if not self.ignore_offline_nodes:
            check_online(node)
        guest = guest_spec(
            config,
            instance,
            config.disks_of(instance),
            config.nics_of(instance),
            hvparams=self.hvparams,
            beparams=read_backend(self.beparams),
        )
        if node.offline:
            for line in self._instead(instance, node.name):
                cluster.log(line)
            return self._marking(cluster, instance, guest)
        found = await find_guest(cluster, instance, node)
        check_answers(found, instance, node)
        was_running = is_alive(found)
        without = self.force or was_running
        if not was_running:
            await check_not_elsewhere(cluster, instance, node)
        cast = await find_cast(cluster, instance, node, guest, without=without)
        if not was_running:
            check_good_copy(cluster, instance, cast)
            await cluster.call(Instances, node).check_startable(guest=guest)
            await take_memory(cluster, node, guest.memory, instance)
        kind, may_part = kind_of(instance.disk_template), cast.may_part and not was_running
        attach = (kind.before_start_apart if may_part else kind.before_start)(cast.nodes)
        return StartPlan(
            instance=instance.uuid,
            node=node.ref,
            guest=guest,
            lost=cast.lost,
            nodes=cast.nodes,
            may_part=may_part,
            # What the operator has had attached before stays so, if it cannot be started.
            attach=replace(attach, undo=()) if instance.disks_active else attach,
            disks_active=instance.disks_active,
            others=() if was_running else others(cluster, instance),
            was_running=was_running,
            before=instance.admin_state,
            source_before=instance.admin_state_source,
            maybe_on=() if was_running else instance.maybe_on,
            remember=not self.no_remember,
            paused=self.startup_paused,
            now=cluster.now(),
        )

    def _instead(self, instance: Instance, node: NodeName) -> Iterator[str]:
        """Say what is done with one whose node is offline."""
        if self.no_remember:
            yield f"{node} is offline, and {instance.name} is not marked: nothing is done with it."
            return
        yield f"{node} is offline; {instance.name} is only marked to be started."
        if self.hvparams or self.beparams or self.startup_paused:
            yield (
                "It will be started with its own parameters, and not paused: what was said for "
                "this start is not remembered."
            )

    def _marking(self, cluster: Cluster, instance: Instance, guest: GuestSpec) -> StartPlan:
        return StartPlan(
            instance=instance.uuid,
            node=None,
            guest=guest,
            was_running=False,
            before=instance.admin_state,
            source_before=instance.admin_state_source,
            remember=not self.no_remember,
            now=cluster.now(),
        )

    def promises(self, plan: StartPlan) -> Iterable[Promise]:
        if plan.node is None:
            return []
        return [Promise(plan.instance, plan.node.uuid, plan.guest.memory)]

    def recipe(self, cluster: Cluster, plan: StartPlan) -> Iterator[Step]:
        if plan.remember:
            yield from mark(
                plan.instance,
                plan.guest.name,
                plan.now,
                before=plan.before,
                after=AdminState.UP,
                source_before=plan.source_before,
            )
        if plan.node is None:
            return
        yield from settle(plan.instance, plan.guest.name, plan.maybe_on, plan.now)
        yield from detach_elsewhere(cluster, plan.guest, plan.others)
        yield from fall_behind(plan.guest, plan.lost, plan.now)
        if plan.may_part:
            yield meet(cluster, plan.guest, plan.nodes, plan.now, plan.attach.undo)
        yield _start(cluster, plan, plan.node)
        if plan.disks_active:
            yield record(
                f"record that the disks are attached because {plan.guest.name} runs",
                set_disks_active(plan.instance, plan.now, active=False),
                undo=set_disks_active(plan.instance, plan.now, active=True),
            )


def _start(cluster: Cluster, plan: StartPlan, node: NodeRef) -> Step:
    step = start_guest(
        cluster,
        plan.guest,
        node,
        plan.attach,
        was_running=plan.was_running,
        paused=plan.paused,
    )

    async def start() -> None:
        assert step.do
        try:
            await step.do()
        except Parted as error:
            raise Parted(
                f"{error.message} Mend the network between its nodes; “gnt-instance startup "
                f"--force {plan.guest.name}” starts it without, and what it writes is on "
                f"{node} alone then.",
                **error.detail,
            ) from error

    return dataclasses.replace(step, do=start)
