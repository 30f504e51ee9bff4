"""The snapshot for the allocator, from one look at the cluster.

A coordinator decides again and again, so it loads NumPy even where few nodes could do without:
pairs are scored several times faster then. No command needs it: import this file late.
"""

from collections.abc import Iterable

import numpy as np  # noqa: F401 -- its being there has the allocator use it

from common.model.node import Node
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import MiB, NodeId
from common.noderpc.facts import NodeFacts
from coordinator.allocator import snapshot as seen
from coordinator.allocator.snapshot import Snapshot
from coordinator.disks.exclusive import is_exclusive
from coordinator.disks.space import taken_by
from coordinator.disks.volume_groups import pool_in
from coordinator.operations.placement.demands import node_parameters, seen_policy
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.placement.room import Room
from coordinator.state.config import Config


def take_snapshot(room: Room, pool: Pool | None) -> Snapshot:
    """Return what the allocator sees. A node that did not answer counts as offline.

    Groups, nodes and instances are in the order of their names. Disk space is that of ``pool``;
    None: nobody's space is known.
    """
    config = room.config
    groups = config.sorted_groups()
    nodes = config.sorted_nodes()
    group_index = {group.uuid: index for index, group in enumerate(groups)}
    node_index = {node.uuid: index for index, node in enumerate(nodes)}
    placed = [PlannedInstance(each, config.disks_of(each)) for each in config.sorted_instances()]
    if room.planned:
        by_name = {one.instance.name: one for one in (*placed, *room.planned)}
        placed = [by_name[name] for name in sorted(by_name)]
    on: dict[NodeId, list[PlannedInstance]] = {}
    for one in placed:
        for uuid in one.nodes:
            on.setdefault(uuid, []).append(one)
    return Snapshot(
        groups=tuple(
            seen.Group(
                name=group.name,
                uuid=group.uuid,
                tags=group.tags,
                policy=seen_policy(config.policy_of(group)),
                alloc_policy=group.alloc_policy,
                networks=tuple(sorted(group.networks)),
            )
            for group in groups
        ),
        nodes=tuple(
            _node(room, node, group_index[node.group], on.get(node.uuid, ()), pool)
            for node in nodes
        ),
        instances=room.demands.of(
            config,
            placed,
            [tuple(node_index[uuid] for uuid in one.nodes) for one in placed],
            pool,
        ),
        tags=config.cluster.tags,
        policy=seen_policy(config.cluster.ipolicy),
    )


def _node(
    room: Room, node: Node, group: int, placed: Iterable[PlannedInstance], pool: Pool | None
) -> seen.Node:
    facts = room.facts(node)
    if facts is None or node.offline or not node.vm_capable:
        return seen.Node(
            name=node.name,
            group=group,
            offline=True,
            drained=node.drained,
            vm_capable=node.vm_capable,
            tags=node.tags,
        )
    total_disk, free_disk = _disk(room, node, placed, pool)
    exclusive = is_exclusive(room.config, node.uuid)
    spindles, free_spindles = _spindles(room, node, pool) if exclusive else (0, 0)
    if not exclusive:
        spindles = node_parameters(room.config, node).spindle_count
    return seen.Node(
        name=node.name,
        group=group,
        total_memory=facts.memory_total,
        own_memory=_own_memory(room.config, facts),
        free_memory=room.free_memory(node, facts),
        total_disk=total_disk,
        free_disk=free_disk,
        total_cpus=facts.cpus,
        own_cpus=1,
        spindles=spindles,
        free_spindles=free_spindles,
        exclusive=exclusive,
        drained=node.drained,
        vm_capable=node.vm_capable,
        tags=node.tags,
    )


def _own_memory(config: Config, facts: NodeFacts) -> MiB:
    """Return what a node keeps for itself: what it measured, unless the operator says otherwise.

    Ganeti's hail takes 4096 MiB for every KVM node, since Ganeti's nodes do not know.
    """
    if config.cluster.enabled_hypervisors[:1] != ("kvm",):
        return facts.memory_dom0
    fixed = config.cluster.default_iallocator_params.get("static-kvm-node-memory")
    return MiB(int(fixed)) if fixed else facts.memory_dom0


def _disk(
    room: Room, node: Node, placed: Iterable[PlannedInstance], pool: Pool | None
) -> tuple[MiB, MiB]:
    """Return size and free space of a pool."""
    free = room.free_space(node, pool) if pool else None
    if pool is None or free is None:
        return MiB(0), MiB(0)
    return MiB(free + sum(taken_by(each.disks, pool) for each in placed)), free


def _spindles(room: Room, node: Node, pool: Pool | None) -> tuple[int, int]:
    """Return how many physical volumes there are in a volume group, and are left."""
    if pool is None or pool.kind is not PoolKind.VOLUME_GROUP:
        pool = pool_in(room.config.cluster.volume_group_name)
    report = room.report_of(node, pool) if pool else None
    if pool is None or report is None or report.spindles is None:
        return 0, 0
    return report.spindles.total, max(0, room.free_spindles(node, pool) or 0)
