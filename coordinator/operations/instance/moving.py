"""What moving an instance live and moving it stopped have in common."""

from common.errors import Conflict, InvalidRequest
from common.model.disk import DiskTemplate
from common.model.instance import Instance
from common.model.node import Node
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement import place_elsewhere
from coordinator.operations.steps.checks import check_takes_instances
from coordinator.state.config import Config

MOVABLE = frozenset({DiskTemplate.SHAREDFILE, DiskTemplate.DISKLESS})
"""Templates whose disks are on every node already."""


async def choose_target(
    cluster: Cluster, instance: Instance, target: str | None, allocator: str | None
) -> str:
    """Return the node to move to: the one named, or one that the allocator chooses."""
    if target and allocator:
        raise InvalidRequest("Name a target node or an allocator, not both.")
    if target:
        return target
    _check_template(instance)
    allocator = allocator or cluster.config.cluster.default_iallocator
    if not allocator:
        raise InvalidRequest("Name a target node with -n, or an allocator with -I.")
    return await place_elsewhere(cluster, allocator, instance)


def check_can_move(config: Config, instance: Instance, target: str) -> tuple[Node, Node]:
    """Return source and target of a move.

    Raises:
        Conflict: its disks stay where they are, or the target takes no instances.
    """
    _check_template(instance)
    source, node = config.nodes[instance.primary_node], config.node(target)
    if node.uuid == source.uuid:
        raise Conflict(f"Instance {instance.name} is on {node.name} already.")
    check_takes_instances(node)
    return source, node


def _check_template(instance: Instance) -> None:
    if instance.disk_template not in MOVABLE:
        raise Conflict(
            f"Instance {instance.name} has {instance.disk_template} disks, which are on its "
            "node only; it can be moved by exporting it."
        )
