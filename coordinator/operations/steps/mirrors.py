"""Having the copies of mirrored disks become equal, and seeing that they are."""

from collections.abc import Iterable, Iterator

from common.errors import NodeFailure, Unreachable
from common.model.node import Node, NodeRef
from common.names import DiskId
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import Link, Mirrors
from coordinator.disks.diagnosis import Told
from coordinator.disks.holding import Hold, none, standby
from coordinator.disks.kinds import mirrored_on
from coordinator.disks.mirrors import Reports, are_whole, first_trouble, is_whole, progress
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.disks import hold
from coordinator.operations.steps.edits import note_copies
from coordinator.state.rows import Update
from coordinator.state.state import State

LOOK_S = 1.0  # between two looks at a copying
TELL_S = 10.0  # between two lines about it in the job's log
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
        await hold(cluster, guest, standby(*reversed(nodes)))
        disks = mirrored(guest)
        mirrors = cluster.call(Mirrors, home)
        reports = await _connected(cluster, guest, home)
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
    return act(f"detach the disks of {guest.name}", lambda: hold(cluster, guest, none(*nodes)))


def part_copies(
    cluster: Cluster, guest: GuestSpec, home: NodeRef, holds: tuple[Hold, ...], now: float
) -> Step:
    """Detach the disks of a guest that has ended on ``home``, noting which copies lack something.

    With nobody writing any more, what the two nodes say of each other now is true until they are
    attached again, whatever becomes of one of them.
    """
    disks = mirrored(guest)
    lagging: list[DiskId] = []

    async def part() -> None:
        reports = await cluster.call(Mirrors, home).status(disks=disks)
        pairs = zip(disks, reports, strict=True)
        lagging[:] = [disk.id for disk, report in pairs if report and not is_whole(report)]
        await hold(cluster, guest, holds)

    def note(state: State) -> Iterable[Update]:
        others = {end.node for disk in disks for end in disk.ends} - {home.uuid}
        return note_copies(tuple(lagging), now, behind=tuple(others))(state)

    return Step(f"detach the disks of {guest.name}", do=part, edit=note)


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
            if all(report and report.link is Link.CONNECTED for report in reports):
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


async def _connected(cluster: Cluster, guest: GuestSpec, node: NodeRef) -> Reports:
    """Return what a node says once it has found the other one."""
    disks, since = mirrored(guest), cluster.steady()
    while True:
        reports = await cluster.call(Mirrors, node).status(disks=disks)
        if all(report and report.link is Link.CONNECTED for report in reports):
            return reports
        if cluster.steady() - since > PATIENCE_S:
            raise NodeFailure(
                f"{node} does not reach the other node of {guest.name}: see to the network "
                "between the two.",
                node=node.name,
            )
        await cluster.sleep(LOOK_S)
