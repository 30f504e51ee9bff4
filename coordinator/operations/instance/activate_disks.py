"""Attach the disks of an instance where it is."""

from collections.abc import Iterator
from typing import Annotated

from common.messages import Order
from common.model.node import NodeRef
from common.names import InstanceId
from common.noderpc.disks import Disks
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import Mirrors
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.disks.mirrors import mirrored, owed
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import InstanceArgument
from coordinator.operations.instance.second_copy import check_good_copy, find_cast
from coordinator.operations.instance.whereabouts import settled_home
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.checks import (
    check_answers,
    check_not_elsewhere,
    find_guest,
    is_alive,
)
from coordinator.operations.steps.disks import hold
from coordinator.operations.steps.edits import note_copies, set_disks_active
from coordinator.operations.steps.mirrors import fall_behind
from coordinator.operations.steps.syncing import wait_for_sync
from coordinator.state.config import Config


class ActivatePlan(Order, kw_only=True):
    instance: InstanceId
    node: NodeRef
    guest: GuestSpec
    attach: Handover
    lost: tuple[NodeRef, ...] = ()  # nodes whose copies fall behind
    is_new: bool  # they were not attached before
    now: float


@operation("OP_INSTANCE_ACTIVATE_DISKS")
class ActivateDisks(Operation[None, ActivatePlan], kw_only=True):
    """Attach an instance's disks without starting it; those that are attached already stay so."""

    instance_name: InstanceArgument
    wait_for_sync: Annotated[
        bool,
        option(
            "--wait-for-sync",
            help="return when both copies of mirrored disks are equal",
            syntax=Syntax.FLAG,
        ),
    ] = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        return wanted(instance=instance.name, nodes=config.nodes_of(instance))

    async def prepare(self, cluster: Cluster, _: None) -> ActivatePlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        node = settled_home(cluster, instance)
        found = await find_guest(cluster, instance, node)
        check_answers(found, instance, node)
        runs = is_alive(found)
        if not runs:
            await check_not_elsewhere(cluster, instance, node)
        guest = present_guest(config, instance)
        cast = await find_cast(cluster, instance, node, guest, without=runs)
        check_good_copy(cluster, instance, cast)
        return ActivatePlan(
            instance=instance.uuid,
            node=node.ref,
            guest=guest,
            attach=kind_of(instance.disk_template).before_start(cast.nodes),
            lost=cast.lost,
            is_new=not runs and not instance.disks_active,
            now=cluster.now(),
        )

    def recipe(self, cluster: Cluster, plan: ActivatePlan) -> Iterator[Step]:
        yield from fall_behind(plan.guest, plan.lost, plan.now)
        yield act(
            f"attach the disks of {plan.guest.name}",
            lambda: _attach(cluster, plan),
            undo=(lambda: hold(cluster, plan.guest, plan.attach.undo)) if plan.is_new else None,
        )
        if plan.is_new:
            yield record(
                f"record that they are attached though {plan.guest.name} does not run",
                set_disks_active(plan.instance, plan.now, active=True),
                undo=set_disks_active(plan.instance, plan.now, active=False),
            )
        if self.wait_for_sync and not plan.lost and (disks := mirrored(plan.guest)):
            nodes = tuple(end.node for disk in disks for end in disk.ends)
            yield Step(
                f"wait until both copies of the disks of {plan.guest.name} are equal",
                do=lambda: wait_for_sync(cluster, plan.guest, plan.node),
                edit=note_copies(tuple(disk.id for disk in disks), plan.now, good=nodes),
            )

    def result(self, plan: ActivatePlan) -> list[tuple[str, str, None]]:
        """Return which disks are where; under which path is in the log, since the node tells."""
        return [(plan.node.name, f"disk/{index}", None) for index in range(len(plan.guest.disks))]


async def _attach(cluster: Cluster, plan: ActivatePlan) -> None:
    disks = mirrored(plan.guest)
    reports = await cluster.call(Mirrors, plan.node).status(disks=disks) if disks else ()
    if line := owed(reports):
        cluster.log(f"To be copied, as it is on {plan.node} only: {line}.")
    await hold(cluster, plan.guest, plan.attach.do)
    access = next(each.access for each in reversed(plan.attach.do) if each.node == plan.node)
    assert access
    attached = cluster.call(Disks, plan.node).attach(disks=plan.guest.disks, access=access)
    for index, path in enumerate(await attached):
        cluster.log(f"{plan.node}:disk/{index}:{path}")
