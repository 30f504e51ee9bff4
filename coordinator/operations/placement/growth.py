"""Whether nodes have the space that an instance's disks are going to take beside what they have."""

from collections.abc import Sequence

from common.errors import NoCapacity
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node
from common.names import NodeId
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.fit import (
    check_answer,
    check_free_space,
    check_mirrors_alike,
)
from coordinator.operations.placement.look import look_for
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.placement.space import find_shortage


async def take_space(cluster: Cluster, planned: PlannedInstance, nodes: Sequence[Node]) -> None:
    """Promise an instance the space for larger, or more, disks, if it is free on all its nodes.

    ``planned`` is the instance as it will be; its disks are on ``nodes``.

    Raises:
        NoCapacity: says what is left.
        NodeFailure: a node does not answer.
    """
    await take(cluster, promise_of_space(planned), nodes)


async def take_space_of_new(
    cluster: Cluster, planned: PlannedInstance, nodes: Sequence[Node]
) -> None:
    """Promise an instance the space as ``take_space`` does, where some of its disks are new.

    Raises:
        Conflict: new disks cannot be mirrored between these nodes.
        NoCapacity, NodeFailure: as ``take_space``.
    """
    if planned.instance.disk_template.traits.is_mirrored:
        check_mirrors_alike(await check_answer(cluster, nodes, space=False), nodes)
    await take_space(cluster, planned, nodes)


async def take(cluster: Cluster, promise: Promise, nodes: Sequence[Node]) -> None:
    """Promise what an instance will take, if all these nodes have the space on new reports.

    Raises:
        NoCapacity, NodeFailure: as ``take_space``.
    """
    assert promise.planned is not None
    await check_answer(cluster, nodes)
    look = await look_for(cluster)
    for node in nodes:
        check_free_space(look, node, promise.planned)
    cluster.promise(promise)


async def take_space_beside(
    cluster: Cluster, instance: Instance, disks: tuple[Disk, ...], node: Node
) -> None:
    """Promise the space for other copies of disks on a node that has them, if it is free there.

    Raises:
        NoCapacity: says what is left.
        NodeFailure: the node does not answer.
    """
    await check_answer(cluster, [node])
    look = await look_for(cluster)
    if lacking := find_shortage(look, node, look.taken(disks)):
        raise NoCapacity(
            f"Node {node.name} {lacking} for new copies of {instance.name} beside the old ones.",
            node=node.name,
        )
    cluster.promise(promise_beside(instance, disks, node.uuid))


def promise_beside(instance: Instance, disks: tuple[Disk, ...], node: NodeId) -> Promise:
    """Return what makes others count with copies that are made beside the present ones."""
    return Promise(instance.uuid, node, beside=disks)


def promise_of_space(planned: PlannedInstance) -> Promise:
    """Return what makes others count with an instance as it will be."""
    return Promise(planned.instance.uuid, planned.instance.primary_node, planned=planned)
