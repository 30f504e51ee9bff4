"""Having the copies of mirrored disks become equal, and seeing that they are."""

from collections.abc import Iterable, Iterator

from common.errors import NodeFailure, Unreachable
from common.model.node import Node, NodeRef
from common.names import DiskId, NodeId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import CopyState, MirrorReport, Mirrors, Parted
from coordinator.disks.diagnosis import Told
from coordinator.disks.holding import Hold, alone, none, standby
from coordinator.disks.kinds import mirrored_on
from coordinator.disks.mirrors import (
    Reports,
    are_whole,
    first_trouble,
    in_words,
    is_linked,
    is_whole,
    progress,
)
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.disks import at_once, hold
from coordinator.operations.steps.edits import note_copies
from coordinator.state.rows import Update
from coordinator.state.state import State

LOOK_S = 1.0  # between two looks at a copying
SOON_S = 0.1  # between the first two looks whether nodes have met
TELL_S = 10.0  # between two lines about it in the job's log
MEET_S = 10.0  # until two nodes that look for each other are taken for parted
PATIENCE_S = 60.0  # with two nodes that do not reach each other, or one that does not answer

Specs = tuple[DiskSpec, ...]


def mirrored(guest: GuestSpec) -> Specs:
    """Return those disks of a guest that two nodes have."""
    return tuple(disk for disk in guest.disks if disk.ends)


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


def let_go(cluster: Cluster, guest: GuestSpec, nodes: tuple[NodeRef, ...]) -> Step:
    """Have nodes detach the disks of a guest that does not run."""
    return act(
        f"detach the disks of {guest.name}",
        lambda: at_once(cluster, {node.uuid: hold(cluster, guest, none(node)) for node in nodes}),
    )


def part_copies(
    cluster: Cluster, guest: GuestSpec, home: NodeRef, holds: tuple[Hold, ...], now: float
) -> Step:
    """Detach the disks of a guest that has ended on ``home``, noting which copies lack something.

    With nobody writing any more, what the two nodes say of each other now is true until they are
    attached again, whatever becomes of one of them.
    """
    disks = mirrored(guest)
    lagging: list[tuple[DiskId, tuple[NodeId, ...]]] = []

    async def part() -> None:
        reports = await cluster.call(Mirrors, home).status(disks=disks)
        pairs = zip(disks, reports, strict=True)
        lagging[:] = [
            (disk.id, _who_lacks(disk, report, home))
            for disk, report in pairs
            if report and not is_whole(report)
        ]
        await hold(cluster, guest, holds)

    def note(state: State) -> Iterable[Update]:
        noted = (note_copies((disk,), now, behind=nodes)(state) for disk, nodes in lagging)
        return [update for updates in noted for update in updates]

    return Step(f"detach the disks of {guest.name}", do=part, edit=note)


def _who_lacks(disk: DiskSpec, report: MirrorReport, home: NodeRef) -> tuple[NodeId, ...]:
    """Return the nodes that lack what a guest has written on ``home``, which reports.

    With a copy that is not good the guest wrote to the other one only.
    """
    if report.own is not CopyState.UP_TO_DATE:
        return (home.uuid,)
    return tuple(end.node for end in disk.ends if end.node != home.uuid)


async def take_back(
    cluster: Cluster,
    guest: GuestSpec,
    home: NodeRef,
    holds: tuple[Hold, ...],
    other: NodeRef,
    *,
    is_untouched: bool,
) -> None:
    """Have ``home`` hold the disks again of a guest that was to start on the other node.

    If the two do not reach each other, it goes on alone: provided that it is noted that the other
    copy is behind, and that this one lacks nothing that was written there meanwhile. If the other
    node ``is_untouched``, as it was not asked to start the guest, it need not be asked.

    Raises:
        Parted: it may lack something.
        Unreachable: the other node cannot say.
    """
    try:
        await hold(cluster, guest, holds)
    except (Parted, Unreachable):
        disks = mirrored(guest)
        noted = (cluster.config.disks[disk.id].behind for disk in disks)
        if not disks or not all(other.uuid in behind for behind in noted):
            raise
        if not is_untouched:
            reports = await cluster.call(Mirrors, other).status(disks=disks)
            if any(report is None or report.has_written_apart for report in reports):
                raise
        await hold(cluster, guest, alone(home))


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
        end, pause_s = cluster.steady() + MEET_S, SOON_S
        while True:
            reports = await cluster.call(Mirrors, home).status(disks=disks)
            pairs = zip(disks, reports, strict=True)
            parted[:] = [d.id for d, report in pairs if not is_linked(report)]
            if not parted or cluster.steady() >= end:
                return
            await cluster.sleep(pause_s)
            pause_s = min(2 * pause_s, LOOK_S)

    def note(state: State) -> Iterable[Update]:
        return note_copies(tuple(parted), now, behind=tuple(node.uuid for node in rest))(state)

    return Step(
        f"have {' and '.join(map(str, nodes))} look for each other",
        do=look,
        undo=lambda: hold(cluster, guest, undo),
        edit=note,
    )


