"""Move an instance by stopping it here and starting it there."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

from common.errors import Conflict, Unreachable
from common.messages import Order
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.noderpc.instances import GuestSpec, Instances
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.addresses import check_connected
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    AllocatorOption,
    CleanupOption,
    IgnoreConsistency,
    InstanceArgument,
    ShutdownTimeout,
    TargetNodeOption,
)
from coordinator.operations.instance.anywhere import find_base, plan_pairing
from coordinator.operations.instance.cleanup import plan_cleanup, settle
from coordinator.operations.instance.failing_over import FailoverPlan, fail_over
from coordinator.operations.instance.moving import (
    check_can_move,
    choose_target,
    locks_to_move,
    room_for,
)
from coordinator.operations.instance.place import Place, another_if_stale
from coordinator.operations.instance.reserved_moves import ReservedMove, move_reserved, plan_primary
from coordinator.operations.instance.second_copy import Cast, check_target_good, find_cast, only
from coordinator.operations.instance.transfer import MigratePlan
from coordinator.operations.instance.whereabouts import check_settled, others
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.placement.fit import take_memory
from coordinator.operations.placement.promises import Promise
from coordinator.operations.specs import present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.checks import check_not_elsewhere, find_guest, may_run
from coordinator.operations.steps.disks import homes
from coordinator.state.config import Config


class Failover(Order):
    """A failover, or what puts right where it is."""

    move: FailoverPlan | None = None
    reserved: ReservedMove | None = None  # of one that is only reserved
    cleanup: MigratePlan | None = None


@operation("OP_INSTANCE_FAILOVER")
class FailOverInstance(Operation[Place | None, Failover], kw_only=True):
    """Move an instance to another node, stopping it on the way; its node may be dead.

    A node that does not answer has to be marked offline first: only the operator can say
    that its guests do not run any more.
    """

    takes_reservations: ClassVar[bool] = True

    instance_name: InstanceArgument
    target_node: TargetNodeOption = None
    iallocator: AllocatorOption = None
    shutdown_timeout: ShutdownTimeout = 120
    ignore_consistency: IgnoreConsistency = False
    cleanup: CleanupOption = False
    wait_for_sync: Annotated[
        bool,
        option(
            "--wait-for-sync",
            help="on a node without a copy of its disks, start it when it has one",
            syntax=Syntax.FLAG,
        ),
    ] = False

    def locks(self, config: Config, place: Place | None) -> Wanted:
        instance = config.instance(self.instance_name)
        return locks_to_move(config, instance, place, cleanup=self.cleanup)

    async def choose(self, cluster: Cluster) -> Place | None:
        if self.cleanup:
            return None
        instance = cluster.config.instance(self.instance_name)
        if instance.forthcoming and self.target_node and not self.iallocator:
            return Place(node=cluster.config.node(self.target_node).ref)
        if instance.forthcoming and instance.disk_template.traits.holders == 1:
            raise Conflict(f"Say where the room of {instance.name} is to be kept, with -n.")
        return await choose_target(cluster, instance, self.target_node, self.iallocator)

    async def prepare(self, cluster: Cluster, place: Place | None) -> Failover:
        instance = cluster.config.instance(self.instance_name)
        if place is None:
            return Failover(cleanup=await plan_cleanup(cluster, instance))
        if instance.forthcoming:
            with another_if_stale(cluster, place):
                target = place.find(cluster.config)
                return Failover(reserved=await plan_primary(cluster, instance, target))
        return Failover(move=await self._plan(cluster, instance, place))

    async def _plan(self, cluster: Cluster, instance: Instance, place: Place) -> FailoverPlan:
        config = cluster.config
        with another_if_stale(cluster, place):
            is_mirrored = instance.disk_template.traits.is_mirrored
            source, target = check_can_move(config, instance, place, anywhere=is_mirrored)
        check_connected(config, config.nics_of(instance), target.uuid)
        guest = present_guest(config, instance, target.uuid)
        if not source.offline:
            check_settled(cluster, instance)
        alive = not source.offline and await _may_run(cluster, instance, source)
        half_there = not alive and await _is_half_there(cluster, instance, source, target)
        if is_mirrored and target.uuid not in config.nodes_of(instance):
            return await self._plan_anywhere(cluster, instance, source, target, is_alive=alive)
        start = instance.admin_state is AdminState.UP
        declares = await check_target_good(
            cluster,
            instance,
            guest,
            target,
            source=source if alive else None,
            ignore=self.ignore_consistency,
        )
        cast = await _cast(cluster, instance, guest, target, declares=declares)
        if start:
            with another_if_stale(cluster, place):
                await take_memory(cluster, target, guest.memory, instance)
        await cluster.call(Instances, target).check_startable(guest=guest)
        return FailoverPlan(
            instance=instance.uuid,
            source=source.ref,
            source_offline=source.offline,
            target=target.ref,
            guest=guest,
            was_running=alive,
            start=start,
            half_there=half_there,
            others=tuple(ref for ref in others(cluster, instance) if ref != target.ref),
            detach=_detach(
                config, instance, source, is_alive=alive, stays=source.ref in cast.nodes
            ),
            attach=kind_of(instance.disk_template).after_failover(cast.nodes),
            lost=cast.lost if start or declares else (),
            declares=declares,
            wait_s=float(self.shutdown_timeout),
            now=cluster.now(),
        )

    async def _plan_anywhere(
        self, cluster: Cluster, instance: Instance, source: Node, target: Node, *, is_alive: bool
    ) -> FailoverPlan:
        guest = present_guest(cluster.config, instance, target.uuid)
        base = await find_base(cluster, instance, guest, is_alive=is_alive)
        await take_memory(cluster, target, guest.memory, instance)
        pairing = await plan_pairing(cluster, instance, guest, target, base)
        await cluster.call(Instances, target).check_startable(guest=pairing.guest)
        nodes = homes(cluster.config, instance, source.ref)
        kind = kind_of(instance.disk_template)
        return FailoverPlan(
            instance=instance.uuid,
            source=source.ref,
            source_offline=source.offline,
            target=target.ref,
            guest=guest,
            was_running=is_alive,
            start=True,
            others=tuple(ref for ref in others(cluster, instance) if ref != target.ref),
            detach=kind.before_failover(nodes, was_running=is_alive),
            attach=pairing.attach,
            pairing=pairing,
            wait_s=float(self.shutdown_timeout),
            now=cluster.now(),
        )

    def intends(self, cluster: Cluster, place: Place | None) -> Iterable[Promise]:
        return room_for(cluster.config, self.instance_name, place) if place else ()

    def promises(self, plan: Failover) -> Iterable[Promise]:
        if plan.reserved:
            return [plan.reserved.promise]
        if plan.move is None:
            return ()
        if plan.move.pairing:
            return [plan.move.pairing.promise]
        move = plan.move
        return [Promise(move.instance, move.target.uuid, move.guest.memory)] if move.start else []

    def recipe(self, cluster: Cluster, plan: Failover) -> Iterator[Step]:
        if plan.cleanup:
            yield from settle(cluster, plan.cleanup)
        if plan.reserved:
            yield from move_reserved(plan.reserved)
        if plan.move:
            yield from fail_over(cluster, plan.move, waits=self.wait_for_sync)


def _detach(
    config: Config, instance: Instance, source: Node, *, is_alive: bool, stays: bool
) -> Handover:
    """Return how the source lets go of the disks: it follows the target, if it ``stays``."""
    kind, nodes = kind_of(instance.disk_template), homes(config, instance, source.ref)
    if stays and instance.admin_state is AdminState.UP:
        return kind.before_failover(nodes, was_running=is_alive)
    return kind.after_stop(nodes, was_running=is_alive)


async def _is_half_there(cluster: Cluster, instance: Instance, source: Node, target: Node) -> bool:
    """Tell whether half of the memory of what does not run on the source is on the target.

    Raises:
        Conflict: it runs there.
    """
    # What a migration to the target left there is cleared away later.
    await check_not_elsewhere(cluster, instance, source, target)
    found = await find_guest(cluster, instance, target)
    if found is not None and found.state.may_run:
        raise Conflict(
            f"Instance {instance.name} is on {target.name} already ({found.state}); "
            f"“gnt-instance migrate --cleanup {instance.name}” records that.",
            node=target.name,
        )
    return found is not None and bool(found.rest)


async def _cast(
    cluster: Cluster, instance: Instance, guest: GuestSpec, target: Node, *, declares: bool
) -> Cast:
    """Return who takes part on the target, whose copy has just been seen if it is to run there."""
    if declares:  # the other copy has what this one lacks, and stays away
        return only(cluster.config, instance, target)
    start = instance.admin_state is AdminState.UP
    return await find_cast(cluster, instance, target, guest, without=not start, has_copy=start)


async def _may_run(cluster: Cluster, instance: Instance, source: Node) -> bool:
    try:
        return may_run(await find_guest(cluster, instance, source))
    except Unreachable as error:
        raise Unreachable(
            f"{error.message} If {source.name} is dead, and its guests with it, say so with "
            f"“gnt-node modify --offline=yes {source.name}”, then fail over.",
            **error.detail,
        ) from error
