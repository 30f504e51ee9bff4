"""Replacing copies of mirrored disks: the steps, for a copy on the same node and on another one."""

import dataclasses
from collections.abc import Iterator

from msgspec.structs import replace

from common.errors import GntError
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import NodeRef
from common.noderpc.disks import Access, Disks, DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import Mirrors
from coordinator.disks.holding import Hold, none, optional, standby
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.disks import create_disk, hold
from coordinator.operations.steps.edits import note_copies, put_disks
from coordinator.operations.steps.mirrors import fall_behind, let_go
from coordinator.operations.steps.syncing import wait_for_sync


class ReplacePlan(Order, kw_only=True):
    """Which copies are replaced, and by what.

    Attributes:
        instance: whose they are.
        guest: with those of its disks whose copies are replaced, as they are.
        indices: of these disks in the instance.
        home: its primary node.
        access: in which the primary node has the disks; None: they are at rest.
        source: whose copies are good, and stay.
        target: where new ones are made.
        is_lost: whether the target has nothing of the disks any more, as when it was wiped.
        old: the secondary node that is left; None if new copies are on the node of the old ones.
        reaches_old: whether that node is asked to delete its copies.
        after: with the disks as they will be on another node.
        before: the disks as they are.
        disks: as they will be; of a copy on the same node as they are.
        early: whether old copies are deleted before the new ones are up to date.
    """

    instance: Instance
    guest: GuestSpec
    indices: tuple[int, ...]
    home: NodeRef
    access: Access | None
    source: NodeRef
    target: NodeRef
    is_lost: bool = False
    old: NodeRef | None = None
    reaches_old: bool = True
    after: GuestSpec
    before: tuple[Disk, ...] = ()
    disks: tuple[Disk, ...] = ()
    early: bool = False
    now: float

    @property
    def promise(self) -> Promise:
        """Return what the new copies take of their node."""
        if self.old is None:
            return Promise(self.instance.uuid, self.target.uuid, beside=self.disks)
        planned = PlannedInstance(self.instance, self.disks)
        return Promise(self.instance.uuid, self.target.uuid, planned=planned)


def replace_in_place(cluster: Cluster, plan: ReplacePlan) -> Iterator[Step]:
    """Make new copies where the old ones are, which are kept beside them until all is copied."""
    guest, target = plan.guest, plan.target
    nodes = (plan.home, _second(plan))
    if plan.access is None:
        yield act(
            f"attach the disks of {guest.name}",
            lambda: hold(cluster, guest, standby(plan.source, target)),
            undo=lambda: hold(cluster, guest, none(*nodes)),
        )
    yield act(
        f"delete what an earlier replacement has left of {guest.name} on {target}",
        lambda: cluster.call(Mirrors, target).drop_aside(disks=guest.disks),
    )
    yield from fall_behind(guest, (target,), plan.now)
    yield _set_aside(cluster, plan)
    for index, disk in zip(plan.indices, guest.disks, strict=True):
        # What is new here is deleted where the old volumes are taken back.
        yield _create_anew(cluster, index, disk, target)
    yield copy_over(cluster, plan, guest)
    if plan.access is None:
        yield let_go(cluster, guest, nodes)
    yield dataclasses.replace(note_good(plan), point_of_no_return=True)
    yield act(
        f"delete the old volumes of {guest.name} on {target}",
        lambda: cluster.call(Mirrors, target).drop_aside(disks=guest.disks),
    )


def replace_node(cluster: Cluster, plan: ReplacePlan) -> Iterator[Step]:
    """Make new copies on another node; the old ones are deleted when these are up to date."""
    yield from mirror_elsewhere(cluster, plan)
    if not plan.early:
        yield copy_over(cluster, plan, plan.after)
        if plan.access is None:
            yield let_go(cluster, plan.after, (plan.home, plan.target))
    behind = (plan.target.uuid,) if plan.early else ()
    yield record(
        f"record that the second copies of {plan.guest.name} are on {plan.target}",
        put_disks(tuple(replace(disk, behind=behind) for disk in plan.disks), plan.now),
        point_of_no_return=True,
    )
    yield from drop_old(cluster, plan)
    if plan.early:
        yield copy_over(cluster, plan, plan.after)
        yield note_good(plan)
        if plan.access is None:
            yield let_go(cluster, plan.after, (plan.home, plan.target))


