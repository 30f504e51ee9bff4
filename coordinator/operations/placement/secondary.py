"""Another secondary node for a mirrored instance: which, and what is promised of it."""

from collections.abc import Sequence

from msgspec.structs import replace

from common.errors import NoCapacity
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node
from common.names import MiB, NodeName
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.built_in import misses
from coordinator.operations.placement.growth import take
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.placement.space import nodes_but, shortages


def choose_secondary(look: Look, instance: Instance, disks: Sequence[Disk]) -> tuple[NodeName, ...]:
    """Have the built-in allocator choose one.

    Raises:
        NoCapacity: no other node of the primary one's group can be it.
    """
    from coordinator.allocator.allocation.why_not import why_not
    from coordinator.allocator.model.cluster_model import model_of
    from coordinator.iallocator.answers import Options, Refused
    from coordinator.iallocator.protocol import solve
    from coordinator.iallocator.requests import RelocateOne

    snapshot = look.snapshot
    index = [each.name for each in snapshot.instances].index(instance.name)
    leaving = snapshot.instances[index].secondary
    lacking = shortages(look, disks)
    request = RelocateOne(index, 1, (leaving,), nodes_but(look, lacking))
    try:
        found = solve(snapshot, request, Options())
    except Refused as error:
        group = look.config.groups[look.config.nodes[instance.primary_node].group]
        present = look.config.nodes_of(instance)
        others = {
            node.name
            for node in look.config.nodes.values()
            if node.group == group.uuid and node.uuid not in present
        }
        missing = {name: miss for name, miss in misses(lacking).items() if name in others}
        subject = f"No other node of group {group.name} can be the secondary one of {instance.name}"
        raise NoCapacity(
            why_not(
                subject,
                model_of(snapshot),
                snapshot.instances[index],
                error.refused,
                missing=missing,
            )
        ) from error
    return tuple(found.result)


async def take_secondary(
    cluster: Cluster, instance: Instance, disks: Sequence[Disk], node: Node
) -> None:
    """Check on a new report that a node can be the secondary one, and promise that it will.

    Raises:
        NoCapacity: says what is missing.
        NodeFailure: it does not answer.
    """
    await take(cluster, promise_of_secondary(instance, disks, node), [node])


def promise_of_secondary(instance: Instance, disks: Sequence[Disk], node: Node) -> Promise:
    """Return what an instance takes of a new secondary node.

    That is disk space; what the node has to keep free for a failover follows from its being one.
    """
    nodes = (instance.primary_node, node.uuid)
    planned = PlannedInstance(instance, tuple(replace(disk, nodes=nodes) for disk in disks))
    return Promise(instance.uuid, node.uuid, MiB(0), planned)
