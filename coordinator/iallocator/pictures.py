"""From a cluster as read to the picture on which placements are decided."""

from copy import copy

from common.model.instance import AdminState
from common.model.template import DiskTemplate
from common.names import GroupName, InstanceName, MiB, NodeName
from coordinator.allocator.books.ledger import Columns, Ledger
from coordinator.allocator.inventory import NOWHERE, Instance, Inventory, Node
from coordinator.allocator.picture import (
    Demand,
    GroupPicture,
    InstancePicture,
    Load,
    NodePicture,
    Picture,
)
from coordinator.allocator.rows import Rows

_REPORTED = (
    "total_memory", "own_memory", "free_memory", "total_disk", "free_disk", "total_cpus",
    "own_cpus", "spindles", "free_spindles",
)  # fmt: skip


def picture_of(cluster: Inventory) -> Picture:
    """The same cluster; groups are known by their UUID, since names may not be unique.

    Its rows are made as they are looked at.
    """
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
        nodes=Rows(len(cluster.nodes), lambda at: _node(cluster.nodes[at], cluster)),
        instances=Rows(
            len(cluster.instances), lambda at: _instance(cluster.instances[at], cluster)
        ),
        cluster_tags=cluster.tags + cluster.more_tags,
    )


def ledger_of_cluster(cluster: Inventory) -> Ledger:
    """The books of a cluster; what a node that is not live reports does not count."""
    nodes, instances = cluster.columns
    live = [
        bool(not offline or total or free)
        for offline, total, free in zip(
            nodes.offline, nodes.total_memory, nodes.free_memory, strict=True
        )
    ]
    if not all(live):
        nodes = copy(nodes)
        for name in _REPORTED:
            values = zip(getattr(nodes, name), live, strict=True)
            setattr(nodes, name, [value if is_live else 0 for value, is_live in values])
    ledger = Ledger(picture_of(cluster), Columns(nodes, instances))
    if cluster.cpu_loads is not None:
        ledger.accounts.load[0] = cluster.cpu_loads
    return ledger


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
