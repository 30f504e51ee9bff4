"""Failing a mirrored instance over to a node that has no copy of its disks.

It runs there at once, reading through the network from the node whose copy is good, and gets a copy
of its own while it runs. What the third node has is deleted when that is up to date.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import AdminState, Instance
from common.model.node import Node, NodeRef
from common.noderpc.instances import GuestSpec
from coordinator.disks.drbd import again_on
from coordinator.disks.holding import Handover, none, optional, sole, standby
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.replacing import delete_old
from coordinator.operations.instance.second_copy import check_target_good
from coordinator.operations.placement.growth import promise_of_secondary, take_space
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import disk_spec
from coordinator.operations.step import Step, act, record
from coordinator.operations.steps.disks import create_disk, hold
from coordinator.operations.steps.edits import note_copies, put_disks, set_primary
from coordinator.operations.steps.guests import start_guest
from coordinator.operations.steps.snapshots import check_no_snapshots
from coordinator.operations.steps.syncing import wait_for_sync
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
    """Create disks on the target, before anything stops."""
    for index, disk in enumerate(pairing.guest.disks):
        yield create_disk(cluster, index, disk, (target,))


def start_there(
    cluster: Cluster, pairing: Pairing, target: NodeRef, before: GuestSpec, now: float
) -> Iterator[Step]:
    """Have it run on the target, and its copy follow.

    What it writes is on the base from then on, so there is no way back to the former pair.
    """
    name = pairing.guest.name

    def edit(state: State) -> list[Put]:
        primary = set_primary(pairing.instance.uuid, target.uuid, now)(state)
        return [*primary, *put_disks(pairing.disks, now)(state)]

    if pairing.reaches_old:
        yield act(
            f"detach the disks of {name} on {pairing.old}",
            lambda: hold(cluster, before, optional(*none(pairing.old))),
            undo=lambda: hold(cluster, before, optional(*standby(pairing.old))),
        )
    yield record(
        f"record that {name} is on {target}, and mirrored to {pairing.base}",
        edit,
        point_of_no_return=True,
    )
    # It is not stopped because its copy does not follow: the base's is good.
    yield start_guest(cluster, pairing.guest, target, pairing.attach, was_running=True)
    yield act(
        f"copy the disks of {name} from {pairing.base} to {target}",
        lambda: wait_for_sync(cluster, pairing.guest, pairing.base),
    )
    yield record(
        f"note that the disks of {name} are up to date on {target}",
        note_copies(tuple(disk.uuid for disk in pairing.disks), now, good=(target.uuid,)),
    )
    if pairing.reaches_old:
        for index, disk in enumerate(before.disks):
            yield delete_old(cluster, index, disk, pairing.old)
