"""Failing a mirrored instance over to a node that has no copy of its disks.

It runs there at once, reading through the network from the node whose copy is good, and gets a copy
of its own while it runs; or, where an operator would rather wait, it is down until it has that.
What the third node has is deleted when the copy is up to date.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.node import Node, NodeRef
from common.noderpc.instances import GuestSpec
from common.noderpc.mirrors import CopyState, Mirrors
from coordinator.disks.drbd import again_on
from coordinator.disks.holding import Handover, none, optional, sole, standby
from coordinator.disks.mirrors import in_words, mirrored
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.replacing import delete_old
from coordinator.operations.instance.second_copy import check_target_good
from coordinator.operations.placement.growth import promise_of_secondary, take_space
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import disk_spec
from coordinator.operations.step import Step, act, record, saying
from coordinator.operations.steps.disks import create_disk, hold
from coordinator.operations.steps.edits import note_copies, put_disks, set_primary
from coordinator.operations.steps.guests import start_again, start_guest
from coordinator.operations.steps.snapshots import check_no_snapshots
from coordinator.operations.steps.syncing import connected, wait_for_sync
from coordinator.state.rows import Put
from coordinator.state.state import State


class Pairing(Order, kw_only=True):
    """The pair that an instance is going to have.

    Attributes:
        instance: as it will be.
        base: the node whose copy is good; its secondary node from then on.
        old: the node whose copies are given up.
        reaches_old: whether it is asked to delete them.
        guest: with the disks as they will be.
        disks: likewise.
        attach: what the nodes are asked before it starts.
    """

    instance: Instance
    base: NodeRef
    old: NodeRef
    reaches_old: bool
    guest: GuestSpec
    disks: tuple[Disk, ...]
    attach: Handover

    @property
    def promise(self) -> Promise:
        planned = PlannedInstance(self.instance, self.disks)
        node = self.instance.primary_node
        return Promise(self.instance.uuid, node, self.guest.memory, planned)


async def find_base(
    cluster: Cluster, instance: Instance, guest: GuestSpec, *, is_alive: bool
) -> Node:
    """Return the node whose copy is proven to be good, the secondary one if both are.

    Raises:
        Conflict: none is, or the instance is down.
    """
    config = cluster.config
    if instance.admin_state is not AdminState.UP:
        raise Conflict(
            f"Instance {instance.name} is down; “gnt-instance replace-disks --new-secondary” makes "
            "a copy on another node, to which it can be failed over then.",
            instance=instance.name,
        )
    home, second = (config.nodes[uuid] for uuid in config.nodes_of(instance))
    base = home if second.offline else second
    if base.offline:
        raise Conflict(f"Both nodes of {instance.name} are marked offline.", instance=instance.name)
    is_home = base == home
    await check_target_good(
        cluster,
        instance,
        guest,
        base,
        source=home if is_alive and not is_home else None,
        ignore=False,
    )
    return base


async def plan_pairing(
    cluster: Cluster, instance: Instance, guest: GuestSpec, target: Node, base: Node
) -> Pairing:
    """Decide what is made on ``target``, and promise it.

    Raises:
        NoCapacity, NodeFailure: the target has no room.
    """
    config = cluster.config
    before = config.disks_of(instance)
    (old,) = (config.nodes[n] for n in config.nodes_of(instance) if n != base.uuid)
    check_no_snapshots(instance, before, "given up", on=old)
    await take_space(cluster, promise_of_secondary(instance, before, target), [target])
    nodes, devices = (target.uuid, base.uuid), free_devices(cluster)
    disks = tuple(again_on(disk, nodes, devices, behind=(target.uuid,)) for disk in before)
    moved = replace(instance, primary_node=target.uuid)
    specs = tuple(disk_spec(config, moved, disk) for disk in disks)
    pairing = Pairing(
        instance=moved,
        base=base.ref,
        old=old.ref,
        reaches_old=not old.offline,
        guest=replace(guest, disks=specs),
        disks=disks,
        attach=Handover(do=(*standby(base.ref), *sole(target.ref))),
    )
    cluster.promise(pairing.promise)
    return pairing


def prepare_target(cluster: Cluster, pairing: Pairing, target: NodeRef) -> Iterator[Step]:
    """Create disks on the target, and have it look for the base, before anything stops."""
    guest = pairing.guest
    for index, disk in enumerate(guest.disks):
        yield create_disk(cluster, index, disk, (target,))
    # A step of its own: a target that fails is the last that is seen to when all is undone.
    yield act(
        f"attach the disks of {guest.name} on {target}",
        lambda: hold(cluster, guest, standby(target)),
        undo=lambda: hold(cluster, guest, none(target)),
    )


def part(cluster: Cluster, pairing: Pairing, before: GuestSpec) -> Iterator[Step]:
    """Have the copies that are given up be of no consequence; undone, they count again.

    The good ones have to prove once more that they are: they may have missed something of what was
    written until the guest was stopped.
    """
    yield act(
        f"see that {pairing.base} has all of {before.name}",
        lambda: _check_base_good(cluster, pairing, before),
    )
    if pairing.reaches_old:
        yield act(
            f"detach the disks of {before.name} on {pairing.old}",
            lambda: hold(cluster, before, optional(*none(pairing.old))),
            undo=lambda: hold(cluster, before, optional(*standby(pairing.old))),
        )


async def _check_base_good(cluster: Cluster, pairing: Pairing, before: GuestSpec) -> None:
    """Refuse to go on from copies that may lack something, while there are others.

    Raises:
        Conflict: says what is wrong with them.
    """
    disks, noted = mirrored(before), cluster.config.disks
    reports = await cluster.call(Mirrors, pairing.base).status(disks=disks)
    for index, (disk, report) in enumerate(zip(disks, reports, strict=True)):
        is_behind = pairing.base.uuid in noted[disk.id].behind
        if is_behind or report is None or report.own is not CopyState.UP_TO_DATE:
            wrong = "is behind by now" if is_behind else in_words(report)
            raise Conflict(
                f"The copy of {before.name} on {pairing.base} may lack what was written last: disk "
                f"{index} {wrong}. “gnt-instance activate-disks --wait-for-sync {before.name}” "
                "makes both equal, if the other node is there; then fail it over again.",
                instance=before.name,
            )


def meet(
    cluster: Cluster, pairing: Pairing, target: NodeRef, before: GuestSpec, *, waits: bool
) -> Step:
    """Have the target reach the good copy, or if it ``waits``, have all of it.

    Nothing is written meanwhile, so there is a way back to the former pair until that is so.
    """
    guest, base = pairing.guest, pairing.base

    async def look() -> None:
        await hold(cluster, guest, standby(base, target))
        await (wait_for_sync if waits else connected)(cluster, guest, base)

    return act(
        _copying(pairing, target) if waits else f"have {target} read from {base}",
        look,
        undo=lambda: hold(cluster, before, optional(*standby(base))),
    )


def start_there(
    cluster: Cluster, pairing: Pairing, target: NodeRef, before: GuestSpec, now: float
) -> Iterator[Step]:
    """Have it run on the target, and its copy follow.

    What it writes is on the base from then on, so there is no way back to the former pair.
    """
    guest, base = pairing.guest, pairing.base
    yield _record(pairing, pairing.disks, target, now)
    # It is not stopped because its copy does not follow: the base's is good.
    start = start_guest(cluster, guest, target, pairing.attach, was_running=True)
    yield saying(
        start,
        f"{guest.name} is down, and its data are on {base}: with that node there, “gnt-instance "
        f"startup {guest.name}” starts it on {target}.",
    )
    yield act(_copying(pairing, target), lambda: wait_for_sync(cluster, guest, base))
    yield record(
        f"note that the disks of {guest.name} are up to date on {target}",
        note_copies(tuple(disk.uuid for disk in pairing.disks), now, good=(target.uuid,)),
    )
    yield from _delete_old(cluster, pairing, before)


def start_there_in_sync(
    cluster: Cluster, pairing: Pairing, target: NodeRef, before: GuestSpec, now: float
) -> Iterator[Step]:
    """Have it run on the target, whose copy has all; without the base if that has failed since."""
    disks = tuple(replace(disk, behind=()) for disk in pairing.disks)
    yield _record(pairing, disks, target, now)
    yield from start_again(cluster, pairing.guest, target, pairing.attach, now)
    yield from _delete_old(cluster, pairing, before)


def _copying(pairing: Pairing, target: NodeRef) -> str:
    return f"copy the disks of {pairing.guest.name} from {pairing.base} to {target}"


def _record(pairing: Pairing, disks: tuple[Disk, ...], target: NodeRef, now: float) -> Step:
    def edit(state: State) -> list[Put]:
        primary = set_primary(pairing.instance.uuid, target.uuid, now)(state)
        return [*primary, *put_disks(disks, now)(state)]

    return record(
        f"record that {pairing.guest.name} is on {target}, and mirrored to {pairing.base}",
        edit,
        point_of_no_return=True,
    )


def _delete_old(cluster: Cluster, pairing: Pairing, before: GuestSpec) -> Iterator[Step]:
    if pairing.reaches_old:
        for index, disk in enumerate(before.disks):
            yield delete_old(cluster, index, disk, pairing.old)
