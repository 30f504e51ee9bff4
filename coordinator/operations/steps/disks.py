"""Making disks, and having nodes attach and detach them."""

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby

from common.errors import GntError, Unreachable
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.names import NodeId
from common.noderpc.disks import Access, Disks, DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import Mirrors
from coordinator.disks.holding import Handover, Hold, none
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.step import Step, act
from coordinator.operations.steps.finishing import until_finished
from coordinator.operations.steps.patience import patiently
from coordinator.state.config import Config


def homes(config: Config, instance: Instance, primary: NodeRef) -> tuple[NodeRef, ...]:
    """Return the nodes of an instance when ``primary`` is its primary node, but those offline."""
    nodes = (config.nodes[uuid] for uuid in config.nodes_of(instance))
    refs = tuple(node.ref for node in nodes if not node.offline)
    mirrored = instance.disk_template.traits.is_mirrored
    return (primary, *(ref for ref in refs if mirrored and ref != primary))


def holders_of(config: Config, disk: Disk, home: Node) -> tuple[Node, ...]:
    """Return the nodes that are asked to change a disk, the one where it is used last.

    Where no node holds the data, all reach it, and ``home`` does what is to be done.
    """
    others = (config.nodes[uuid] for uuid in disk.nodes if uuid != home.uuid)
    return (*others, home)


def create_disk(
    cluster: Cluster,
    index: int,
    disk: DiskSpec,
    nodes: tuple[NodeRef, ...],
    *,
    others: tuple[DiskSpec, ...] = (),
) -> Step:
    """Create a disk on all nodes that are to have it, at the same time; undone, it is deleted.

    ``others`` are those of the instance that the next steps create: a node may make them at once,
    so that they are near one another, and they are deleted with it.
    """
    title = f"create disk {index} ({disk.size} MiB) on "

    async def make(node: NodeRef) -> None:
        present = partial(cluster.call(Disks, node).ensure_present, disk=disk, others=others)
        await until_finished(cluster, f"{title}{node}", present)

    async def take_back(node: NodeRef) -> None:
        for each in (disk, *others):
            await cluster.call(Disks, node).ensure_absent(disk=each)

    return act(
        title + " and ".join(map(str, nodes)),
        lambda: at_once(cluster, {node.uuid: make(node) for node in nodes}),
        undo=lambda: at_once(cluster, {node.uuid: take_back(node) for node in nodes}),
    )


async def at_once(cluster: Cluster, calls: Mapping[NodeId, Awaitable[None]]) -> None:
    """Have several nodes do something at the same time; return when all have done or failed.

    Raises:
        GntError: the first of what they failed with, in the order given.
    """
    outcomes = await cluster.each(calls)
    for outcome in outcomes.values():
        if outcome is not None:
            raise outcome


def delete_disk(cluster: Cluster, index: int, disk: DiskSpec, node: NodeRef) -> Step:
    """Delete a disk, for good."""
    return act(
        f"delete disk {index} on {node}",
        lambda: cluster.call(Disks, node).ensure_absent(disk=disk),
    )


def delete_left_disk(cluster: Cluster, index: int, disk: DiskSpec, node: NodeRef) -> Step:
    """Delete a disk that nobody needs any more; one that cannot be deleted is left, and told."""
    disks = cluster.call(Disks, node)

    async def attempt() -> None:
        try:
            await patiently(cluster, lambda: disks.ensure_absent(disk=disk), heed_cancel=False)
        except GntError as error:
            cluster.log(
                f"The former disk {index} is left on {node} ({disk.backing.where}) and can be "
                f"deleted there: {error}"
            )

    return act(f"delete the former disk {index} on {node}", attempt)


def leave_disks(
    cluster: Cluster, guest: GuestSpec, home: NodeRef, handover: Handover
) -> Iterator[Step]:
    """Leave the disks to the node where the guest is now, and to no other."""
    if guest.disks:
        yield act(
            f"leave the disks of {guest.name} to {home}",
            lambda: hold(cluster, guest, handover.do),
        )


def detach_elsewhere(
    cluster: Cluster, guest: GuestSpec, others: tuple[NodeRef, ...]
) -> Iterator[Step]:
    """Have nodes let go of the disks on which a move that was cut off may have left them."""
    for node in others if guest.disks else ():
        yield _detach(cluster, guest, node)


def _detach(cluster: Cluster, guest: GuestSpec, node: NodeRef) -> Step:
    title = f"detach the disks of {guest.name} on {node}, where they may be"
    return act(title, lambda: hold(cluster, guest, none(node)))


async def hold(cluster: Cluster, guest: GuestSpec, holds: Iterable[Hold]) -> None:
    """Have each node hold the disks of a guest as it is to."""
    await hold_disks(cluster, guest.disks, holds)


async def hold_disks(cluster: Cluster, disks: tuple[DiskSpec, ...], holds: Iterable[Hold]) -> None:
    """Have each node hold these disks as it is to.

    That is asked again by whoever needs it, instead of being relied on: a node that has lost its
    power has nothing attached any more. Nodes that follow one another into standby do so at once.
    """
    for access, nodes in groupby(holds if disks else (), key=lambda each: each.access):
        if access is Access.STANDBY:
            await at_once(cluster, {each.node.uuid: _ask(cluster, disks, each) for each in nodes})
            continue
        for each in nodes:
            await _ask(cluster, disks, each)


async def _ask(cluster: Cluster, disks: tuple[DiskSpec, ...], hold: Hold) -> None:
    try:
        await _hold(cluster, disks, hold)
    except Unreachable as error:
        if not hold.is_optional:
            raise
        cluster.log(f"{hold.node} does not answer and is left as it is: {error.message}")


async def _hold(cluster: Cluster, specs: tuple[DiskSpec, ...], hold: Hold) -> None:
    disks = cluster.call(Disks, hold.node)
    match hold.access:
        case None:
            await disks.detach(disks=specs)
        case Access.ALONE:
            await _take_alone(cluster, specs, hold.node)
        case access:
            await disks.attach(disks=specs, access=access)


async def _take_alone(cluster: Cluster, specs: tuple[DiskSpec, ...], node: NodeRef) -> None:
    """Have a node attach disks of which its copies are the good ones, as is noted."""
    disks, mirrors = cluster.call(Disks, node), cluster.call(Mirrors, node)
    reports = await mirrors.status(disks=specs)
    if not all(report and report.primary for report in reports):
        await disks.attach(disks=specs, access=Access.STANDBY)
        await mirrors.declare_good(disks=specs)
    await disks.attach(disks=specs, access=Access.ALONE)
