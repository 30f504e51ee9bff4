"""Moving what is reserved: its room is kept elsewhere, and that is all."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from common.errors import Conflict
from common.messages import Order
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.names import MiB, NodeId
from coordinator.disks.kinds import kind_of
from coordinator.operations.addresses import check_connected
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.instance.reserved_disks import take_room
from coordinator.operations.placement.numbers import free_devices
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import backend
from coordinator.operations.step import Step
from coordinator.operations.steps.changes import change
from coordinator.operations.steps.checks import check_takes_instances


class ReservedMove(Order, kw_only=True):
    """A reserved instance and its disks, where its room is kept and where it will be.

    ``target`` is the node that is new to it, or has another part in it; ``memory`` is what it
    takes of its primary node.
    """

    target: NodeRef
    before: Instance
    after: Instance
    disks_before: tuple[Disk, ...]
    disks_after: tuple[Disk, ...]
    memory: MiB
    now: float

    @property
    def promise(self) -> Promise:
        """Return what it takes where it will be."""
        planned = PlannedInstance(self.after, self.disks_after)
        return Promise(self.after.uuid, self.after.primary_node, self.memory, planned)


async def plan_primary(cluster: Cluster, instance: Instance, target: Node) -> ReservedMove:
    """Plan that it is to run on another node, with the same secondary one unless that is it."""
    home, *others = cluster.config.nodes_of(instance)
    rest = [home if node == target.uuid else node for node in others]
    return await _plan(cluster, instance, target, (target.uuid, *rest))


async def plan_secondary(cluster: Cluster, instance: Instance, target: Node) -> ReservedMove:
    """Plan that its second copies are to be on another node."""
    home, second = cluster.config.nodes_of(instance)
    if target.uuid == second:
        raise Conflict(f"{target.name} is the secondary node of {instance.name} already.")
    return await _plan(cluster, instance, target, (home, target.uuid))


def move_reserved(plan: ReservedMove) -> Iterator[Step]:
    """Have its room kept where it will be."""
    yield change(
        f"keep the room of {plan.before.name} on {plan.target}",
        (plan.before, *plan.disks_before),
        (plan.after, *plan.disks_after),
        plan.now,
    )


async def _plan(
    cluster: Cluster, instance: Instance, target: Node, nodes: Sequence[NodeId]
) -> ReservedMove:
    """Plan to keep its room on other nodes, the primary one first; and promise it.

    Raises:
        Conflict: its room is there already, or the target takes no instances.
        NoCapacity: the target has no room.
    """
    config = cluster.config
    if tuple(nodes) == config.nodes_of(instance) or len(set(nodes)) < len(nodes):
        raise Conflict(f"The room of {instance.name} is kept on {target.name} already.")
    check_takes_instances(target)
    check_connected(config, config.nics_of(instance), nodes[0])
    kind = kind_of(instance.disk_template)
    holders = kind.holders(nodes)
    devices, disks = free_devices(cluster), config.disks_of(instance)
    plan = ReservedMove(
        target=target.ref,
        before=instance,
        after=replace(instance, primary_node=nodes[0]),
        disks_before=disks,
        disks_after=tuple(kind.reserved_on(disk, holders, devices) for disk in disks),
        memory=backend(config, instance).maxmem,
        now=cluster.now(),
    )
    await take_room(cluster, plan.promise, [target])
    return plan


def check_copies(instance: Instance) -> None:
    """Refuse to make copies anew of which there is none yet.

    Raises:
        Conflict: says what can be done.
    """
    if instance.forthcoming:
        raise Conflict(
            f"Instance {instance.name} is only reserved, and has no copies that could be made "
            "anew; --new-secondary or --iallocator keeps their room elsewhere.",
            instance=instance.name,
        )
