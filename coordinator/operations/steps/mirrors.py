"""Having the copies of mirrored disks meet and part, and noting which of them lack something."""

from collections.abc import Iterable, Iterator
from functools import partial

from common.model.node import NodeRef
from common.names import DiskId, NodeId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import CopyState, MirrorReport, Mirrors
from coordinator.disks.holding import Hold, none, standby
from coordinator.disks.mirrors import are_whole, is_linked, is_whole, mirrored
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.disks import at_once, hold
from coordinator.operations.steps.edits import note_copies
from coordinator.operations.steps.syncing import connected, pauses, wait_for_sync
from coordinator.state.rows import Update
from coordinator.state.state import State

MEET_S = 10.0  # until two nodes that look for each other are taken for parted


def fall_behind(
    guest: GuestSpec, lost: tuple[NodeRef, ...], now: float, *, good: tuple[NodeRef, ...] = ()
) -> Iterator[Step]:
    """Note that copies are not written to from now on.

    It is not taken back: whatever the guest has written by the time that something fails, the
    copies lack. They count again when their node says that they are up to date.
    """
    if lost and guest.disks:
        names = " and ".join(map(str, lost))
        disks = tuple(disk.id for disk in guest.disks)
        yield record(
            f"note that the disks of {guest.name} fall behind on {names}",
            note_copies(
                disks,
                now,
                behind=tuple(node.uuid for node in lost),
                good=tuple(node.uuid for node in good),
            ),
        )


def join_copies(cluster: Cluster, guest: GuestSpec, nodes: tuple[NodeRef, ...]) -> Step:
    """Make what was created on two nodes one disk; all of it is zeros."""
    home, *_ = nodes

    async def join() -> None:
        await at_once(cluster, {node.uuid: hold(cluster, guest, standby(node)) for node in nodes})
        disks = mirrored(guest)
        mirrors = cluster.call(Mirrors, home)
        reports = await connected(cluster, guest, home)
        if not are_whole(reports):
            await mirrors.begin(disks=disks, full=False)
            await wait_for_sync(cluster, guest, home)

    return act(
        f"have the disks of {guest.name} mirrored on {' and '.join(map(str, nodes))}",
        join,
        undo=lambda: hold(cluster, guest, none(*nodes)),
    )


def give_up_copies(
    cluster: Cluster, guest: GuestSpec, nodes: tuple[NodeRef, ...], now: float
) -> Iterator[Step]:
    """Have copies that nobody has attached count no more; they are copied anew.

    What is below the copy that is left may be changed from then on: two copies that were equal when
    they parted are taken for equal when they meet.
    """
    yield from fall_behind(guest, nodes, now)
    disks = mirrored(guest)
    for node in nodes:
        ask = partial(cluster.call(Mirrors, node).give_up, disks=disks)
        yield act(f"give up the copies of {guest.name} on {node}", ask)


def copy_anew(
    cluster: Cluster, guest: GuestSpec, home: NodeRef, others: tuple[NodeRef, ...], now: float
) -> Iterator[Step]:
    """Copy the disks of a guest that does not run, in whole, and detach them again."""
    nodes = (home, *others)

    async def copy() -> None:
        await hold(cluster, guest, standby(*nodes))
        await connected(cluster, guest, home)
        await wait_for_sync(cluster, guest, home)
        await hold(cluster, guest, none(*nodes))

    to = " and ".join(map(str, others))
    yield act(f"copy the disks of {guest.name} from {home} to {to}", copy)
    yield record(
        f"note that the copies of {guest.name} are equal",
        note_copies(
            tuple(disk.id for disk in mirrored(guest)), now, good=tuple(n.uuid for n in nodes)
        ),
    )


def let_go(cluster: Cluster, guest: GuestSpec, nodes: tuple[NodeRef, ...]) -> Step:
    """Have nodes detach the disks of a guest that does not run."""
    return act(
        f"detach the disks of {guest.name}",
        lambda: at_once(cluster, {node.uuid: hold(cluster, guest, none(node)) for node in nodes}),
    )


def see_copies(
    cluster: Cluster, guest: GuestSpec, home: NodeRef, now: float, *, apart: bool = False
) -> Step:
    """Note which copies lack something of what a guest has written that has ended on ``home``.

    With nobody writing any more, what ``home`` says now of both is true until they are attached
    again, whatever becomes of one of them. So it is recorded before anybody lets go of the disks:
    a copy that is attached anew does not know any more what it lacks.

    If only what was written ``apart`` counts, as by a guest that may not have been started at all,
    two nodes that do not reach each other are no sign of it.
    """
    disks = mirrored(guest)
    lagging: list[tuple[DiskId, tuple[NodeId, ...]]] = []

    async def look() -> None:
        reports = await cluster.call(Mirrors, home).status(disks=disks)
        pairs = zip(disks, reports, strict=True)
        lagging[:] = [
            (disk.id, _who_lacks(disk, report, home))
            for disk, report in pairs
            if report and not is_whole(report) and (report.has_written_apart or not apart)
        ]

    def note(state: State) -> Iterable[Update]:
        noted = (note_copies((disk,), now, behind=nodes)(state) for disk, nodes in lagging)
        return [update for updates in noted for update in updates]

    return Step(f"see which copies of {guest.name} have all", do=look, edit=note)


def _who_lacks(disk: DiskSpec, report: MirrorReport, home: NodeRef) -> tuple[NodeId, ...]:
    """Return the nodes that lack what a guest has written on ``home``, which reports.

    With a copy that is not good the guest wrote to the other one only.
    """
    if report.own is not CopyState.UP_TO_DATE:
        return (home.uuid,)
    return tuple(end.node for end in disk.ends if end.node != home.uuid)


def meet(
    cluster: Cluster,
    guest: GuestSpec,
    nodes: tuple[NodeRef, ...],
    now: float,
    undo: tuple[Hold, ...],
) -> Step:
    """Have two nodes look for each other; if they do not meet, the second one falls behind."""
    home, *rest = nodes
    disks = mirrored(guest)
    parted: list[DiskId] = []

    async def look() -> None:
        await hold(cluster, guest, standby(*rest, home))
        end, pause = cluster.steady() + MEET_S, pauses()
        while True:
            reports = await cluster.call(Mirrors, home).status(disks=disks)
            pairs = zip(disks, reports, strict=True)
            parted[:] = [d.id for d, report in pairs if not is_linked(report)]
            if not parted or cluster.steady() >= end:
                return
            await cluster.sleep(next(pause))

    def note(state: State) -> Iterable[Update]:
        return note_copies(tuple(parted), now, behind=tuple(node.uuid for node in rest))(state)

    return Step(
        f"have {' and '.join(map(str, nodes))} look for each other",
        do=look,
        undo=lambda: hold(cluster, guest, undo),
        edit=note,
    )
