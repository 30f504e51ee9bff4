"""What a node that was away still has of guests that went on elsewhere."""

from common.errors import GntError
from common.model.node import Node
from common.names import InstanceId, InstanceName
from common.noderpc.disks import Disks
from common.noderpc.instances import GuestReport, GuestState, Instances
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.specs import disk_spec
from coordinator.operations.step import Step, act


def clear_remnants(cluster: Cluster, node: Node) -> Step:
    """Clear away directories, taps and attached disks of guests that ended and belong elsewhere.

    What has a process is for an operator to judge; ``gnt-cluster verify`` names it. The node comes
    back even if this fails.
    """

    async def clear() -> None:
        instances = cluster.call(Instances, node)
        try:
            for guest in await instances.guests():
                if _is_remnant(cluster, node, guest):
                    await instances.ensure_no_shell(instance=guest.id)
                    await _detach(cluster, node, guest.id)
                    cluster.log(f"Cleared away what was left of {_name(cluster, guest)}.")
        except GntError as error:
            cluster.log(
                f"What is left on {node.name} of guests that are elsewhere now could not be "
                f"cleared away: {error} “gnt-cluster verify” names it."
            )

    return act(f"clear away what is left of guests on {node.name}", clear)


async def _detach(cluster: Cluster, node: Node, guest: InstanceId) -> None:
    config, instance = cluster.config, cluster.config.instances.get(guest)
    if instance is not None and instance.disks:
        disks = tuple(disk_spec(config, instance, disk) for disk in config.disks_of(instance))
        await cluster.call(Disks, node).detach(disks=disks)


def _is_remnant(cluster: Cluster, node: Node, guest: GuestReport) -> bool:
    if guest.state is not GuestState.STOPPED:
        return False
    instance = cluster.config.instances.get(guest.id)
    return instance is None or node.uuid not in (instance.primary_node, *instance.maybe_on)


def _name(cluster: Cluster, guest: GuestReport) -> InstanceName | InstanceId:
    """Return the name by which we know it: what a node says of that goes into no message."""
    instance = cluster.config.instances.get(guest.id)
    return instance.name if instance else guest.id
