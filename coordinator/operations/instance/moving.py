"""What moving an instance live and moving it stopped have in common."""

from common.errors import Conflict, InvalidRequest
from common.model.instance import AdminState, Instance
from common.model.node import Node
from common.model.template import DiskTemplate
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.place import Place
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.choose import place_elsewhere
from coordinator.operations.placement.promises import Promise
from coordinator.operations.specs import backend
from coordinator.operations.steps.checks import check_takes_instances
from coordinator.state.config import Config

MOVABLE = frozenset({DiskTemplate.SHAREDFILE, DiskTemplate.DISKLESS})
"""Templates whose disks are on every node already."""


def room_for(config: Config, name: str, place: Place) -> tuple[Promise, ...]:
    """Return what a move takes of the node that was chosen for it."""
    instance = config.find_instance(name)
    if instance is None or instance.admin_state is not AdminState.UP:
        return ()
    return (Promise(instance.uuid, place.node.uuid, backend(config, instance).maxmem),)


async def choose_target(
    cluster: Cluster, instance: Instance, target: str | None, allocator: str | None
) -> Place:
    """Return the node to move to: the one named, or one that the allocator chooses."""
    if target and allocator:
        raise InvalidRequest("Name a target node or an allocator, not both.")
    if target:
        return Place(node=cluster.config.node(target).ref)
    _check_template(instance)
    allocators = allocators_for(
        cluster.config.cluster, RequestType.RELOCATE, allocator, instead="a target node with -n"
    )
    by, node = await place_elsewhere(cluster, allocators, instance)
    return Place(node=cluster.config.node(node).ref, allocator=by)


def check_can_move(config: Config, instance: Instance, place: Place) -> tuple[Node, Node]:
    """Return source and target of a move.

    Raises:
        Conflict: its disks stay where they are, or the target takes no instances.
        NotFound: the target has left the cluster.
    """
    _check_template(instance)
    source, node = config.nodes[instance.primary_node], place.find(config)
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
