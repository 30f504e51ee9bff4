"""Disks that are sent to another cluster, or that come from one.

All of an instance go at the same time: where they are expected is told at once, and nobody waits
there for one to begin while another one takes its hours.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from common.errors import GntError, NodeFailure, NotFound
from common.messages import Order
from common.noderpc.copies import BrokenOff, Compression, Copies, Offer, Stranger
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act, saying
from coordinator.operations.steps.carriers import WholeDisks
from coordinator.operations.steps.copies import Side, copy_id, end_side
from coordinator.operations.steps.disks import hold_disks
from coordinator.operations.steps.patience import in_passing, patiently
from coordinator.operations.steps.persevering import persevere
from coordinator.operations.steps.syncing import see_mirrored


class SentDisk(Order):
    """A disk on its way to a node of another cluster; ``rate`` is in MiB per second."""

    index: int
    source: Side
    peer: Stranger
    host: str
    offer: Offer
    compression: Compression = Compression.NONE
    rate: int = 0


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


def send_disks(
    cluster: Cluster, name: str, disks: Sequence[SentDisk], carrier: WholeDisks
) -> Iterator[Step]:
    """Bring what is on the disks of an instance to the cluster that expects it.

    When it has them, it may go on with the instance: nothing of this side is undone any more.
    """
    sides = {disk.index: disk.source for disk in disks}

    async def do() -> None:
        await _hold(cluster, sides)
        await _all_of(cluster, {disk.index: _send(cluster, disk, carrier) for disk in disks})

    where = " and ".join(sorted({disk.host for disk in disks}))
    yield Step(
        f"send the disks of {name} to {where}",
        do=do,
        undo=lambda: _end(cluster, sides, carrier),
        point_of_no_return=True,
    )
    yield act(
        f"let go of the disks of {name}, which are sent",
        lambda: patiently(cluster, lambda: _end(cluster, sides, carrier)),
    )


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
        await _hold(cluster, sides)
        life = cluster.new_uuid()
        announce([await _expect(cluster, disk, carrier, f"{life}-0") for disk in disks])
        every = {disk.index: _receive(cluster, disk, carrier, life) for disk in disks}
        await _all_of(cluster, every)

    return Step(
        f"receive the disks of {name} from another cluster",
        do=do,
        undo=lambda: _end(cluster, sides, carrier),
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
        ending = partial(_end, cluster, sides, carrier)
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
        await patiently(cluster, lambda: _end(cluster, sides, carrier))

    return act(f"let go of the disks of {name}, which are filled", do)


async def _send(cluster: Cluster, disk: SentDisk, carrier: WholeDisks) -> None:
    life = cluster.new_uuid()  # what became of a task of a coordinator before is no news

    async def attempt(number: int) -> None:
        spec = await carrier.ready(disk.index, disk.source)
        task = cluster.task_id(f"send-{disk.index}-{life}-{number}")
        with _noted(carrier, disk.index, NotFound):
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
        with _noted(carrier, disk.index, BrokenOff):
            await cluster.run_task(disk.source.node, task)

    await _see_through(cluster, attempt, carrier, disk.index)


async def _receive(cluster: Cluster, disk: ExpectedDisk, carrier: WholeDisks, life: str) -> None:
    async def attempt(number: int) -> None:
        await _expect(cluster, disk, carrier, f"{life}-{number}")
        task = cluster.task_id(f"expect-{disk.index}-{life}-{number}")
        with _noted(carrier, disk.index, BrokenOff):
            await cluster.run_task(disk.target.node, task)

    await _see_through(cluster, attempt, carrier, disk.index)


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
    with _noted(carrier, disk.index, NotFound):
        return await cluster.call(Copies, disk.target.node).begin_expect(
            copy=copy_id(cluster, disk.index),
            disk=spec,
            peer=disk.peer,
            wait_s=disk.wait_s,
            task=cluster.task_id(f"expect-{disk.index}-{name}"),
            until_confirmed=disk.to_be_confirmed,
            beside=tuple(copy_id(cluster, index) for index in disk.beside),
        )


@contextmanager
def _noted(carrier: WholeDisks, index: int, kind: type[GntError]) -> Iterator[None]:
    try:
        yield
    except kind:
        carrier.broke_off(index)
        raise


async def _see_through(
    cluster: Cluster,
    attempt: Callable[[int], Awaitable[None]],
    carrier: WholeDisks,
    index: int,
) -> None:
    try:
        await persevere(cluster, attempt)
    finally:
        await carrier.tell(index)


async def _hold(cluster: Cluster, sides: Mapping[int, Side]) -> None:
    for side in sides.values():
        await hold_disks(cluster, (side.disk,), side.attach.do)


async def _end(cluster: Cluster, sides: Mapping[int, Side], carrier: WholeDisks) -> None:
    for index in sides:  # all of them: each has all disks of the instance open
        await carrier.end(index)
    for index, side in sides.items():
        await end_side(cluster, index, side)


async def _all_of(cluster: Cluster, works: Mapping[int, Awaitable[None]]) -> None:
    """Wait for all disks.

    Raises:
        GntError: what the first of them has failed with.
    """
    for outcome in (await cluster.each(works)).values():
        if isinstance(outcome, GntError):
            raise outcome
