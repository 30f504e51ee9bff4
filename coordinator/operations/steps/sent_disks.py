"""Disks that are sent to another cluster, which expects them.

All of an instance go at the same time: where they are expected was told at once, and nobody waits
there for one to begin while another one takes its hours.

When the other cluster says that all are there, it has recorded the instance, and does not start it
before it hears that this was heard. It hears so when this side has recorded that it lets go.
"""

from collections.abc import Iterator, Sequence

from common.errors import GntError, NotFound
from common.messages import Order
from common.names import TaskId
from common.noderpc.copies import BrokenOff, Compression, Copies, Offer, Stranger
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Edit, Step, act
from coordinator.operations.steps.between_clusters import (
    all_of,
    end_all,
    hold_all,
    noted,
    see_through,
)
from coordinator.operations.steps.carriers import WholeDisks
from coordinator.operations.steps.copies import Side, copy_id
from coordinator.operations.steps.patience import in_passing, patiently


class SentDisk(Order):
    """A disk on its way to a node of another cluster; ``rate`` is in MiB per second."""

    index: int
    source: Side
    peer: Stranger
    host: str
    offer: Offer
    compression: Compression = Compression.NONE
    rate: int = 0
    beside: tuple[int, ...] = ()  # the instance's other disks


def send_disks(
    cluster: Cluster,
    name: str,
    disks: Sequence[SentDisk],
    carrier: WholeDisks,
    let_go: Edit | None,
) -> Iterator[Step]:
    """Bring what is on the disks of an instance to the cluster that expects it.

    When it has them, it may go on with the instance: nothing of this side is undone any more, and
    ``let_go`` has it recorded that nothing is started here.
    """
    sides = {disk.index: disk.source for disk in disks}

    async def do() -> None:
        await hold_all(cluster, sides)
        try:
            await all_of(cluster, {disk.index: _send(cluster, disk, carrier) for disk in disks})
        except GntError as error:
            if not await _are_there(cluster, disks):
                raise
            cluster.log(f"The other cluster has {name}, and goes on with it: {error}")

    async def tell() -> None:
        try:
            await all_of(cluster, {disk.index: _tell(cluster, disk, carrier) for disk in disks})
        except GntError as error:
            cluster.log(
                f"The other cluster has {name}, complete, and may not know that it was let go of "
                f"here: if it is not started there, start it: {error}"
            )

    async def end() -> None:
        await end_all(cluster, sides, carrier)

    async def end_in_passing() -> None:
        await in_passing(cluster, disks[0].source.node, end, left=f"The copy of {name}")

    where = " and ".join(sorted({disk.host for disk in disks}))
    yield Step(
        f"send the disks of {name} to {where}",
        do=do,
        undo=end,
        edit=let_go,
        point_of_no_return=True,
    )
    yield act(f"tell the other cluster that {name} is let go of", tell, end_in_passing)
    yield act(
        f"let go of the disks of {name}, which are sent",
        lambda: patiently(cluster, end),
    )


async def _send(cluster: Cluster, disk: SentDisk, carrier: WholeDisks) -> None:
    life = cluster.new_uuid()  # what became of a task of a coordinator before is no news

    async def attempt(number: int) -> None:
        if await _is_there(cluster, disk):  # which was said, whatever became of the line
            return
        task = cluster.task_id(f"send-{disk.index}-{life}-{number}")
        await _begin(cluster, disk, carrier, task)
        with noted(carrier, disk.index, BrokenOff):
            await cluster.run_task(disk.source.node, task)

    await see_through(cluster, attempt, carrier, disk.index)


async def _tell(cluster: Cluster, disk: SentDisk, carrier: WholeDisks) -> None:
    life, node = cluster.new_uuid(), disk.source.node

    async def attempt(number: int) -> None:
        again = cluster.task_id(f"send-{disk.index}-{life}-{number}")
        await _begin(cluster, disk, carrier, again)  # where its node has forgotten it
        task = cluster.task_id(f"tell-{disk.index}-{life}-{number}")
        copy = copy_id(cluster, disk.index)
        await cluster.call(Copies, node).begin_confirm(copy=copy, task=task)
        with noted(carrier, disk.index, BrokenOff):
            await cluster.run_task(node, task)

    await see_through(cluster, attempt, carrier, disk.index)


async def _begin(cluster: Cluster, disk: SentDisk, carrier: WholeDisks, task: TaskId) -> None:
    spec = await carrier.ready(disk.index, disk.source)
    with noted(carrier, disk.index, NotFound):
        await cluster.call(Copies, disk.source.node).begin_send(
            copy=copy_id(cluster, disk.index),
            disk=spec,
            peer=disk.peer,
            host=disk.host,
            offer=disk.offer,
            compression=disk.compression,
            rate=disk.rate,
            task=task,
            until_confirmed=True,
            beside=tuple(copy_id(cluster, index) for index in disk.beside),
        )


async def _are_there(cluster: Cluster, disks: Sequence[SentDisk]) -> bool:
    """Tell whether the other cluster has said so of all disks; a node that is silent knows none."""
    answers = await cluster.each({disk.index: _is_there(cluster, disk) for disk in disks})
    return all(answer is True for answer in answers.values())


async def _is_there(cluster: Cluster, disk: SentDisk) -> bool:
    node = cluster.call(Copies, disk.source.node)
    return await node.has_arrived(copy=copy_id(cluster, disk.index))
