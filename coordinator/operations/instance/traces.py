"""Where an instance's guest is, and where only its shells are."""

from typing import NamedTuple

from common.errors import Conflict, GntError, NodeFailure
from common.model.instance import Instance
from common.model.node import Node
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.checks import is_alive


class Traces(NamedTuple):
    """What a migration that was cut off may have left."""

    running: Node | None
    shells: tuple[Node, ...]  # that wait for memory in vain, or whose memory has left


async def find_traces(cluster: Cluster, instance: Instance) -> Traces:
    """Look for an instance's guest on all nodes.

    Raises:
        NodeFailure: a node does not answer, and the guest may be there.
        Conflict: it runs on several nodes.
    """
    hosts = [n for n in cluster.config.sorted_nodes() if n.vm_capable and not n.offline]
    answers = await cluster.each(
        {node.uuid: cluster.instances(node.uuid).guests() for node in hosts}
    )
    running: list[Node] = []
    shells: list[Node] = []
    for node in hosts:
        guests = answers[node.uuid]
        if isinstance(guests, GntError):
            raise NodeFailure(
                f"{instance.name} may be on {node.name}, which cannot be asked: {guests} If the "
                "node is dead, mark it offline first.",
                node=node.name,
            ) from guests
        for guest in guests:
            if guest.id == instance.uuid:
                (running if is_alive(guest) else shells).append(node)
    if len(running) > 1:
        raise Conflict(
            f"{instance.name} runs on {' and '.join(node.name for node in running)} at once, and "
            "its disks are in danger: kill all but one of its processes by hand, now.",
            nodes=[node.name for node in running],
        )
    return Traces(running[0] if running else None, tuple(shells))
