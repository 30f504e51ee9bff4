"""Other disks of what is reserved: room is given back or looked for, and no node does anything."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order
from common.model.cluster import Cluster as ClusterObject
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.nic import Nic
from common.model.node import Node
from common.model.template import DiskTemplate
from common.names import MiB, NodeId
from coordinator.disks.kind import DiskKind
from coordinator.disks.kinds import check_enabled, kind_of
from coordinator.disks.wish import DiskWish
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.devices import DiskRequest
from coordinator.operations.instance.disk_changes import DiskAction, DiskChange, changed_disks
from coordinator.operations.instance.new_disk import new_disks
from coordinator.operations.instance.reserve import reservation_of
from coordinator.operations.placement.apart import check_spindles
from coordinator.operations.placement.fit import check_answer, check_free_memory, check_free_space
from coordinator.operations.placement.look import look_for
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.placement.promises import PlannedInstance, Promise, naming
from coordinator.operations.specs import backend
from coordinator.operations.steps.checks import check_takes_instances
from coordinator.state.config import Config


class ReservedDisks(Order, kw_only=True):
    """The disks of a reserved instance before and after, and the memory it takes meanwhile."""

    before: tuple[Disk, ...]
    after: tuple[Disk, ...]
    memory: MiB

    def in_words(self) -> list[list[Any]]:
        """Return what has changed, as pairs of a name and a value."""
        sizes = [", ".join(str(d.size) for d in disks) for disks in (self.before, self.after)]
        return [["disk.sizes", sizes[1]]] if sizes[0] != sizes[1] else []


async def plan_reserved_disks(
    cluster: Cluster,
    before: Instance,
    after: Instance,
    template: DiskTemplate | None,
    second: str | None,
    changes: Sequence[DiskChange],
    nics: tuple[Nic, ...],
) -> tuple[Instance, ReservedDisks]:
    """Return a reserved instance with other disks, and have others count with what it takes then.

    Args:
        cluster: as the job sees it.
        before: as it is.
        after: as it will be, but for its disks.
        template: how its disks are going to be kept; None: as they are.
        second: the node for second copies, if that is to be another one.
        changes: of its disks, made afterwards.
        nics: as it will have them.

    Raises:
        InvalidRequest, Conflict: it cannot have these.
        NoCapacity: its nodes have not what it takes more.
        NodeFailure: one of them does not answer, and it takes more.
    """
    config, devices = cluster.config, free_devices(cluster)
    present, nodes = config.disks_of(before), config.nodes_of(before)
    disks = present
    if template:
        after = _kept_as(config.cluster, after, template, has_disks=bool(present))
        nodes = _nodes(config, nodes, kind_of(template), second)
        again = [DiskRequest.like(disk, DiskWish()) for disk in present]
        disks = new_disks(cluster, kind_of(template), after.uuid, nodes, again, devices)
    elif second:
        raise InvalidRequest(
            "A node for second copies is given with -t and a template that has some."
        )
    if any(each.action in (DiskAction.ATTACH, DiskAction.DETACH) for each in changes):
        raise InvalidRequest(
            f"Disks of {before.name} are only reserved: they can be added, changed and removed, "
            "and not attached or detached."
        )
    if changes:
        disks = changed_disks(
            cluster, after, changes, present=disks, nodes=nodes, devices=devices
        ).disks
    check_spindles(config, config.nodes[nodes[0]], (d for d in disks if d not in present))
    if after.disk_template.traits.is_mirrored and not disks:
        raise InvalidRequest("What is mirrored has disks: add them in the same order, with --disk.")
    after = replace(after, disks=tuple(disk.uuid for disk in disks))
    had, takes = backend(config, before).maxmem, backend(config, after).maxmem
    # What is given back is given back when that is recorded: until then it may all be as before.
    change = ReservedDisks(before=present, after=disks, memory=max(had, takes))
    promise = promise_of_change(after, change, nics)
    takes_space = any(disk not in present for disk in disks)
    if takes_space or takes > had:
        await take_room(cluster, promise, [config.nodes[uuid] for uuid in nodes])
    else:
        cluster.promise(promise)
    return after, change


def promise_of_change(after: Instance, disks: ReservedDisks, nics: tuple[Nic, ...]) -> Promise:
    """Return what makes others count with a reserved instance as it will be."""
    planned = PlannedInstance(after, disks.after)
    home, port = after.primary_node, after.network_port
    return Promise(after.uuid, home, disks.memory, planned, nics=nics, port=port)


def _kept_as(
    cluster: ClusterObject, instance: Instance, template: DiskTemplate, *, has_disks: bool
) -> Instance:
    reservation, traits = reservation_of(instance), kind_of(template).traits
    check_enabled(cluster, template)
    if template is instance.disk_template and reservation.has_template:
        raise InvalidRequest(f"The disks of {instance.name} are {template} already.")
    if traits.is_adopted:
        raise InvalidRequest(
            "What is there before takes no room that could be kept: it is adopted."
        )
    if has_disks and not traits.has_disks:
        raise InvalidRequest(f"{instance.name} has disks; take them away, or say another template.")
    known = replace(reservation, has_template=True)
    return replace(instance, disk_template=template, reservation=known)


def _nodes(
    config: Config, present: Sequence[NodeId], kind: DiskKind, second: str | None
) -> tuple[NodeId, ...]:
    """Return the nodes of a reserved instance whose disks are going to be of a kind."""
    home, *others = present
    if not kind.traits.is_mirrored:
        if second:
            raise InvalidRequest(f"There are no second copies of {kind.template} disks.")
        return (home,)
    if second:
        node = config.node(second)
        check_takes_instances(node)
        if node.uuid == home or node.group != config.nodes[home].group:
            raise InvalidRequest(
                f"The secondary node has to be another one than {config.nodes[home].name}, and of "
                f"its group."
            )
        others = [node.uuid]
    if not others:
        raise InvalidRequest(f"Name the node for the second copies of {kind.template} disks: -n.")
    return (home, *others)


async def take_room(cluster: Cluster, promise: Promise, nodes: Sequence[Node]) -> None:
    """Look whether nodes have what a reserved instance takes of them more, and promise it all.

    Args:
        cluster: as the job sees it.
        promise: what it takes then, on all its nodes.
        nodes: those that are asked.

    Raises:
        NoCapacity: says what is left.
        NodeFailure: a node does not answer.
    """
    assert promise.planned
    # Nobody else is given the numbers and addresses of its devices while nodes are asked.
    cluster.promise(naming(promise.planned)._replace(nics=promise.nics, port=promise.port))
    await check_answer(cluster, nodes)
    look = await look_for(cluster)
    for node in nodes:
        if node.uuid == promise.node:
            check_free_memory(look, node, promise.memory, promise.planned.instance)
        check_free_space(look, node, promise.planned)
    cluster.promise(promise)
