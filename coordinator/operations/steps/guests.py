"""Steps that start and stop guests."""

from collections.abc import Iterator

from common.model.node import NodeRef
from common.names import InstanceId, InstanceName, NodeId
from common.noderpc.instances import GuestSpec, Instances
from common.noderpc.tasks import Tasks
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.edits import set_maybe_on


def start_guest(
    cluster: Cluster, guest: GuestSpec, node: NodeRef, *, was_running: bool = False
) -> Step:
    """Start a guest; undone, it is gone again, unless it ran before."""
    instances = cluster.call(Instances, node)
    return act(
        f"start {guest.name} on {node}",
        lambda: instances.ensure_running(guest=guest),
        undo=None if was_running else lambda: instances.ensure_gone(instance=guest.id),
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
    """Kill a guest on nodes where it may be; it is to end anyway."""
    for node in others:
        yield _end(cluster, guest, node)


def _end(cluster: Cluster, guest: GuestSpec, node: NodeRef) -> Step:
    instances = cluster.call(Instances, node)
    return act(
        f"end {guest.name} on {node}, where it may be",
        lambda: instances.ensure_gone(instance=guest.id),
    )


def shut_down_guest(
    cluster: Cluster,
    guest: GuestSpec,
    node: NodeRef,
    *,
    wait_s: float,
    was_running: bool = True,
) -> Step:
    """Ask a guest to power off, kill it after ``wait_s``; undone, it runs again.

    One that did not run is not asked; whatever is left of it is cleared away.
    """
    instances = cluster.call(Instances, node)
    title = f"shut down {guest.name} on {node}"
    if not was_running:
        return act(title, lambda: instances.ensure_gone(instance=guest.id))

    async def restart() -> None:
        # The task may still be waiting for the guest to go: starting the guest before that
        # has ended would see it killed a moment later.
        await cluster.call(Tasks, node).cancel(task=cluster.task_id("shutdown"))
        await instances.ensure_running(guest=guest)

    return act(title, lambda: shut_down(cluster, guest.id, node, wait_s), undo=restart)


async def shut_down(cluster: Cluster, guest: InstanceId, node: NodeRef, wait_s: float) -> None:
    """Have a guest power off on ``node``, and return when it is gone."""
    task = cluster.task_id("shutdown")
    await cluster.call(Instances, node).begin_shutdown(instance=guest, wait_s=wait_s, task=task)
    await cluster.run_task(node, task)
