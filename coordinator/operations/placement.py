"""Have a node chosen: take the picture of the cluster, ask the allocator, tell the job's log.

The allocator is loaded late: it brings NumPy, which no command needs.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from common.errors import Conflict, GntError, InvalidRequest, NoCapacity
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node
from common.model.parameters import NodeParameters, filled
from common.names import InstanceName, MiB
from common.noderpc.facts import NodeFacts
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.filling import backend
from coordinator.state.config import Config

if TYPE_CHECKING:
    from coordinator.allocator.picture import Demand, NodePicture, Picture
    from coordinator.allocator.request import Placement

Live = Mapping[str, NodeFacts | GntError]


async def place_new(
    cluster: Cluster, allocator: str, instance: Instance, disks: Iterable[Disk]
) -> str:
    """Return the name of the node for a new instance.

    Raises:
        NoCapacity: no node can take it; says how many were refused for what.
    """
    from coordinator.allocator.place import place
    from coordinator.allocator.request import Allocate

    _check_allocator(allocator)
    config = cluster.config
    picture = take_picture(config, await _look(cluster))
    # That every node could be emptied onto others is asked only where there are others.
    usable = sum(node.is_usable for node in picture.nodes)
    request = Allocate(
        instance=_demand(config, instance, tuple(disks)), check_redundancy=usable > 1
    )
    placement = place(picture, request)
    _tell(cluster, allocator, placement)
    return placement.nodes[0]


async def place_elsewhere(cluster: Cluster, allocator: str, instance: Instance) -> str:
    """Return the name of another node for an instance on shared storage.

    Raises:
        NoCapacity: no other node can take it.
    """
    from coordinator.allocator.relocate import relocate
    from coordinator.allocator.request import Relocate

    _check_allocator(allocator)
    picture = take_picture(cluster.config, await _look(cluster))
    placement = relocate(picture, Relocate(instance=InstanceName(instance.name)))
    _tell(cluster, allocator, placement)
    return placement.nodes[0]


def check_policy(config: Config, instance: Instance, disks: Iterable[Disk], node: Node) -> None:
    """Refuse an instance that the policy of the node's group does not allow.

    Raises:
        Conflict: says which quantity is out of bounds.
    """
    from coordinator.allocator.policy import check_policy as find_violation

    group = config.groups[node.group]
    policy = group.ipolicy or config.cluster.ipolicy
    reason = find_violation(policy, _demand(config, instance, tuple(disks)))
    if reason:
        raise Conflict(
            f"The instance policy of group {group.name} does not allow {instance.name}: "
            f"{node.name} {reason.in_words(1)}. Use --ignore-ipolicy to override it."
        )


def take_picture(config: Config, live: Live) -> "Picture":
    """Return what the allocator sees. A node that did not answer counts as offline."""
    from coordinator.allocator.picture import GroupPicture, InstancePicture, Picture

    groups = tuple(
        GroupPicture(
            name=group.name,
            policy=group.ipolicy or config.cluster.ipolicy,
            alloc_policy=group.alloc_policy,
        )
        for group in config.sorted_groups()
    )
    instances = []
    for instance in config.sorted_instances():
        demand = _demand(config, instance, config.disks_of(instance))
        fields = {name: getattr(demand, name) for name in demand.__dataclass_fields__}
        primary = config.nodes[instance.primary_node].name
        instances.append(InstancePicture(**fields, primary=primary))
    return Picture(
        groups=groups,
        nodes=tuple(_node(config, node, live.get(node.uuid)) for node in config.sorted_nodes()),
        instances=tuple(instances),
        cluster_tags=config.cluster.tags,
    )


async def _look(cluster: Cluster) -> Live:
    config = cluster.config
    live = await cluster.facts_of(node for node in config.sorted_nodes() if node.vm_capable)
    for uuid, facts in live.items():
        if isinstance(facts, GntError):
            cluster.log(f"{config.nodes[uuid].name} is left out: {facts}")
    if not any(isinstance(facts, NodeFacts) for facts in live.values()):
        raise NoCapacity("No node answers, so none can be chosen.")
    return live


def _node(config: Config, node: Node, facts: NodeFacts | GntError | None) -> "NodePicture":
    from coordinator.allocator.picture import NodePicture

    group = config.groups[node.group]
    if not isinstance(facts, NodeFacts):
        return NodePicture(
            name=node.name, group=group.name, offline=True, drained=node.drained,
            vm_capable=node.vm_capable,
        )  # fmt: skip
    layers = (config.cluster.ndparams, group.ndparams, node.ndparams)
    parameters = filled(NodeParameters, *layers, what=f"the node parameters of {node.name}")
    return NodePicture(
        name=node.name, group=group.name,
        total_memory=facts.memory_total, reserved_memory=facts.memory_dom0,
        free_memory=facts.memory_free, total_cpus=facts.cpus,
        spindles=parameters.spindle_count, offline=node.offline, drained=node.drained,
        vm_capable=node.vm_capable, tags=frozenset(node.tags),
    )  # fmt: skip


def _demand(config: Config, instance: Instance, disks: tuple[Disk, ...]) -> "Demand":
    from coordinator.allocator.picture import Demand, disk_space

    wants = backend(config, instance)
    sizes = tuple(MiB(disk.size) for disk in disks)
    return Demand(
        name=instance.name, template=instance.disk_template, memory=wants.maxmem,
        vcpus=wants.vcpus, disk=disk_space(instance.disk_template, sizes), disks=sizes,
        spindle_use=wants.spindle_use, state=instance.admin_state,
        tags=frozenset(instance.tags), auto_balance=wants.auto_balance,
    )  # fmt: skip


def _check_allocator(name: str) -> None:
    if name not in ("hail", "."):
        raise InvalidRequest(f"There is no allocator “{name}”; the built-in one is “hail”.")


def _tell(cluster: Cluster, allocator: str, placement: "Placement") -> None:
    """Explain the choice in the job's log."""
    cluster.log(
        f"{allocator} chose {', '.join(placement.nodes)}: cluster score "
        f"{placement.score_before:.6f} -> {placement.score_after:.6f}, "
        f"{placement.considered} looked at"
    )
    if placement.runners_up:
        others = ", ".join(
            f"{'+'.join(choice.nodes)} ({choice.score:.6f})" for choice in placement.runners_up
        )
        cluster.log(f"next best: {others}")
    for node, reason in placement.refused.items():
        cluster.log(f"{node} {reason.in_words(1)}")
