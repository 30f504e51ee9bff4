"""What sending disks to another cluster and taking them from one have in common."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from common.errors import Conflict, GntError, NotFound
from common.model.node import NodeRef
from common.noderpc.copies import Copies
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.carriers import WholeDisks
from coordinator.operations.steps.copies import Side, copy_id, end_side
from coordinator.operations.steps.disks import hold_disks
from coordinator.operations.steps.persevering import persevere


async def check_new_enough(cluster: Cluster, node: NodeRef) -> None:
    """Refuse a node that would not know how an instance is let go of, before a guest is stopped.

    Raises:
        Conflict: its noded is of an older version.
    """
    try:
        await cluster.call(Copies, node).has_arrived(copy=copy_id(cluster, 0))
    except NotFound as error:
        raise Conflict(
            f"The noded of {node} is of an older version, which moves instances between clusters "
            "in another way. Upgrade it.",
            node=node.name,
        ) from error


async def hold_all(cluster: Cluster, sides: Mapping[int, Side]) -> None:
    """Attach disks where they are read, or written."""
    for side in sides.values():
        await hold_disks(cluster, (side.disk,), side.attach.do)


async def end_all(cluster: Cluster, sides: Mapping[int, Side], carrier: WholeDisks) -> None:
    """Have nothing to do with copies any more, and let go of their disks."""
    for index in sides:  # all of them: each has all disks of the instance open
        await carrier.end(index)
    for index, side in sides.items():
        await end_side(cluster, index, side)


async def all_of(cluster: Cluster, works: Mapping[int, Awaitable[None]]) -> None:
    """Wait for all disks.

    Raises:
        GntError: what the first of them has failed with.
    """
    for outcome in (await cluster.each(works)).values():
        if isinstance(outcome, GntError):
            raise outcome


async def see_through(
    cluster: Cluster,
    attempt: Callable[[int], Awaitable[None]],
    carrier: WholeDisks,
    index: int,
) -> None:
    """Make attempts to bring a disk until one succeeds; pass on what was said meanwhile."""
    try:
        await persevere(cluster, attempt)
    finally:
        await carrier.tell(index)


@contextmanager
def noted(carrier: WholeDisks, index: int, kind: type[GntError]) -> Iterator[None]:
    """Have whoever carries a disk know that it has broken off, if it does so by a ``kind``."""
    try:
        yield
    except kind:
        carrier.broke_off(index)
        raise
