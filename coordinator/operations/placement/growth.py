"""Space that nodes need for what disks of an instance get: larger ones, more, or other copies."""

from collections.abc import Sequence

from msgspec.structs import replace

from common.errors import NoCapacity
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node
from common.names import MiB
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.apart import check_anew
from coordinator.operations.placement.fit import (
    check_answer,
    check_free_space,
    check_mirrors_alike,
)
from coordinator.operations.placement.look import look_for
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.placement.space import find_shortage


async def take_space(
    cluster: Cluster, promise: Promise, nodes: Sequence[Node], *, for_new: bool = False
) -> None:
    """Promise what a planned instance will take, if all these nodes have the space on new reports.

    ``for_new`` tells that some of its disks are new.

    Raises:
        Conflict: new disks cannot be mirrored between these nodes.
        NoCapacity: says what is left.
        NodeFailure: a node does not answer.
    """
    planned = promise.planned
    assert planned is not None
    live = await check_answer(cluster, nodes)
    if for_new and planned.instance.disk_template.traits.is_mirrored:
        check_mirrors_alike(live, nodes)
    look = await look_for(cluster)
    for node in nodes:
        check_free_space(look, node, planned)
    cluster.promise(promise)


async def take_space_beside(
    cluster: Cluster, instance: Instance, disks: tuple[Disk, ...], node: Node
) -> None:
    """Promise the space for other copies of disks on a node that has them, if it is free there.

    Raises:
        Conflict: the storage of the node is exclusive.
        NoCapacity: says what is left.
        NodeFailure: the node does not answer.
    """
    check_anew(cluster.config, node, instance.disk_template, disks)
    await check_answer(cluster, [node])
    look = await look_for(cluster)
    if lacking := find_shortage(look, node, look.taken(disks)):
        raise NoCapacity(
            f"Node {node.name} {lacking} for new copies of {instance.name} beside the old ones.",
            node=node.name,
        )
    cluster.promise(Promise(instance.uuid, node.uuid, beside=disks))


def promise_of_space(planned: PlannedInstance) -> Promise:
    """Return what makes others count with larger, or more, disks of an instance as it will be."""
    return Promise(planned.instance.uuid, planned.instance.primary_node, planned=planned)


def promise_of_secondary(instance: Instance, disks: Sequence[Disk], node: Node) -> Promise:
    """Return what an instance takes of a new secondary node.

    That is disk space; what the node has to keep free for a failover follows from its being one.
    """
    nodes = (instance.primary_node, node.uuid)
    planned = PlannedInstance(instance, tuple(replace(disk, nodes=nodes) for disk in disks))
    return Promise(instance.uuid, node.uuid, MiB(0), planned)
