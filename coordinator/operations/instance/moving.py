"""What moving an instance live and moving it stopped have in common."""

from common.errors import Conflict, InvalidRequest
from common.model.instance import Instance
from common.model.node import Node
from common.names import NodeId
from coordinator.disks.kinds import kind_of
from coordinator.locks.names import Wanted
from coordinator.operations.addresses import networks_of
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.place import Place, place_of
from coordinator.operations.locking import wanted
from coordinator.operations.placement.allocators import RequestType, allocators_for
from coordinator.operations.placement.choose import place_elsewhere
from coordinator.operations.placement.promises import Promise
from coordinator.operations.specs import backend
from coordinator.operations.steps.checks import check_takes_instances
from coordinator.state.config import Config


def locks_to_move(
    config: Config, instance: Instance, place: Place | None, *, cleanup: bool
) -> Wanted:
    """Return what a move locks: after one that was cut off it may be on any node."""
    target = [place.node.uuid] if place else []
    nodes = config.nodes if cleanup else [*config.nodes_of(instance), *target]
    networks = networks_of(config, instance)
    return wanted(instance=instance.name, nodes=nodes, room=target, networks=networks)


def room_for(config: Config, name: str, place: Place) -> tuple[Promise, ...]:
    """Return what a move takes of the node that was chosen for it."""
    instance = config.find_instance(name)
    if instance is None or not instance.takes_memory:
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
    if targets := _targets(cluster.config, instance):
        return Place(node=cluster.config.nodes[targets[0]].ref)
    allocators = allocators_for(
        cluster.config.cluster, RequestType.RELOCATE, allocator, instead="a target node with -n"
    )
    chosen = await place_elsewhere(cluster, allocators, instance)
    return place_of(chosen.nodes, chosen.allocator)


def check_can_move(
    config: Config, instance: Instance, place: Place, *, anywhere: bool = False
) -> tuple[Node, Node]:
    """Return source and target of a move.

    Raises:
        Conflict: its disks are not there, or the target takes no instances.
        NotFound: the target has left the cluster.
    """
    targets = _targets(config, instance)
    source, node = config.nodes[instance.primary_node], place.find(config)
    if node.uuid == source.uuid:
        raise Conflict(f"Instance {instance.name} is on {node.name} already.")
    if targets is not None and node.uuid not in targets and not anywhere:
        names = " and ".join(config.nodes[uuid].name for uuid in targets)
        raise Conflict(
            f"The disks of {instance.name} are on {source.name} and {names} only; it cannot run on "
            f"{node.name}.",
            instance=instance.name,
        )
    check_takes_instances(node)
    return source, node


def _targets(config: Config, instance: Instance) -> tuple[NodeId, ...] | None:
    """Return the nodes on which it can run instead, with its disks as they are; None: on any.

    Raises:
        Conflict: on none.
    """
    targets = kind_of(instance.disk_template).may_move_to(config.nodes_of(instance))
    if targets == ():
        raise Conflict(
            f"Instance {instance.name} has {instance.disk_template} disks, which are on its node "
            f"only; “gnt-instance move {instance.name}” copies them to another."
        )
    return targets
