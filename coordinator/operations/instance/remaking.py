"""Making copies of mirrored disks anew on their node, which has nothing left of them.

So it is when a node was wiped and came back, or got new disks: there is nothing to set aside, and
no device that the other copy could be connected to until the new volumes are there.
"""

import dataclasses
from collections.abc import Iterator

from coordinator.disks.holding import none
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.replacing import (
    ReplacePlan,
    as_it_was,
    copy_over,
    note_good,
)
from coordinator.operations.step import Step, act
from coordinator.operations.steps.disks import create_disk, hold
from coordinator.operations.steps.mirrors import fall_behind, let_go


def remake(cluster: Cluster, plan: ReplacePlan) -> Iterator[Step]:
    """Make the copies of the target; undone, it has nothing again, and the source goes on alone."""
    guest, source, target = plan.guest, plan.source, plan.target
    yield from fall_behind(guest, (target,), plan.now)
    for index, disk in zip(plan.indices, guest.disks, strict=True):
        yield create_disk(cluster, index, disk, (target,))

    async def attach() -> None:
        for node in (target, source):
            await hold(cluster, guest, as_it_was(plan, node))

    async def detach() -> None:
        await hold(cluster, guest, none(target))
        if plan.access is None:
            await hold(cluster, guest, none(source))

    title = f"attach the new copies of {guest.name} on {target}"
    yield act(title, attach, undo=detach)
    yield copy_over(cluster, plan, guest)
    if plan.access is None:
        yield let_go(cluster, guest, (source, target))
    yield dataclasses.replace(note_good(plan), point_of_no_return=True)
