"""Make a disk of an instance larger."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, ClassVar

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.disk import Disk, Mode
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.names import MiB
from common.noderpc.disks import Disks
from common.noderpc.instances import GuestSpec, Instances
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.disks.mirrors import mirrored
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import (
    IgnorePolicy,
    InstanceArgument,
    WaitForSync,
)
from coordinator.operations.instance.second_copy import check_both_good
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.instance.which import find_device
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import Syntax, argument, option
from coordinator.operations.placement.fit import check_policy
from coordinator.operations.placement.growth import promise_of_space, take_space
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import guest_spec
from coordinator.operations.step import Step, act
from coordinator.operations.steps.changes import change, turn
from coordinator.operations.steps.checks import check_answers, check_online, find_guest, is_alive
from coordinator.operations.steps.disks import hold, holders_of, homes
from coordinator.operations.steps.finishing import until_finished
from coordinator.operations.steps.snapshots import check_no_snapshots
from coordinator.operations.steps.syncing import wait_for_sync
from coordinator.state.config import Config


class GrowPlan(Order, kw_only=True):
    """``guest`` is what runs, with those of its disks that it knows; None if nothing does."""

    instance: Instance
    disks: tuple[Disk, ...]  # as they will be
    index: int
    before: Disk
    grown: GuestSpec  # with this disk only
    holders: tuple[NodeRef, ...]  # the one where it is used last
    guest: GuestSpec | None
    attach: Handover  # nothing where it is attached
    detach: Handover
    now: float


@operation("OP_INSTANCE_GROW_DISK")
class GrowDisk(Operation[None, GrowPlan], kw_only=True):
    """Make a disk larger; a guest that runs sees it at once."""

    takes_reservations: ClassVar[bool] = True

    instance_name: InstanceArgument
    disk: Annotated[int | str, argument("number of the disk, its name or its UUID")]
    amount: Annotated[MiB, argument("by how much, or with --absolute to which size")]
    wait_for_sync: WaitForSync = True
    absolute: Annotated[
        bool, option("--absolute", help="give the size it is to have", syntax=Syntax.FLAG)
    ] = False
    ignore_ipolicy: IgnorePolicy = False

    def locks(self, config: Config, _: None) -> Wanted:
        instance = config.instance(self.instance_name)
        nodes = config.nodes_of(instance)
        return wanted(instance=instance.name, nodes=nodes, room=nodes)

    async def prepare(self, cluster: Cluster, _: None) -> GrowPlan:
        config = cluster.config
        instance = config.instance(self.instance_name)
        check_settled(cluster, instance)
        disks = config.disks_of(instance)
        index = find_device(disks, self.disk, kind="disk", name=instance.name)
        before = disks[index]
        check_no_snapshots(instance, (before,), "grown")
        after = replace(before, size=self._size(before, index, instance))
        if after.size == before.size:  # which Ganeti takes, too
            cluster.log(f"Disk {index} of {instance.name} has {before.size} MiB, and keeps them.")
        grown = (*disks[:index], after, *disks[index + 1 :])
        home = config.nodes[instance.primary_node]
        holders = holders_of(config, before, home)
        for node in holders if not instance.forthcoming else ():
            check_online(node)
        planned = PlannedInstance(instance, grown)
        if not self.ignore_ipolicy and after != before:
            check_policy(config, planned, home)
        guest = None if instance.forthcoming else await _running(cluster, instance, home, grown)
        is_ready = guest is not None or instance.disks_active or instance.forthcoming
        if is_ready and after != before and not instance.forthcoming:
            present = guest_spec(config, instance, (before,), ())
            await check_both_good(cluster, present, home, "grow")
        if guest and after.mode is Mode.READ_ONLY and after.backing.has_own_format:
            raise Conflict(
                f"Disk {index} of {instance.name} is an image that the guest which has it may only "
                f"read, and cannot grow meanwhile: stop {instance.name} first.",
                instance=instance.name,
            )
        if guest and after.mode is Mode.READ_ONLY:
            cluster.log(
                f"{instance.name} runs, and sees the new size at its next start: it may "
                f"only read disk {index}."
            )
        await take_space(cluster, promise_of_space(planned), holders)
        kind, at = kind_of(instance.disk_template), homes(config, instance, home.ref)
        return GrowPlan(
            instance=instance,
            disks=grown,
            index=index,
            before=before,
            grown=guest_spec(config, instance, (after,), ()),
            holders=tuple(node.ref for node in holders),
            guest=guest,
            attach=Handover() if is_ready else kind.before_start(at),
            detach=Handover() if is_ready else kind.after_stop(at),
            now=cluster.now(),
        )

    def promises(self, plan: GrowPlan) -> Iterable[Promise]:
        return [promise_of_space(PlannedInstance(plan.instance, plan.disks))]

    def recipe(self, cluster: Cluster, plan: GrowPlan) -> Iterator[Step]:
        name, after = plan.grown.name, plan.disks[plan.index]
        where = f"disk {plan.index} of {name}"
        if plan.instance.forthcoming:
            yield change(
                f"reserve {after.size} MiB for {where}", (plan.before,), (after,), plan.now
            )
            return
        as_it_was = replace(
            plan.grown, disks=tuple(replace(d, size=plan.before.size) for d in plan.grown.disks)
        )
        if plan.attach.do:
            yield act(
                f"attach {where}",
                lambda: hold(cluster, as_it_was, plan.attach.do),
                undo=lambda: hold(cluster, plan.grown, plan.attach.undo),
            )
        # What has grown cannot shrink: it is recorded as soon as all copies have the new size.
        yield Step(
            f"grow {where} to {after.size} MiB on {' and '.join(map(str, plan.holders))}",
            do=lambda: _grow(cluster, plan),
            edit=turn((plan.before,), (after,), plan.now),
            point_of_no_return=True,
        )
        # What is detached below has to be whole before: nobody would know what the copies lack.
        waits = self.wait_for_sync or plan.detach.do
        if waits and mirrored(plan.grown):
            yield act(
                f"wait until both copies of {where} are equal",
                lambda: wait_for_sync(cluster, plan.grown, plan.holders[-1]),
            )
        if guest := plan.guest:
            yield act(
                f"tell {name} of it",
                lambda: cluster.call(Instances, plan.holders[-1]).ensure_disks(guest=guest),
            )
        if plan.detach.do:
            yield act(f"detach {where}", lambda: hold(cluster, plan.grown, plan.detach.do))

    def _size(self, disk: Disk, index: int, instance: Instance) -> MiB:
        size = self.amount if self.absolute else MiB(disk.size + self.amount)
        if size < disk.size:
            raise InvalidRequest(
                f"Disk {index} of {instance.name} has {disk.size} MiB, and cannot shrink to {size}."
            )
        return size


async def _grow(cluster: Cluster, plan: GrowPlan) -> None:
    (disk,) = plan.grown.disks
    for node in plan.holders:
        grow = partial(cluster.call(Disks, node).grow, disk=disk)
        await until_finished(cluster, f"grow disk {plan.index} on {node}", grow)


async def _running(
    cluster: Cluster, instance: Instance, home: Node, disks: Sequence[Disk]
) -> GuestSpec | None:
    """Return the guest that runs, with those disks of the instance that it has now."""
    found = await find_guest(cluster, instance, home)
    check_answers(found, instance, home)
    if found is None or not is_alive(found):
        return None
    if found.disks is None:
        cluster.log(
            f"{instance.name} sees the new size at its next start: an older version has started it."
        )
    known = tuple(disk for disk in disks if disk.uuid in (found.disks or {}))
    config = cluster.config
    return guest_spec(config, instance, known, config.nics_of(instance))
