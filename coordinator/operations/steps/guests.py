"""Steps that start and stop guests."""

from collections.abc import Iterator

from common.names import InstanceId
from common.noderpc.instances import GuestSpec
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.edits import set_maybe_on
from coordinator.operations.step import Step, act, record


def start_guest(
    cluster: Cluster, guest: GuestSpec, node: str, node_name: str, *, was_running: bool = False
) -> Step:
    """Start a guest; undone, it is gone again, unless it ran before."""
    instances = cluster.instances(node)
    return act(
        f"start {guest.name} on {node_name}",
        lambda: instances.ensure_running(guest=guest),
        undo=None if was_running else lambda: instances.ensure_gone(instance=guest.id),
    )


def settle(instance: str, name: str, maybe_on: tuple[str, ...], now: float) -> Iterator[Step]:
    """Record that an instance can only be on its primary node, where that was open before."""
    if maybe_on:
        yield record(
            f"record that {name} is nowhere else",
            set_maybe_on(instance, (), now),
            undo=set_maybe_on(instance, maybe_on, now),
        )


def end_elsewhere(
    cluster: Cluster, guest: GuestSpec, others: tuple[tuple[str, str], ...]
) -> Iterator[Step]:
    """Kill a guest on nodes where it may be, given by UUID and name; it is to end anyway."""
    for node, name in others:
        yield _end(cluster, guest, node, name)


def _end(cluster: Cluster, guest: GuestSpec, node: str, name: str) -> Step:
    instances = cluster.instances(node)
    return act(
        f"end {guest.name} on {name}, where it may be",
        lambda: instances.ensure_gone(instance=guest.id),
    )


def shut_down_guest(
    cluster: Cluster,
    guest: GuestSpec,
    node: str,
    node_name: str,
    *,
    wait_s: float,
    was_running: bool = True,
) -> Step:
    """Ask a guest to power off, kill it after ``wait_s``; undone, it runs again."""
    instances = cluster.instances(node)

    async def restart() -> None:
        # The task may still be waiting for the guest to go: starting the guest before that
        # has ended would see it killed a moment later.
        await cluster.tasks(node).cancel(task=cluster.task_id("shutdown"))
        await instances.ensure_running(guest=guest)

    return act(
        f"shut down {guest.name} on {node_name}",
        lambda: shut_down(cluster, guest.id, node, wait_s),
        undo=restart if was_running else None,
    )


async def shut_down(cluster: Cluster, guest: InstanceId, node: str, wait_s: float) -> None:
    """Have a guest power off on ``node``, and return when it is gone."""
    task = cluster.task_id("shutdown")
    await cluster.instances(node).begin_shutdown(instance=guest, wait_s=wait_s, task=task)
    await cluster.run_task(node, task)
