"""From a cluster as read to the picture on which placements are decided."""

from common.model.disk import DiskTemplate
from common.model.instance import AdminState
from common.names import GroupName, InstanceName, MiB, NodeName
from coordinator.allocator.inventory import NOWHERE, Instance, Inventory, Node
from coordinator.allocator.picture import (
    Demand,
    GroupPicture,
    InstancePicture,
    Load,
    NodePicture,
    Picture,
)


def picture_of(cluster: Inventory) -> Picture:
    """The same cluster; groups are known by their UUID, since names may not be unique."""
    return Picture(
        groups=tuple(
            GroupPicture(
                name=GroupName(group.uuid),
                uuid=group.uuid,
                policy=group.policy,
                alloc_policy=group.alloc_policy,
                networks=frozenset(group.networks),
            )
            for group in cluster.groups
        ),
        nodes=tuple(_node(node, cluster) for node in cluster.nodes),
        instances=tuple(_instance(instance, cluster) for instance in cluster.instances),
        cluster_tags=cluster.tags,
    )


def demand_of(instance: Instance) -> Demand:
    """What an instance asks, wherever it is."""
    return Demand(
        name=InstanceName(instance.name),
        template=DiskTemplate(instance.template),
        memory=MiB(instance.memory),
        vcpus=instance.vcpus,
        disk=MiB(instance.disk),
        disks=tuple(map(MiB, instance.disks)),
        spindle_use=instance.spindle_use,
        disk_spindles=instance.disk_spindles,
        state=_state(instance),
        tags=frozenset(instance.tags),
        auto_balance=instance.auto_balance,
        forthcoming=instance.forthcoming,
        load=Load(*instance.load),
    )


def _state(instance: Instance) -> AdminState:
    if instance.status == "ADMIN_offline":
        return AdminState.OFFLINE
    is_up = instance.uses_memory or instance.status in {"running", "ERROR_up"}
    return AdminState.UP if is_up else AdminState.DOWN


def _instance(instance: Instance, cluster: Inventory) -> InstancePicture:
    demand = demand_of(instance)
    nodes = cluster.nodes
    has_secondary = instance.secondary != NOWHERE
    return InstancePicture(
        name=demand.name,
        template=demand.template,
        memory=demand.memory,
        vcpus=demand.vcpus,
        disk=demand.disk,
        disks=demand.disks,
        spindle_use=demand.spindle_use,
        disk_spindles=demand.disk_spindles,
        state=demand.state,
        tags=demand.tags,
        auto_balance=demand.auto_balance,
        forthcoming=demand.forthcoming,
        load=demand.load,
        primary=NodeName(nodes[instance.primary].name),
        secondary=NodeName(nodes[instance.secondary].name) if has_secondary else None,
    )


def _node(node: Node, cluster: Inventory) -> NodePicture:
    is_live = bool(not node.offline or node.total_memory or node.free_memory)
    return NodePicture(
        name=NodeName(node.name),
        group=GroupName(cluster.groups[node.group].uuid),
        total_memory=node.total_memory,
        reserved_memory=node.own_memory,
        free_memory=node.free_memory,
        total_disk=node.total_disk,
        free_disk=node.free_disk,
        total_cpus=node.total_cpus,
        reserved_cpus=node.own_cpus,
        spindles=node.spindles,
        free_spindles=node.free_spindles,
        exclusive_storage=node.exclusive,
        cpu_speed=node.speed,
        offline=node.offline and not is_live,
        drained=node.offline and is_live,
        is_master=node.is_master,
        tags=frozenset(node.tags),
    )
