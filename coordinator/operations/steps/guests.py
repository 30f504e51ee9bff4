"""Steps that start and stop guests."""

from collections.abc import Iterator

from common.model.instance import AdminState, StateSource
from common.model.node import NodeRef
from common.names import InstanceId, InstanceName, NodeId
from common.noderpc.instances import GuestSpec, Instances
from common.noderpc.tasks import Tasks
from coordinator.disks.holding import Handover, none
from coordinator.disks.mirrors import mirrored
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Action, Step, act, record
from coordinator.operations.steps.disks import hold
from coordinator.operations.steps.edits import set_admin_state, set_maybe_on
from coordinator.operations.steps.mirrors import see_copies
from coordinator.operations.steps.one_copy import attach_again, hold_again, returning


def start_guest(
    cluster: Cluster,
    guest: GuestSpec,
    node: NodeRef,
    attach: Handover,
    *,
    was_running: bool = False,
    paused: bool = False,
) -> Step:
    """Start a guest, its disks attached; undone, it is gone again, unless it ran before.

    What it has written until then, and to one copy only, is noted when it is gone.
    """
    wrote = see_copies(cluster, guest, node, cluster.now(), apart=True)

    async def start() -> None:
        await hold(cluster, guest, attach.do)
        await cluster.call(Instances, node).ensure_running(guest=guest, paused=paused)

    async def end() -> None:
        await cluster.call(Instances, node).ensure_gone(instance=guest.id)
        if wrote.do and mirrored(guest):
            await wrote.do()
        await hold(cluster, guest, attach.undo)

    title = f"start {guest.name} on {node}"
    if was_running:
        return act(title, start)
    return Step(title, do=start, undo=end, undo_edit=wrote.edit if mirrored(guest) else None)


def start_again(
    cluster: Cluster, guest: GuestSpec, node: NodeRef, attach: Handover, now: float
) -> Iterator[Step]:
    """Start a guest that was stopped for a while, with one copy of its disks if need be."""

    async def start() -> None:
        await hold_again(cluster, guest, node, attach.do)
        await cluster.call(Instances, node).ensure_running(guest=guest)

    yield from attach_again(cluster, guest, node, attach.do, now)
    yield act(f"start {guest.name} on {node}", start)


def mark(
    instance: InstanceId,
    name: InstanceName,
    now: float,
    *,
    before: AdminState,
    after: AdminState,
    source_before: StateSource = StateSource.ADMIN,
) -> Iterator[Step]:
    """Record what the operator wants of an instance, where that is not so already."""
    if before is not after:
        yield record(
            f"mark {name} as {after}",
            set_admin_state(instance, after, now),
            undo=set_admin_state(instance, before, now, source=source_before),
        )


def settle(
    instance: InstanceId, name: InstanceName, maybe_on: tuple[NodeId, ...], now: float
) -> Iterator[Step]:
    """Record that an instance can only be on its primary node, where that was open before."""
    if maybe_on:
        yield record(
            f"record that {name} is nowhere else",
            set_maybe_on(instance, (), now),
            undo=set_maybe_on(instance, maybe_on, now),
        )


def end_elsewhere(
    cluster: Cluster, guest: GuestSpec, others: tuple[NodeRef, ...]
) -> Iterator[Step]:
    """Kill a guest on nodes where it may be, which let go of its disks; it is to end anyway."""
    for node in others:
        yield _end(cluster, guest, node)


def _end(cluster: Cluster, guest: GuestSpec, node: NodeRef) -> Step:
    async def end() -> None:
        await cluster.call(Instances, node).ensure_gone(instance=guest.id)
        await hold(cluster, guest, none(node))

    return act(f"end {guest.name} on {node}, where it may be", end)


def shut_down_guest(
    cluster: Cluster,
    guest: GuestSpec,
    node: NodeRef,
    detach: Handover,
    *,
    wait_s: float,
    was_running: bool = True,
    take_back: Action | None = None,
) -> Step:
    """Ask a guest to power off, kill it after ``wait_s``, detach its disks; undone, it runs again.

    One that did not run is not asked; whatever is left of it is cleared away. ``take_back`` has its
    disks ready again, where that is not as simple as ``detach`` says.
    """
    instances = cluster.call(Instances, node)

    async def stop() -> None:
        if was_running:
            await shut_down(cluster, guest.id, node, wait_s)
        else:
            await instances.ensure_gone(instance=guest.id)
        await hold(cluster, guest, detach.do)

    async def restart() -> None:
        # The task may still be waiting for the guest to go: starting the guest before that
        # has ended would see it killed a moment later.
        await cluster.call(Tasks, node).cancel(task=cluster.task_id("shutdown"))
        await (take_back() if take_back else hold_again(cluster, guest, node, detach.undo))
        await instances.ensure_running(guest=guest)

    return act(f"shut down {guest.name} on {node}", stop, undo=restart if was_running else None)


def stop_guest(
    cluster: Cluster,
    guest: GuestSpec,
    node: NodeRef,
    detach: Handover,
    now: float,
    *,
    wait_s: float,
    was_running: bool,
    take_back: Action | None = None,
) -> Iterator[Step]:
    """Shut a guest down and let go of its disks; undone, it runs again, with one copy if need be.

    What two nodes have is looked at, and noted, between the guest's end and the parting. See
    ``shut_down_guest`` for the arguments.
    """
    parts = bool(mirrored(guest))
    yield shut_down_guest(
        cluster,
        guest,
        node,
        Handover(undo=detach.undo) if parts else detach,
        wait_s=wait_s,
        was_running=was_running,
        take_back=take_back,
    )
    if parts:
        yield see_copies(cluster, guest, node, now)
        let_go = act(
            f"let go of the disks of {guest.name}", lambda: hold(cluster, guest, detach.do)
        )
        is_simple = take_back is None
        yield returning(let_go, cluster, guest, node, detach.undo, now) if is_simple else let_go


async def shut_down(cluster: Cluster, guest: InstanceId, node: NodeRef, wait_s: float) -> None:
    """Have a guest power off on ``node``, and return when it is gone."""
    task = cluster.task_id("shutdown")
    await cluster.call(Instances, node).begin_shutdown(instance=guest, wait_s=wait_s, task=task)
    await cluster.run_task(node, task)
