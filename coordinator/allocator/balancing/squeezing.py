"""Power: which nodes a cluster can do without, and which it needs back.

A node may be off if all instances, once the cluster is balanced without it, are on nodes that are
on, and every node could take one instance more of a given size. The choices are those of
Debian's hsqueeze; so are the nodes that are off counted among those that need room.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor

import numpy as np

from common.model.template import ON_NO_NODE
from common.record import replace
from coordinator.allocator.balancing.balance import Balance, Move
from coordinator.allocator.balancing.moves import Limits
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import NodeResources, asked_arrays
from coordinator.allocator.model.shift import add_primary
from coordinator.allocator.policy import Spec
from coordinator.allocator.snapshot import Instance, Snapshot

STANDBY_PREFIX = "htools:standby:"
STANDBY_TAG = "htools:standby:auto"


@dataclass(frozen=True, slots=True)
class Squeezed:
    """A cluster with some nodes turned on or off, balanced.

    Attributes:
        cluster: before the moves; only the nodes are marked.
        moves: what the balancing takes.
        resources: afterwards.
        is_safe: whether no instance is left on a node that is off.
    """

    cluster: Snapshot
    moves: tuple[Move, ...]
    resources: NodeResources
    is_safe: bool


def one_more(spec: Spec, factor: float) -> Instance:
    """An instance so many times the size of ``spec``, rounded down, without disks of its own."""
    return Instance(
        name="one-more",
        memory=floor(factor * spec.memory_size),
        disk=0,
        vcpus=floor(factor * spec.cpu_count),
        status="running",
        primary=0,
        template=ON_NO_NODE,
        auto_balance=False,
        spindle_use=floor(factor * spec.spindle_use),
        disk_spindles=0,
    )


def have_room(resources: NodeResources, instance: Instance) -> bool:
    """Whether every node could take the instance, within soft limits too."""
    size = len(resources.offline)
    nothing = np.zeros(size, dtype=np.int64)
    codes, _ = add_primary(
        resources, asked_arrays(instance), clashes=nothing, location=nothing, force=False
    )
    return not codes.any()


def dispensable(cluster: Snapshot) -> list[int]:
    """Nodes that might be turned off: only instances on shared storage; the fullest first."""
    primaries = [0] * len(cluster.nodes)
    is_tied = [not node.is_usable or node.is_master for node in cluster.nodes]
    for instance in cluster.instances:
        if not instance.forthcoming:
            primaries[instance.primary] += 1
            is_tied[instance.primary] |= instance.is_local
            for home in instance.homes[1:]:
                is_tied[home] = True
    return sorted(
        (index for index, tied in enumerate(is_tied) if not tied),
        key=lambda index: -primaries[index],
    )


def on_standby(cluster: Snapshot) -> list[int]:
    """Nodes that are off and tagged to be turned on when they are needed."""
    return [
        index
        for index, node in enumerate(cluster.nodes)
        if not node.is_usable and any(tag.startswith(STANDBY_PREFIX) for tag in node.tags)
    ]


def switch(cluster: Snapshot, nodes: Iterable[int], *, off: bool) -> Squeezed:
    """Turn nodes on or off and balance all groups as one, for as long as anything is gained."""
    some = set(nodes)
    marked = replace(
        cluster,
        nodes=tuple(
            replace(node, offline=off, drained=False) if index in some else node
            for index, node in enumerate(cluster.nodes)
        ),
    )
    balance = Balance(
        ClusterModel(marked),
        np.arange(len(cluster.nodes)),
        Limits(min_gain=0.0, min_gain_limit=0.0),
    )
    moves = tuple(balance.moves())
    state = balance.state
    is_safe = not state.resources.offline[state.primary].any()
    return Squeezed(marked, moves, state.resources, is_safe)


def choose_off(cluster: Snapshot, candidates: Sequence[int], instance: Instance) -> list[int]:
    """Turn off one candidate after the other, the last first, wherever that leaves room."""
    chosen: list[int] = []
    for node in reversed(candidates):
        after = switch(cluster, [node, *chosen], off=True)
        if after.is_safe and have_room(after.resources, instance):
            chosen = [node, *chosen]
    return chosen


def choose_on(cluster: Snapshot, candidates: Sequence[int], instance: Instance) -> list[int] | None:
    """The fewest candidates, taken from the first, that give room; None if all do not."""
    for count in range(len(candidates) + 1):
        after = switch(cluster, candidates[:count], off=False)
        if after.is_safe and have_room(after.resources, instance):
            return list(candidates[:count])
    return None
