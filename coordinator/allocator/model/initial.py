"""The resources of nodes at the start: sums over what is on each node."""

from __future__ import annotations

from math import floor, isfinite

from coordinator.allocator.model.resources import (
    EVEN_LOAD,
    NO_LOAD,
    UNKNOWN,
    Loads,
    NodeResources,
)
from coordinator.allocator.snapshot import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from coordinator.allocator.model.resources import Demands
    from coordinator.allocator.snapshot import NodeColumns

_LARGEST = (1 << 63) - 1  # hail's numbers have 64 bits, as those of arrays


def missing_memory(nodes: NodeColumns, demands: Demands, primary: Sequence[int]) -> list[int]:
    """Per node: memory that nothing accounts for, in MiB."""
    used = sums(len(nodes.names), demands.memory, primary)
    totals = [int(total) for total in nodes.total_memory]
    if any(abs(total) > _LARGEST for total in totals):
        raise OverflowError("a node's memory does not fit 64 bits")
    each = zip(totals, nodes.own_memory, used, nodes.free_memory, strict=True)
    return [total - own - taken - measured for total, own, taken, measured in each]


def sums(size: int, amounts: Sequence[int], *homes: Sequence[int]) -> list[int]:
    """Amounts of instances summed by node."""
    found = [0] * (size + 1)  # the last one is what is ``NOWHERE``
    for home in homes if any(amounts) else ():
        for node, amount in zip(home, amounts, strict=True):
            found[node] += amount
    return found[:size]


def initial_rows(model: Any) -> list[NodeResources]:
    """The resources of each node of ``model``, a ``ClusterModel``."""
    nodes, demands, size = model.nodes, model.demands, model.size
    primary, secondary = model.primary_of, model.secondary_of
    reserved = [max(held.values(), default=0) for held in model.peers.held]
    cpus = sums(size, demands.cpus, primary)
    spindles = sums(size, demands.spindles, primary, secondary)
    next_cpus, next_spindles = cpus, spindles
    if not all(demands.count):
        next_cpus = sums(size, demands.next_cpus, primary)
        next_spindles = sums(size, demands.next_spindles, primary, secondary)
    coming = sums(size, _less(demands.next_disk, demands.disk), primary, secondary)
    down = sums(size, _less(demands.next_memory, demands.memory), primary)
    primaries = sums(size, demands.count, primary)
    secondaries = sums(size, demands.count, secondary)
    if all(load is EVEN_LOAD or load is NO_LOAD for load in demands.load):
        here = zip(map(float, primaries), map(float, secondaries), strict=True)
        loads = [Loads((one, one, one + other, one)) for one, other in here]
    else:
        loads = _loads(size, demands, primary, secondary)
    if model.snapshot.cpu_loads is not None:
        both = zip(model.snapshot.cpu_loads, loads, strict=True)
        loads = [Loads((cpu, *load[1:])) for cpu, load in both]
    scores = [score * count for score, count in zip(model.location_scores, model.real, strict=True)]
    conflicts, location = model.conflicts, sums(size, scores, primary)
    later = _next_spindles(nodes, demands, primary, secondary)
    fixed = _fixed(nodes, model)
    rows = []
    for at in range(size):
        exclusive, own_cpus = nodes.exclusive[at], nodes.own_cpus[at]
        measured, disk = nodes.free_memory[at], nodes.free_disk[at]
        rows.append(
            NodeResources(
                *fixed[at],
                measured + min(0, model.missing[at]),
                reserved[at],
                measured < reserved[at],
                disk,
                own_cpus + cpus[at],
                0 if exclusive else spindles[at],
                nodes.free_spindles[at] if exclusive else 0,
                primaries[at],
                secondaries[at],
                loads[at],
                conflicts[at],
                location[at],
                measured - down[at],
                disk - coming[at],
                own_cpus + next_cpus[at],
                0 if exclusive else next_spindles[at],
                later[at],
            )
        )
    return rows


def _fixed(nodes: NodeColumns, model: Any) -> list[tuple[float, ...]]:
    """The figures of each node that never change."""
    policies, usable = [each.policy for each in model.snapshot.groups], nodes.usable
    found: list[tuple[float, ...]] = []
    for at, group in enumerate(nodes.group):
        disk, spindles = float(nodes.total_disk[at]), float(nodes.spindles[at])
        exclusive, policy = nodes.exclusive[at], policies[group]
        found.append((
            float(nodes.total_memory[at]),
            spindles if exclusive else disk,
            float(nodes.total_cpus[at]),
            float(nodes.speed[at]),
            policy.vcpu_ratio,
            policy.spindle_ratio * spindles,
            floor(model.least_disk * disk) if isfinite(disk) else 0,
            exclusive,
            not usable[at],
        ))  # fmt: skip
    return found


def _less(later: Sequence[int], now: Sequence[int]) -> list[int]:
    return [one - other for one, other in zip(later, now, strict=True)]


def _next_spindles(
    nodes: NodeColumns, demands: Demands, primary: Sequence[int], secondary: Sequence[int]
) -> list[int]:
    """Free spindles with forthcoming instances; one that does not tell leaves ``UNKNOWN``."""
    free = zip(nodes.exclusive, nodes.free_spindles, strict=True)
    left = [spindles if exclusive else 0 for exclusive, spindles in free]
    for one, count in enumerate(demands.count):
        if not count:
            known = demands.disk_spindles[one]
            for node in (primary[one], secondary[one]):
                if node != NOWHERE and nodes.exclusive[node]:
                    left[node] = UNKNOWN if known == UNKNOWN else left[node] - known
    return left


def _loads(
    size: int, demands: Demands, primary: Sequence[int], secondary: Sequence[int]
) -> list[Loads]:
    """Loads added in the order of the instances; a secondary has disk load only."""
    cpu, memory, disk, network = ([0.0] * size for _ in range(4))
    for load, here, there in zip(demands.load, primary, secondary, strict=True):
        cpu[here] += load[0]
        memory[here] += load[1]
        disk[here] += load[2]
        network[here] += load[3]
        if there != NOWHERE:
            disk[there] += load[2]
    return list(map(Loads, zip(cpu, memory, disk, network, strict=True)))
