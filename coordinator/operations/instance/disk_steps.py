"""Making, plugging, unplugging and deleting disks when those of an instance change."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import NodeRef
from common.noderpc.instances import GuestReport, GuestSpec, Instances
from coordinator.disks.holding import Handover
from coordinator.disks.kinds import kind_of
from coordinator.disks.mirrors import mirrored
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.at_once import AtOnce, is_told
from coordinator.operations.instance.disk_changes import DiskChanges
from coordinator.operations.instance.whereabouts import check_settled
from coordinator.operations.specs import guest_spec
from coordinator.operations.step import Step, act
from coordinator.operations.steps.checks import check_answers, check_online, is_alive
from coordinator.operations.steps.disks import create_disk, delete_left_disk, hold, homes
from coordinator.operations.steps.mirrors import join_copies, let_go
from coordinator.operations.steps.snapshots import check_no_snapshots


class DiskPlan(Order, kw_only=True):
    """How the disks of an instance change.

    Attributes:
        changes: which.
        homes: the instance's nodes, the primary one first.
        come: with the disks that it gets.
        gone: with the disks that it has no more.
        attach: what is to come where it is; nothing, if it is attached at the next start.
        detach: what goes.
        guest: that runs, with all disks that it has then; None if nobody is told.
        guest_before: with those that it has.
    """

    changes: DiskChanges
    homes: tuple[NodeRef, ...]
    come: GuestSpec
    gone: GuestSpec
    attach: Handover
    detach: Handover
    guest: GuestSpec | None = None
    guest_before: GuestSpec | None = None


def plan_disks(
    cluster: Cluster,
    before: Instance,
    after: Instance,
    changes: DiskChanges,
    found: GuestReport | None,
    at_once: AtOnce,
) -> DiskPlan:
    """Plan how disks change.

    Args:
        cluster: as the job sees it.
        before: the instance.
        after: the instance as it will be.
        changes: of its disks.
        found: its guest, if there is one.
        at_once: whether a guest that runs is told of it.

    Raises:
        Conflict: a disk that goes is in use, or the guest cannot be told.
    """
    check_no_snapshots(before, changes.gone, "taken away")
    check_settled(cluster, before)
    config, kind = cluster.config, kind_of(after.disk_template)
    home = config.nodes[after.primary_node]
    nodes = [config.nodes[uuid] for uuid in config.nodes_of(before)]
    for node in nodes:
        check_online(node)
    at = homes(config, before, home.ref)
    check_answers(found, before, home)
    tells = is_told(before, found, at_once, found.disks if found else None, what="disks")
    if is_alive(found) and changes.gone and not tells:
        raise Conflict(
            f"{before.name} runs and uses disk {_numbers(changes)}: with --hotplug it lets go of "
            "that at once; or stop it first.",
            instance=before.name,
        )

    def guest(instance: Instance, disks: Sequence[Disk]) -> GuestSpec:
        return guest_spec(config, instance, disks, config.nics_of(before))

    known = found.disks or {} if found else {}
    is_attached = tells or (before.disks_active and not is_alive(found))
    attach = kind.before_start(at)
    return DiskPlan(
        changes=changes,
        homes=at,
        come=guest(after, changes.come),
        gone=guest(before, changes.gone),
        attach=attach if is_attached else Handover(),
        detach=replace(kind.after_stop(at), undo=attach.do if is_attached else ()),
        guest=guest(after, changes.disks) if tells else None,
        guest_before=guest(before, [d for d in changes.present if d.uuid in known])
        if tells
        else None,
    )


def make_and_plug(cluster: Cluster, plan: DiskPlan) -> Iterator[Step]:
    """Make what is new, and have the guest know what it is to have; undone, all is as before."""
    name, specs = plan.come.name, {disk.id: disk for disk in plan.come.disks}
    for number in plan.changes.made:
        disk = specs[plan.changes.disks[number].uuid]
        yield create_disk(cluster, number, disk, plan.homes)
    made = tuple(specs[plan.changes.disks[number].uuid] for number in plan.changes.made)
    new = replace(plan.come, disks=made)
    if mirrored(new):
        yield join_copies(cluster, new, plan.homes)
        if not plan.attach.do:
            yield let_go(cluster, new, plan.homes)
    fresh = _fresh(plan)
    if plan.attach.do and fresh.disks:
        yield act(
            f"attach the new disks of {name}",
            lambda: hold(cluster, fresh, plan.attach.do),
            undo=lambda: hold(cluster, fresh, plan.attach.undo),
        )
    if (guest := plan.guest) and (before := plan.guest_before):
        instances = cluster.call(Instances, plan.homes[0])
        yield act(
            f"have {name} know its disks",
            lambda: instances.ensure_disks(guest=guest),
            undo=lambda: instances.ensure_disks(guest=before),
        )
    if plan.gone.disks:
        yield act(
            f"detach what {name} has no more",
            lambda: hold(cluster, plan.gone, plan.detach.do),
            undo=lambda: hold(cluster, plan.gone, plan.detach.undo),
        )


def delete_removed(cluster: Cluster, plan: DiskPlan) -> Iterator[Step]:
    """Delete what is removed, when the instance has it no more."""
    for number in plan.changes.removed:
        uuid = plan.changes.present[number].uuid
        spec = next(disk for disk in plan.gone.disks if disk.id == uuid)
        for node in plan.homes:
            yield delete_left_disk(cluster, number, spec, node)


def _fresh(plan: DiskPlan) -> GuestSpec:
    """Return the guest with the disks only that it does not know yet."""
    if plan.guest is None or plan.guest_before is None:
        return plan.come
    known = {disk.id for disk in plan.guest_before.disks}
    new = tuple(disk for disk in plan.guest.disks if disk.id not in known)
    return replace(plan.guest, disks=new)


def _numbers(changes: DiskChanges) -> str:
    return " and ".join(str(changes.present.index(disk)) for disk in changes.gone)