async def see_mirrored(cluster: Cluster, node: NodeRef, disk: DiskSpec) -> None:
    """Return when the second copy of what was written has all of it, too, if there is one.

    Raises:
        NodeFailure: it has not, and does not get it.
    """
    limit = cluster.steady() + PATIENCE_S
    while disk.ends:
        (report,) = await cluster.call(Mirrors, node).status(disks=(disk,))
        if is_whole(report):
            return
        if cluster.steady() >= limit:
            raise NodeFailure(
                f"The second copy of what was written on {node} lacks some of it: the disk "
                f"{in_words(report)} there."
            )
        await cluster.sleep(LOOK_S)


async def wait_for_sync(cluster: Cluster, guest: GuestSpec, node: NodeRef) -> None:
    """Return when both copies of all disks are up to date; the job's log tells how far it is.

    Raises:
        NodeFailure: what is in the way will not go away by itself.
        Unreachable: the node has not answered for a while.
    """
    disks = mirrored(guest)
    well, told = cluster.steady(), -TELL_S
    while True:
        now = cluster.steady()
        try:
            reports = await cluster.call(Mirrors, node).status(disks=disks)
        except Unreachable:
            if now - well > PATIENCE_S:
                raise
        else:
            if are_whole(reports):
                return
            check_hope(guest, node, reports)
            if all(is_linked(report) for report in reports):
                well = now
            elif now - well > PATIENCE_S:
                raise NodeFailure(
                    f"{node} has not reached the other node of {guest.name} for "
                    f"{PATIENCE_S:.0f} s: see to the network between the two.",
                    node=node.name,
                )
            if now - told >= TELL_S and (line := progress(reports)):
                cluster.log(line)
                told = now
        await cluster.sleep(LOOK_S)


async def ask_mirrors(cluster: Cluster, node: Node) -> Told:
    """Return what a node says of all mirrored disks that it has a copy of."""
    config = cluster.config
    disks = mirrored_on(config, config.nodes.keys()).get(node.uuid, ())
    reports = await cluster.call(Mirrors, node).status(disks=disks) if disks else ()
    return {disk.id: report for disk, report in zip(disks, reports, strict=True)}


def check_hope(guest: GuestSpec, node: NodeRef, reports: Reports) -> None:
    """Refuse to wait for copies that will not become equal by themselves.

    Raises:
        NodeFailure: says what is in the way.
    """
    if trouble := first_trouble(reports):
        raise NodeFailure(
            f"The copies of {guest.name} do not become equal: as {node} sees it, {trouble}. “gnt-"
            f"instance info {guest.name}” shows both sides.",
            node=node.name,
        )


async def connected(cluster: Cluster, guest: GuestSpec, node: NodeRef) -> Reports:
    """Return what a node says once it has found the other one."""
    disks, since, pause_s = mirrored(guest), cluster.steady(), SOON_S
    while True:
        reports = await cluster.call(Mirrors, node).status(disks=disks)
        if all(is_linked(report) for report in reports):
            return reports
        if cluster.steady() - since > PATIENCE_S:
            raise NodeFailure(
                f"{node} does not reach the other node of {guest.name}: see to the network "
                "between the two.",
                node=node.name,
            )
        await cluster.sleep(pause_s)
        pause_s = min(2 * pause_s, LOOK_S)
