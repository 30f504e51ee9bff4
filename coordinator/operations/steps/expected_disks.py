"""Disks of a new instance that come from another cluster.

All of them are expected from the beginning, and come at the same time.
"""

from collections.abc import Callable, Sequence
from functools import partial

from common.errors import NodeFailure, NotFound
from common.messages import Order
from common.noderpc.copies import BrokenOff, Copies, Offer, Stranger
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act, saying
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
from coordinator.operations.steps.persevering import persevere
from coordinator.operations.steps.syncing import see_mirrored


class ExpectedDisk(Order):
    """A disk that is filled by a node of another cluster, which has to come within ``wait_s``.

    The other cluster lets go of an instance when it has heard that all its disks are there. Of the
    last one it hears so when the instance is recorded, where they are ``to_be_confirmed``.
    """

    index: int
    target: Side
    peer: Stranger
    wait_s: float
    beside: tuple[int, ...] = ()  # the instance's other disks
    to_be_confirmed: bool = False


def expect_disks(
    cluster: Cluster,
    name: str,
    disks: Sequence[ExpectedDisk],
    announce: Callable[[Sequence[Offer]], None],
    carrier: WholeDisks,
) -> Step:
    """Have the disks of a new instance filled; where they are expected is announced.

    From then on the other cluster may be told so, and have nothing of it any more.
    """
    sides = {disk.index: disk.target for disk in disks}

    async def do() -> None:
        await hold_all(cluster, sides)
        life = cluster.new_uuid()
        announce([await _expect(cluster, disk, carrier, f"{life}-0") for disk in disks])
        every = {disk.index: _receive(cluster, disk, carrier, life) for disk in disks}
        await all_of(cluster, every)

    return Step(
        f"receive the disks of {name} from another cluster",
        do=do,
        undo=lambda: end_all(cluster, sides, carrier),
        point_of_no_return=True,
    )


def confirm_received(
    cluster: Cluster, name: str, disks: Sequence[ExpectedDisk], carrier: WholeDisks
) -> Step:
    """Have the other cluster hear that the disks of an instance are there, which is recorded.

    Who did not hear so goes on with it: so it is not started here unless that was heard.
    """
    sides = {disk.index: disk.target for disk in disks}

    async def do() -> None:
        for disk in disks:
            if disk.to_be_confirmed:
                await _confirm(cluster, disk)

    async def undo() -> None:
        ending = partial(end_all, cluster, sides, carrier)
        await in_passing(cluster, disks[0].target.node, ending, left=f"The copy of {name}")

    return saying(
        act(f"tell the other cluster that {name} is here", do, undo),
        f"{name} is here, complete, and not started: the other cluster may not know so, and go on "
        "with it. Look there: if it is gone, start it here; else remove it here.",
    )


def let_go_of_received(
    cluster: Cluster, name: str, disks: Sequence[ExpectedDisk], carrier: WholeDisks
) -> Step:
    """End what has filled the disks of a new instance, when all its nodes have what came."""
    sides = {disk.index: disk.target for disk in disks}

    async def do() -> None:
        for side in sides.values():
            await see_mirrored(cluster, side.node, side.disk)
        await patiently(cluster, lambda: end_all(cluster, sides, carrier))

    return act(f"let go of the disks of {name}, which are filled", do)


async def _receive(cluster: Cluster, disk: ExpectedDisk, carrier: WholeDisks, life: str) -> None:
    async def attempt(number: int) -> None:
        await _expect(cluster, disk, carrier, f"{life}-{number}")
        task = cluster.task_id(f"expect-{disk.index}-{life}-{number}")
        with noted(carrier, disk.index, BrokenOff):
            await cluster.run_task(disk.target.node, task)

    await see_through(cluster, attempt, carrier, disk.index)


async def _confirm(cluster: Cluster, disk: ExpectedDisk) -> None:
    life, node = cluster.new_uuid(), disk.target.node

    async def attempt(number: int) -> None:
        task = cluster.task_id(f"confirm-{disk.index}-{life}-{number}")
        copy = copy_id(cluster, disk.index)
        await cluster.call(Copies, node).begin_confirm(copy=copy, task=task)
        try:
            await cluster.run_task(node, task)
        except BrokenOff as error:  # nobody waits there any more for who has brought it
            raise NodeFailure(error.message) from error

    await persevere(cluster, attempt)


async def _expect(cluster: Cluster, disk: ExpectedDisk, carrier: WholeDisks, name: str) -> Offer:
    spec = await carrier.ready(disk.index, disk.target)
    with noted(carrier, disk.index, NotFound):
        return await cluster.call(Copies, disk.target.node).begin_expect(
            copy=copy_id(cluster, disk.index),
            disk=spec,
            peer=disk.peer,
            wait_s=disk.wait_s,
            task=cluster.task_id(f"expect-{disk.index}-{name}"),
            until_confirmed=disk.to_be_confirmed,
            beside=tuple(copy_id(cluster, index) for index in disk.beside),
        )
