"""Giving disks a second copy, or taking it away, while their data stays where it is."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.messages import Order
from common.model.backing import META_SIZE, DrbdBacking
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.names import NodeId
from common.noderpc.disks import Disks, DiskSpec
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import CopyState, Mirrors
from coordinator.disks.devices import Devices
from coordinator.disks.holding import Handover, none, optional, standby
from coordinator.disks.kind import DiskKind, NewDisk
from coordinator.disks.kinds import kind_of
from coordinator.disks.mirrors import in_words
from coordinator.disks.parameters import disk_parameters, group_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.specs import guest_spec, present_guest
from coordinator.operations.step import Step, act
from coordinator.operations.steps.disks import create_disk, delete_left_disk, hold
from coordinator.operations.steps.finishing import until_finished
from coordinator.operations.steps.syncing import connected, wait_for_sync
from coordinator.state.config import Config


class InPlace(Order, kw_only=True):
    """What becomes of the disks of a stopped instance whose primary node keeps their data.

    Attributes:
        mirrored: the guest with its disks as they are mirrored, before or after.
        home: the primary node.
        other: that gets a second copy, or gives it up; None: it is not asked.
        adds: whether a copy is added.
        detach: what is asked of both when all is recorded.
        waits: whether until it is up to date.
    """

    mirrored: GuestSpec
    home: NodeRef
    other: NodeRef | None
    adds: bool
    detach: Handover
    waits: bool


def disks_in_place(
    config: Config,
    instance: Instance,
    new: DiskKind,
    nodes: Sequence[Node],
    devices: Devices,
    *,
    waits: bool,
) -> tuple[Disk, ...]:
    """Return an instance's disks in another way of keeping them, around the data that is there.

    None of them if that cannot be: they are copied then.

    Raises:
        Conflict: the copies on the primary node are known to be behind.
    """
    holders, disks = new.holders([node.uuid for node in nodes]), config.disks_of(instance)
    parameters = disk_parameters(config, group_of(config, instance.primary_node), new.template)
    behind: tuple[NodeId, ...] = () if waits else holders[1:]
    made = []
    for disk in disks:
        wish = NewDisk(instance.uuid, disk.uuid, holders, devices, parameters=parameters)
        backing = new.around(config.cluster, disk.backing, wish)
        if backing is None:
            return ()
        made.append(replace(disk, backing=backing, nodes=holders, behind=behind))
    _check_good(disks, nodes[0], instance)
    return tuple(made)


async def as_large_as_found(
    cluster: Cluster, instance: Instance, disks: Sequence[Disk]
) -> tuple[Disk, ...]:
    """Return ``disks_in_place`` with all of the data that there is of them.

    As much is mirrored as a guest could use until now, which may be a little more than was asked
    for.

    Raises:
        NodeFailure: a disk is not there.
    """
    home = cluster.config.nodes[instance.primary_node]
    present = present_guest(cluster.config, instance).disks
    found = await cluster.call(Disks, home).find(disks=present)
    made = []
    for index, (disk, report) in enumerate(zip(disks, found, strict=True)):
        if report is None:
            raise NodeFailure(f"Disk {index} of {instance.name} is missing on {home.name}.")
        is_mirrored = isinstance(disk.backing, DrbdBacking)
        made.append(replace(disk, size=max(disk.size, report.size)) if is_mirrored else disk)
    return tuple(made)


def plan_in_place(
    cluster: Cluster, before: Instance, planned: PlannedInstance, *, waits: bool
) -> InPlace:
    """Return what ``disks_in_place`` come to be by."""
    config, after = cluster.config, planned.instance
    adds = after.disk_template.traits.is_mirrored
    guest = guest_spec(config, after, planned.disks, config.nics_of(before))
    pair = planned.disks[0].nodes if adds else config.nodes_of(before)
    home, other = (config.nodes[uuid] for uuid in pair)
    return InPlace(
        mirrored=guest if adds else present_guest(config, before),
        home=home.ref,
        other=None if other.offline else other.ref,
        detach=kind_of(after.disk_template).after_stop([home.ref, other.ref]),
        adds=adds,
        waits=waits,
    )


def make_ready(cluster: Cluster, plan: InPlace) -> Iterator[Step]:
    """Do what has to be done before the disks are recorded in their new way."""
    guest, home, other = plan.mirrored, plan.home, plan.other
    if not plan.adds:
        if other is not None:
            yield _see_them_good(cluster, guest, home, other)
        return
    assert other is not None
    for index, disk in enumerate(guest.disks):
        yield create_disk(cluster, index, disk, (other,))
        yield _add_metadata(cluster, index, disk, home)
    yield act(
        f"have the disks of {guest.name} mirrored on {home} and {other}",
        lambda: _join(cluster, guest, home, other),
        undo=lambda: hold(cluster, guest, (*none(home), *optional(*none(other)))),
    )
    if plan.waits:
        yield act(
            f"copy the disks of {guest.name} from {home} to {other}",
            lambda: wait_for_sync(cluster, guest, home),
        )


def clear_up(cluster: Cluster, plan: InPlace) -> Iterator[Step]:
    """Do what is left when they are recorded."""
    guest, home, other = plan.mirrored, plan.home, plan.other
    if plan.adds:
        yield act(f"detach the disks of {guest.name}", lambda: hold(cluster, guest, plan.detach.do))
        return
    for index, disk in enumerate(guest.disks):
        yield delete_left_disk(cluster, index, _metadata_of(disk), home)
        if other is not None:
            yield delete_left_disk(cluster, index, disk, other)


def _check_good(disks: Sequence[Disk], home: Node, instance: Instance) -> None:
    for index, disk in enumerate(disks):
        if home.uuid in disk.behind:
            raise Conflict(
                f"Disk {index} of {instance.name} on {home.name} is behind the other copy, which "
                f"would be given up: “gnt-instance failover {instance.name}” first, or make both "
                f"equal with “gnt-instance activate-disks --wait-for-sync {instance.name}”.",
                instance=instance.name,
            )


def _see_them_good(cluster: Cluster, guest: GuestSpec, home: NodeRef, other: NodeRef) -> Step:
    """Have the two nodes meet once more, before one of them gives up its copies."""

    async def look() -> None:
        await hold(cluster, guest, standby(other, home))
        for index, report in enumerate(await connected(cluster, guest, home)):
            if report is None or report.own is not CopyState.UP_TO_DATE:
                raise NodeFailure(
                    f"The copies of {guest.name} on {other} stay: disk {index} on {home} "
                    f"{in_words(report)}.",
                    node=home.name,
                )
        await hold(cluster, guest, none(home, other))

    return act(
        f"see that the copies of {guest.name} on {home} are good",
        look,
        undo=lambda: hold(cluster, guest, (*none(home), *optional(*none(other)))),
    )


def _add_metadata(cluster: Cluster, index: int, disk: DiskSpec, node: NodeRef) -> Step:
    """Have DRBD's metadata beside data that is there; undone, the data alone is."""
    disks, title = cluster.call(Disks, node), f"have disk {index} on {node} be one of two copies"
    return act(
        title,
        lambda: until_finished(cluster, title, lambda: disks.ensure_present(disk=disk)),
        undo=lambda: disks.ensure_absent(disk=_metadata_of(disk)),
    )


async def _join(cluster: Cluster, guest: GuestSpec, home: NodeRef, other: NodeRef) -> None:
    await hold(cluster, guest, standby(other, home))
    await connected(cluster, guest, home)
    await cluster.call(Mirrors, home).begin(disks=guest.disks, full=True)


def _metadata_of(disk: DiskSpec) -> DiskSpec:
    """Return what is beside the data of a mirrored disk, as if it were a disk of its own."""
    assert isinstance(disk.backing, DrbdBacking)
    return replace(disk, size=META_SIZE, backing=disk.backing.meta, ends=())