def mirror_elsewhere(cluster: Cluster, plan: ReplacePlan) -> Iterator[Step]:
    """Have the primary node mirror to a node that has had no copy; undone, to the old one again."""
    assert plan.old is not None
    for index, disk in zip(plan.indices, plan.after.disks, strict=True):
        yield create_disk(cluster, index, disk, (plan.target,))
    yield from fall_behind(plan.guest, (plan.old,), plan.now)
    yield _switch(cluster, plan)


def record_pair(plan: ReplacePlan) -> Step:
    """Record who has copies now, the new ones being behind; undone, the old ones are."""
    assert plan.old is not None
    new, old = (plan.target.uuid,), (plan.old.uuid,)
    return record(
        f"record that {plan.guest.name} is mirrored to {plan.target}",
        put_disks(tuple(replace(disk, behind=new) for disk in plan.disks), plan.now),
        undo=put_disks(tuple(replace(disk, behind=old) for disk in plan.before), plan.now),
    )


def note_good(plan: ReplacePlan) -> Step:
    """Record that the new copies are up to date."""
    disks = tuple(disk.uuid for disk in plan.disks)
    return record(
        f"note that the disks of {plan.guest.name} are up to date on {plan.target}",
        note_copies(disks, plan.now, good=(plan.target.uuid,)),
    )


def drop_old(cluster: Cluster, plan: ReplacePlan) -> Iterator[Step]:
    """Delete the copies on the secondary node that is left, if that is asked at all."""
    if plan.old is not None and plan.reaches_old:
        for index, disk in zip(plan.indices, plan.guest.disks, strict=True):
            yield delete_old(cluster, index, disk, plan.old)


def _set_aside(cluster: Cluster, plan: ReplacePlan) -> Step:
    guest, target = plan.guest, plan.target
    mirrors = cluster.call(Mirrors, target)

    async def take_back() -> None:
        await mirrors.take_back(disks=guest.disks)
        await hold(cluster, guest, as_it_was(plan, target))

    return act(
        f"set the volumes of {guest.name} on {target} aside",
        lambda: mirrors.set_aside(disks=guest.disks),
        undo=take_back,
    )


def _create_anew(cluster: Cluster, index: int, disk: DiskSpec, node: NodeRef) -> Step:
    return act(
        f"create disk {index} ({disk.size} MiB) anew on {node}",
        lambda: cluster.call(Disks, node).ensure_present(disk=disk),
    )


def copy_over(cluster: Cluster, plan: ReplacePlan, guest: GuestSpec) -> Step:
    async def copy() -> None:
        await hold(cluster, guest, as_it_was(plan, plan.target))
        await hold(cluster, guest, as_it_was(plan, plan.source))
        await wait_for_sync(cluster, guest, plan.source)

    return act(f"copy the disks of {guest.name} from {plan.source} to {plan.target}", copy)


def _switch(cluster: Cluster, plan: ReplacePlan) -> Step:
    """Have the primary node mirror to the new node instead of the old one."""
    assert plan.old is not None
    old = plan.old if plan.reaches_old else None

    async def switch() -> None:
        if old:
            await hold(cluster, plan.guest, optional(*none(old)))
        await hold(cluster, plan.after, standby(plan.target))
        await hold(cluster, plan.after, as_it_was(plan, plan.home))

    async def switch_back() -> None:
        await hold(cluster, plan.after, none(plan.target))
        if plan.access is None:
            await hold(cluster, plan.guest, none(plan.home))
            return
        if old:
            await hold(cluster, plan.guest, optional(*standby(old)))
        await hold(cluster, plan.guest, as_it_was(plan, plan.home))

    title = f"mirror the disks of {plan.guest.name} to {plan.target} instead of {plan.old}"
    return act(title, switch, undo=switch_back)


def delete_old(cluster: Cluster, index: int, disk: DiskSpec, node: NodeRef) -> Step:
    """Delete an old copy; the new one is there, so nothing depends on it."""

    async def delete() -> None:
        disks = cluster.call(Disks, node)
        try:
            await disks.detach(disks=(disk,))
            await disks.ensure_absent(disk=disk)
        except GntError as error:
            cluster.log(
                f"The old copy of disk {index} is left on {node}: {error.message} When that is "
                "mended, “gnt-cluster verify” names it."
            )

    return act(f"delete the old copy of disk {index} on {node}", delete)


def as_it_was(plan: ReplacePlan, node: NodeRef) -> tuple[Hold, ...]:
    """Return how a node has the disks while they are copied."""
    if plan.access is None or node != plan.home:
        return standby(node)
    return (Hold(node=node, access=plan.access),)


def _second(plan: ReplacePlan) -> NodeRef:
    return plan.target if plan.source == plan.home else plan.source
