"""Whether nodes have the space that an instance's disks are going to take beside what they have."""

from collections.abc import Sequence

from common.model.node import Node
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.fit import check_answer, check_free_space
from coordinator.operations.placement.look import look_for
from coordinator.operations.placement.promises import PlannedInstance, Promise


async def take_space(cluster: Cluster, planned: PlannedInstance, nodes: Sequence[Node]) -> None:
    """Promise an instance the space for larger, or more, disks, if it is free on all its nodes.

    Args:
        cluster: as the job sees it.
        planned: the instance as it will be.
        nodes: on which the disks are.

    Raises:
        NoCapacity: says what is left.
        NodeFailure: a node does not answer.
    """
    await check_answer(cluster, nodes)
    look = await look_for(cluster)
    for node in nodes:
        check_free_space(look, node, planned)
    cluster.promise(promise_of_space(planned))


def promise_of_space(planned: PlannedInstance) -> Promise:
    """Return what makes others count with an instance as it will be."""
    return Promise(planned.instance.uuid, planned.instance.primary_node, planned=planned)
