"""Copying what is on a disk onto another one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b

from common.messages import Order
from common.model.node import NodeRef
from common.noderpc.copies import BrokenOff, Compression, Copies, Offer, Peer
from common.noderpc.disks import Disks, DiskSpec
from coordinator.disks.holding import Handover
from coordinator.disks.kind import DiskKind
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act
from coordinator.operations.steps.disks import create_disk, hold_disks
from coordinator.operations.steps.patience import in_passing, patiently
from coordinator.operations.steps.persevering import persevere
from coordinator.operations.steps.shown_key import shown_key
from coordinator.operations.steps.syncing import see_mirrored


class Side(Order):
    """The disk that is read, or written, and what its nodes do for that and afterwards.

    ``may_be_left``: if it comes to nothing, nobody waits for a node that does not answer to clear
    it away: no guest needs what is there.
    """

    node: NodeRef
    disk: DiskSpec
    attach: Handover
    detach: Handover
    may_be_left: bool = False


class DiskCopy(Order):
    """``index`` is that of the disk, as people count; ``rate`` is in MiB per second."""

    index: int
    source: Side
    target: Side
    compression: Compression = Compression.NONE
    rate: int = 0

    @property
    def title(self) -> str:
        return f"copy disk {self.index} from {self.source.node} to {self.target.node}"


def side_of(
    kind: DiskKind, nodes: Sequence[NodeRef], disk: DiskSpec, *, may_be_left: bool = False
) -> Side:
    """Return one side of a copy: a disk that ``nodes`` have, read or written on the first."""
    attach, detach = kind.before_start(nodes), kind.after_stop(nodes)
    return Side(node=nodes[0], disk=disk, attach=attach, detach=detach, may_be_left=may_be_left)


def make_target(cluster: Cluster, index: int, side: Side) -> Step:
    """Create the disk that is going to be filled, where one node has it."""
    disks = cluster.call(Disks, side.node)

    async def undo() -> None:
        left = f"Disk {index}, a copy ({side.disk.backing.where}),"
        absent = partial(disks.ensure_absent, disk=side.disk)
        await in_passing(cluster, side.node, absent, left=left)

    step = create_disk(cluster, index, side.disk, (side.node,))
    return replace(step, undo=undo) if side.may_be_left else step


def copy_all(cluster: Cluster, copies: Sequence[DiskCopy]) -> Iterator[Step]:
    """Create all disks that are going to be filled, where one node has each; then fill them."""
    for copy in copies:
        yield make_target(cluster, copy.index, copy.target)
    for copy in copies:
        yield copy_disk(cluster, copy)


def copy_disk(cluster: Cluster, copy: DiskCopy) -> Step:
    """Fill a disk with what is on another one; both are let go of at the end, and when undone."""

    async def do() -> None:
        for side in (copy.source, copy.target):
            await hold_disks(cluster, (side.disk,), side.attach.do)
        await _transfer(cluster, copy)
        await see_mirrored(cluster, copy.target.node, copy.target.disk)
        # What took hours is not done again because a noded is being restarted just now.
        await patiently(cluster, end)

    async def end() -> None:
        for side in (copy.target, copy.source):
            await end_side(cluster, copy.index, side)

    async def undo() -> None:
        for side in (copy.target, copy.source):
            if side.may_be_left:
                left = f"A part of disk {copy.index}"
                ending = partial(end_side, cluster, copy.index, side)
                await in_passing(cluster, side.node, ending, left=left)
            else:
                await end_side(cluster, copy.index, side)

    return act(copy.title, do, undo=undo)


async def end_side(cluster: Cluster, index: int, side: Side) -> None:
    """Have a node have nothing to do with a copy any more."""
    await cluster.call(Copies, side.node).ensure_ended(copy=copy_id(cluster, index))
    await hold_disks(cluster, (side.disk,), side.detach.do)


async def _transfer(cluster: Cluster, copy: DiskCopy) -> None:
    """See a copy to its end; it goes on while noded is restarted on either node."""
    offer: Offer | None = None

    async def attempt(number: int) -> None:
        nonlocal offer
        try:
            offer = offer or await offer_disk(cluster, copy)
            await fetch_disk(cluster, copy, offer, number)
        except BrokenOff:
            offer = None  # whoever offered may be gone
            raise

    await persevere(cluster, attempt)


async def offer_disk(cluster: Cluster, copy: DiskCopy) -> Offer:
    """Have the source let the target read."""
    return await cluster.call(Copies, copy.source.node).offer(
        copy=copy_id(cluster, copy.index),
        disk=copy.source.disk,
        peer=await _peer(cluster, copy.target.node),
        compression=copy.compression,
        rate=copy.rate,
    )


async def fetch_disk(cluster: Cluster, copy: DiskCopy, offer: Offer, attempt: int) -> None:
    """Have the target fetch what is offered, or go on, and wait for that.

    Raises:
        BrokenOff: it can be tried again.
        NodeFailure: it cannot be done.
    """
    source = cluster.config.nodes[copy.source.node.uuid]
    # What was fetched of an offer before says nothing of this one.
    which = blake2b(offer.secret.encode(), digest_size=4).hexdigest()
    task = cluster.task_id(f"copy-{copy.index}-{attempt}-{which}")
    await cluster.call(Copies, copy.target.node).begin_fetch(
        copy=copy_id(cluster, copy.index),
        disk=copy.target.disk,
        peer=await _peer(cluster, copy.source.node),
        host=source.secondary_ip or source.primary_ip,
        offer=offer,
        task=task,
    )
    await cluster.run_task(copy.target.node, task)


async def _peer(cluster: Cluster, node: NodeRef) -> Peer:
    key = await shown_key(cluster, cluster.config.nodes[node.uuid])
    return Peer(name=node.name, key=key)


def copy_id(cluster: Cluster, index: int) -> str:
    """Name a copy, on both nodes: the same whoever goes on with the job."""
    return cluster.task_id(f"copy-{index}")
