"""Disks that are sent to another cluster, which expects them.

All of an instance go at the same time: where they are expected was told at once, and nobody waits
there for one to begin while another one takes its hours.
"""

from collections.abc import Iterator, Sequence

from common.errors import NotFound
from common.messages import Order
from common.noderpc.copies import BrokenOff, Compression, Copies, Offer, Stranger
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act
from coordinator.operations.steps.between_clusters import (
    all_of,
    end_all,
    hold_all,
    noted,
    see_through,
)
from coordinator.operations.steps.carriers import WholeDisks
from coordinator.operations.steps.copies import Side, copy_id
from coordinator.operations.steps.patience import patiently


class SentDisk(Order):
    """A disk on its way to a node of another cluster; ``rate`` is in MiB per second."""

    index: int
    source: Side
    peer: Stranger
    host: str
    offer: Offer
    compression: Compression = Compression.NONE
    rate: int = 0


def send_disks(
    cluster: Cluster, name: str, disks: Sequence[SentDisk], carrier: WholeDisks
) -> Iterator[Step]:
    """Bring what is on the disks of an instance to the cluster that expects it.

    When it has them, it may go on with the instance: nothing of this side is undone any more.
    """
    sides = {disk.index: disk.source for disk in disks}

    async def do() -> None:
        await hold_all(cluster, sides)
        await all_of(cluster, {disk.index: _send(cluster, disk, carrier) for disk in disks})

    where = " and ".join(sorted({disk.host for disk in disks}))
    yield Step(
        f"send the disks of {name} to {where}",
        do=do,
        undo=lambda: end_all(cluster, sides, carrier),
        point_of_no_return=True,
    )
    yield act(
        f"let go of the disks of {name}, which are sent",
        lambda: patiently(cluster, lambda: end_all(cluster, sides, carrier)),
    )


async def _send(cluster: Cluster, disk: SentDisk, carrier: WholeDisks) -> None:
    life = cluster.new_uuid()  # what became of a task of a coordinator before is no news

    async def attempt(number: int) -> None:
        spec = await carrier.ready(disk.index, disk.source)
        task = cluster.task_id(f"send-{disk.index}-{life}-{number}")
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
            )
        with noted(carrier, disk.index, BrokenOff):
            await cluster.run_task(disk.source.node, task)

    await see_through(cluster, attempt, carrier, disk.index)
