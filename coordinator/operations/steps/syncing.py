"""Waiting until the copies of mirrored disks are equal, as far as there is hope for that."""

from collections.abc import Iterator

from common.errors import NodeFailure, Unreachable
from common.model.node import Node, NodeRef
from common.noderpc.disks import DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import Mirrors
from coordinator.disks.diagnosis import Told
from coordinator.disks.kinds import mirrored_on
from coordinator.disks.mirrors import (
    Reports,
    are_whole,
    first_trouble,
    in_words,
    is_linked,
    is_whole,
    mirrored,
    progress,
)
from coordinator.operations.cluster_view import Cluster

SOON_S = 0.1  # between the first two looks: mostly that is enough for nodes to meet and be equal
LOOK_S = 1.0  # between two looks, at most
TELL_S = 10.0  # between two lines about it in the job's log
PATIENCE_S = 60.0  # with two nodes that do not reach each other, or one that does not answer


def pauses() -> Iterator[float]:
    """Yield how long to wait between one look and the next, without end: longer and longer."""
    pause_s = SOON_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, LOOK_S)


async def see_mirrored(cluster: Cluster, node: NodeRef, disk: DiskSpec) -> None:
    """Return when the second copy of what was written has all of it, too, if there is one.

    Raises:
        NodeFailure: it has not, and does not get it.
    """
    limit, pause = cluster.steady() + PATIENCE_S, pauses()
    while disk.ends:
        (report,) = await cluster.call(Mirrors, node).status(disks=(disk,))
        if is_whole(report):
            return
        if cluster.steady() >= limit:
            raise NodeFailure(
                f"The second copy of what was written on {node} lacks some of it: the disk "
                f"{in_words(report)} there."
            )
        await cluster.sleep(next(pause))


async def wait_for_sync(cluster: Cluster, guest: GuestSpec, node: NodeRef) -> None:
    """Return when both copies of all disks are up to date; the job's log tells how far it is.

    Raises:
        NodeFailure: what is in the way will not go away by itself.
        Unreachable: the node has not answered for a while.
    """
    disks = mirrored(guest)
    well, told, pause = cluster.steady(), -TELL_S, pauses()
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
            _check_hope(guest, node, reports)
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
        await cluster.sleep(next(pause))


async def ask_mirrors(cluster: Cluster, node: Node) -> Told:
    """Return what a node says of all mirrored disks that it has a copy of."""
    config = cluster.config
    disks = mirrored_on(config, config.nodes.keys()).get(node.uuid, ())
    reports = await cluster.call(Mirrors, node).status(disks=disks) if disks else ()
    return {disk.id: report for disk, report in zip(disks, reports, strict=True)}


def _check_hope(guest: GuestSpec, node: NodeRef, reports: Reports) -> None:
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
    disks, since, pause = mirrored(guest), cluster.steady(), pauses()
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
        await cluster.sleep(next(pause))
