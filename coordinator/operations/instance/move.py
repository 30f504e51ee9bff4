"""Move a stopped instance to any node, by copying its disks there."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.node import NodeRef
from common.names import MiB, NodeName
from common.noderpc.copies import Compression
from common.noderpc.instances import GuestSpec, Instances
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.addresses import check_connected, networks_of
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    CompressionOption,
    IgnorePolicy,
    InstanceArgument,
    RateOption,
    ShutdownTimeout,
)
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import option
from coordinator.operations.placement.fit import check_policy, check_still_fits
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import guest_spec, present_guest
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.operations.steps.checks import (
    check_not_elsewhere,
    check_online,
    check_takes_instances,
    find_guest,
    may_run,
)
from coordinator.operations.steps.copies import DiskCopy, copy_all, side_of
from coordinator.operations.steps.disks import delete_left_disk
from coordinator.operations.steps.guests import shut_down_guest, start_guest
from coordinator.operations.steps.snapshots import check_no_snapshots
from coordinator.state.config import Config


class MovePlan(Order, kw_only=True):
    source: NodeRef
    target: NodeRef
    instance_before: Instance
    instance: Instance
    disks_before: tuple[Disk, ...]
    disks: tuple[Disk, ...]
    guest_before: GuestSpec
    guest: GuestSpec
    detach: Handover  # where it was
    copies: tuple[DiskCopy, ...]
    attach: Handover  # where it is going to be
    was_running: bool
    start: bool
    wait_s: float
    now: float


@operation("OP_INSTANCE_MOVE")
class MoveInstance(Operation[None, MovePlan], kw_only=True):
    """Move an instance to any node: stop it, copy its disks there, and start it there."""

    instance_name: InstanceArgument
    target_node: Annotated[NodeName, option("-n", "--node", help="node to move it to")]
    compress: CompressionOption = Compression.NONE
    rate_limit: RateOption = 0
    shutdown_timeout: ShutdownTimeout = 120
    ignore_ipolicy: IgnorePolicy = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        target = config.node(self.target_node).uuid
        nodes = [*config.nodes_of(instance), target]
        networks = networks_of(config, instance)
        return wanted(instance=instance.name, nodes=nodes, room=[target], networks=networks)

    async def prepare(self, cluster: Cluster, _: None) -> MovePlan:
        config = cluster.config
        instance, target = config.instance(self.instance_name), config.node(self.target_node)
        source, kind = config.nodes[instance.primary_node], kind_of(instance.disk_template)
        _check_is_copied(instance)
        if target == source:
            raise Conflict(f"Instance {instance.name} is on {target.name} already.")
        check_online(source)
        check_takes_instances(target)
        check_settled(cluster, instance)
        disks = config.disks_of(instance)
        check_no_snapshots(instance, disks, "moved")
        holders = kind.holders([target.uuid])
        moved = replace(instance, primary_node=target.uuid)
        moved_disks = tuple(replace(disk, nodes=holders) for disk in disks)
        planned = PlannedInstance(moved, moved_disks)
        if not self.ignore_ipolicy:
            check_policy(config, planned, target)
        await check_still_fits(cluster, planned, [target], built_in=False)
        was_running = may_run(await find_guest(cluster, instance, source))
        if not was_running:
            await check_not_elsewhere(cluster, instance, source)
        before = present_guest(config, instance)
        check_connected(config, config.nics_of(instance), target.uuid)
        after = guest_spec(config, moved, moved_disks, config.nics_of(instance))
        await cluster.call(Instances, target).check_startable(guest=after)
        return MovePlan(
            source=source.ref,
            target=target.ref,
            instance_before=instance,
            instance=moved,
            disks_before=disks,
            disks=moved_disks,
            guest_before=before,
            guest=after,
            was_running=was_running,
            detach=kind.after_stop([source.ref], was_running=was_running),
            copies=tuple(
                DiskCopy(
                    index=index,
                    source=side_of(kind, [source.ref], there),
                    target=side_of(kind, [target.ref], here, may_be_left=True),
                    compression=self.compress,
                    rate=self.rate_limit,
                )
                for index, (there, here) in enumerate(zip(before.disks, after.disks, strict=True))
            ),
            attach=kind.before_start([target.ref]),
            start=instance.admin_state is AdminState.UP,
            wait_s=float(self.shutdown_timeout),
            now=cluster.now(),
        )

    def promises(self, plan: MovePlan) -> Iterable[Promise]:
        memory = plan.guest.memory if plan.start else MiB(0)
        planned = PlannedInstance(plan.instance, plan.disks)
        return [Promise(plan.instance.uuid, plan.target.uuid, memory, planned)]

    def recipe(self, cluster: Cluster, plan: MovePlan) -> Iterator[Step]:
        yield shut_down_guest(
            cluster,
            plan.guest_before,
            plan.source,
            plan.detach,
            wait_s=plan.wait_s,
            was_running=plan.was_running,
        )
        yield from copy_all(cluster, plan.copies)
        title = f"record that {plan.guest.name} is on {plan.target}"
        before = (plan.instance_before, *plan.disks_before)
        recorded = change(title, before, (plan.instance, *plan.disks), plan.now)
        if plan.start:
            yield recorded
            started = start_guest(cluster, plan.guest, plan.target, plan.attach)
            # From now on it writes to its new disks, and the old ones are worth nothing.
            yield dataclasses.replace(started, point_of_no_return=True)
        else:
            yield dataclasses.replace(recorded, point_of_no_return=True)
        for copy in plan.copies:
            yield delete_left_disk(cluster, copy.index, copy.source.disk, plan.source)


def _check_is_copied(instance: Instance) -> None:
    """Refuse what gets to other nodes without its disks being copied."""
    traits = instance.disk_template.traits
    if traits.is_external or traits.is_mirrored:
        raise Conflict(
            f"Instance {instance.name} has {instance.disk_template} disks, which need not be "
            f"copied: “gnt-instance migrate {instance.name}” or “gnt-instance failover "
            f"{instance.name}” moves it.",
            instance=instance.name,
        )
