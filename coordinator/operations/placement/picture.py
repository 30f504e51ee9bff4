"""The picture for the allocator, from one look at the cluster.

The allocator brings NumPy, which no command needs: import this file late.
"""

import operator
from collections.abc import Iterable

from common.model.disk import Disk
from common.model.instance import Instance, nodes_of
from common.model.node import Node
from common.model.parameters import Layer, NodeParameters, settled
from common.names import InstanceId, MiB, NodeId
from common.noderpc.facts import NodeFacts
from coordinator.allocator.picture import (
    Demand,
    GroupPicture,
    InstancePicture,
    NodePicture,
    Picture,
    disk_space,
)
from coordinator.disks.kinds import enabled_kinds
from coordinator.disks.space import taken_by
from coordinator.operations.filling import backend
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import Newcomer
from coordinator.state.config import Config


def take_picture(look: Look) -> Picture:
    """Return what the allocator sees. A node that did not answer counts as offline.

    Groups, nodes and instances are in the order of their names.
    """
    config = look.config
    groups = tuple(
        GroupPicture(
            name=group.name,
            uuid=group.uuid,
            policy=group.ipolicy or config.cluster.ipolicy,
            alloc_policy=group.alloc_policy,
        )
        for group in config.sorted_groups()
    )
    placed = [Newcomer(each, config.disks_of(each)) for each in config.sorted_instances()]
    if look.newcomers:
        placed = sorted([*placed, *look.newcomers], key=lambda one: one.instance.name)
    on: dict[NodeId, list[Newcomer]] = {}
    for one in placed:
        for uuid in nodes_of(*one):
            on.setdefault(uuid, []).append(one)
    return Picture(
        groups=groups,
        nodes=tuple(_node(look, node, on.get(node.uuid, ())) for node in config.sorted_nodes()),
        instances=_DEMANDS.of(config, placed),
        cluster_tags=config.cluster.tags,
    )


def demand_of(config: Config, instance: Instance, disks: tuple[Disk, ...]) -> Demand:
    """Return what an instance asks, wherever it is."""
    wants = backend(config, instance)
    sizes = tuple(MiB(disk.size) for disk in disks)
    return Demand(
        name=instance.name, template=instance.disk_template, memory=wants.maxmem,
        vcpus=wants.vcpus, disk=disk_space(instance.disk_template, sizes), disks=sizes,
        spindle_use=wants.spindle_use, disk_spindles=None if disks else 0,
        state=instance.admin_state, tags=frozenset(instance.tags),
        auto_balance=wants.auto_balance,
    )  # fmt: skip


def node_parameters(config: Config, node: Node) -> NodeParameters:
    """Return the filled ``ndparams`` of a node."""
    layers = (config.cluster.ndparams, config.groups[node.group].ndparams, node.ndparams)
    return settled(NodeParameters, *layers)


class _Demands:
    """Instances as the allocator sees them, kept as long as they do not change.

    Reading their parameters is most of the work of taking a picture.
    """

    def __init__(self) -> None:
        self._layer: Layer = {}  # the cluster's ``beparams``
        self._known: dict[InstanceId, tuple[Newcomer, InstancePicture]] = {}

    def of(self, config: Config, placed: Iterable[Newcomer]) -> tuple[InstancePicture, ...]:
        if config.cluster.beparams is not self._layer:
            self._layer, self._known = config.cluster.beparams, {}
        known = {one.instance.uuid: (one, self._picture(config, one)) for one in placed}
        self._known = known
        return tuple(picture for _, picture in known.values())

    def _picture(self, config: Config, one: Newcomer) -> InstancePicture:
        instance, disks = one
        primary, *others = (config.nodes[uuid].name for uuid in nodes_of(instance, disks))
        secondary = others[0] if others else None
        if instance.uuid in self._known:
            before, picture = self._known[instance.uuid]
            same_names = (picture.primary, picture.secondary) == (primary, secondary)
            same_disks = all(map(operator.is_, before.disks, disks))
            if before.instance is instance and same_disks and same_names:
                return picture
        demand = demand_of(config, instance, disks)
        fields = {name: getattr(demand, name) for name in demand.__dataclass_fields__}
        return InstancePicture(**fields, primary=primary, secondary=secondary)


_DEMANDS = _Demands()


def _node(look: Look, node: Node, placed: Iterable[Newcomer]) -> NodePicture:
    group = look.config.groups[node.group].name
    facts = look.facts(node)
    if facts is None or not node.vm_capable:
        return NodePicture(
            name=node.name, group=group, offline=True, drained=node.drained,
            vm_capable=node.vm_capable, tags=frozenset(node.tags),
        )  # fmt: skip
    total_disk, free_disk = _disk(look, node, facts, placed)
    return NodePicture(
        name=node.name, group=group,
        total_memory=facts.memory_total, reserved_memory=_own_memory(look.config, facts),
        free_memory=look.free_memory(node, facts),
        total_disk=total_disk, free_disk=free_disk, total_cpus=facts.cpus,
        spindles=node_parameters(look.config, node).spindle_count,
        offline=node.offline, drained=node.drained, vm_capable=node.vm_capable,
        tags=frozenset(node.tags),
    )  # fmt: skip


def _own_memory(config: Config, facts: NodeFacts) -> MiB:
    """Return what a node keeps for itself: what it measured, unless the operator says otherwise.

    Ganeti's hail takes 4096 MiB for every KVM node, since Ganeti's nodes do not know.
    """
    if config.cluster.enabled_hypervisors[:1] != ("kvm",):
        return facts.memory_dom0
    fixed = config.cluster.default_iallocator_params.get("static-kvm-node-memory")
    return MiB(int(fixed)) if fixed else facts.memory_dom0


def _disk(look: Look, node: Node, facts: NodeFacts, placed: Iterable[Newcomer]) -> tuple[MiB, MiB]:
    """Return size and free space of where the preferred template keeps its disks."""
    for kind in enabled_kinds(look.config.cluster):
        pool = kind.pool(look.config.cluster)
        free = look.free_space(node, facts, pool)
        if pool is not None and free is not None:
            return MiB(free + sum(taken_by(each.disks, pool) for each in placed)), free
    return MiB(0), MiB(0)
