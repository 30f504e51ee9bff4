"""Putting an instance on nodes and taking it off, for many nodes side by side.

Each function looks at every node on its own: element i of the result is node i with the
instance on it. The order of the checks is hail's, since the first that fails is reported.
"""

from dataclasses import replace

import numpy as np

from coordinator.allocator.accounts import Accounts
from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.picture import Demand
from coordinator.allocator.refusal import Reason

_Check = tuple[Bools, Reason]


def add_primary(
    nodes: Accounts, demand: Demand, *, clashes: Ints, location: Ints, force: bool = False
) -> tuple[Ints, Accounts]:
    """Run an instance on each node.

    Args:
        nodes: the books before.
        demand: the instance.
        clashes: how many of its exclusion tags are taken on each node.
        location: what it adds to each node's location score.
        force: allow everything but using more memory or disk than there is.

    Returns:
        Codes of ``Reason`` per node, and the books after; these are meaningless where the
        node was refused.
    """
    disk, spindles = _local(demand)
    after = replace(
        nodes,
        conflicts=nodes.conflicts + clashes,
        next_memory=nodes.next_memory - demand.memory,
        next_disk=nodes.next_disk - disk,
        next_cpus=nodes.next_cpus + demand.used_vcpus,
        next_spindles=nodes.next_spindles + spindles,
    )
    promised = [] if force else _primary_promises(after, demand)
    if demand.forthcoming:
        return _first_reason(promised, nodes), after
    memory = nodes.memory - demand.used_memory
    after = replace(
        after,
        memory=memory,
        fails_n1=memory <= nodes.reserved,
        disk=nodes.disk - disk,
        cpus=nodes.cpus + demand.used_vcpus,
        spindles=nodes.spindles + spindles,
        primaries=nodes.primaries + 1,
        load_cpu=nodes.load_cpu + demand.load.cpu,
        load_memory=nodes.load_memory + demand.load.memory,
        load_disk=nodes.load_disk + demand.load.disk,
        load_network=nodes.load_network + demand.load.network,
        location=nodes.location + location,
    )
    checks: list[_Check] = [(after.memory <= 0, Reason.MEMORY)]
    if demand.is_local:
        checks.append((after.disk <= 0, Reason.DISK))
    if not force:
        if demand.is_local:
            checks.append((after.spindles > nodes.spindle_limit, Reason.SPINDLES))
        checks += [
            (after.fails_n1 & ~nodes.fails_n1, Reason.MEMORY_N1),
            (_too_many(after.cpus, nodes), Reason.CPU),
            (clashes > 0, Reason.TAGS),
        ]
    return _first_reason(checks + promised, nodes), after


def add_secondary(
    nodes: Accounts, demand: Demand, *, promised: Ints, force: bool = False
) -> tuple[Ints, Accounts]:
    """Keep a copy of an instance's disks on each node.

    Args:
        nodes: the books before.
        demand: the instance, of a template with a secondary node.
        promised: memory that each node already keeps for the instance's primary node.
        force: allow everything but using more disk than there is.

    Returns:
        As ``add_primary``.
    """
    disk, spindles = _local(demand)
    after = replace(
        nodes,
        next_disk=nodes.next_disk - disk,
        next_spindles=nodes.next_spindles + spindles,
    )
    needed = demand.reserved_memory
    soon: list[_Check] = [
        (after.next_disk <= 0, Reason.DISK),
        (after.next_spindles > nodes.spindle_limit, Reason.SPINDLES),
        (needed >= nodes.next_memory, Reason.MEMORY),
    ]
    if demand.forthcoming:
        return _first_reason([] if force else soon, nodes), after
    reserved = np.maximum(nodes.reserved, promised + needed)
    after = replace(
        after,
        reserved=reserved,
        fails_n1=nodes.memory <= reserved,
        disk=nodes.disk - disk,
        spindles=nodes.spindles + spindles,
        secondaries=nodes.secondaries + 1,
        load_disk=nodes.load_disk + demand.load.disk,
    )
    checks: list[_Check] = [(after.disk <= 0, Reason.DISK)]
    if not force:
        checks += [
            (after.spindles > nodes.spindle_limit, Reason.SPINDLES),
            (needed >= nodes.memory, Reason.MEMORY),
            (after.fails_n1 & ~nodes.fails_n1, Reason.MEMORY_N1),
            *soon,
        ]
    return _first_reason(checks, nodes), after


def remove_primary(nodes: Accounts, demand: Demand, *, clashes: Ints, location: Ints) -> Accounts:
    """Take an instance off its primary node.

    ``clashes`` and ``location`` are what ``add_primary`` was given, or would be now.
    """
    disk, spindles = _local(demand)
    after = replace(
        nodes,
        conflicts=nodes.conflicts - clashes,
        next_memory=nodes.next_memory + demand.memory,
        next_disk=nodes.next_disk + disk,
        next_cpus=nodes.next_cpus - demand.used_vcpus,
        next_spindles=nodes.next_spindles - spindles,
    )
    if demand.forthcoming:
        return after
    memory = nodes.memory + demand.used_memory
    return replace(
        after,
        memory=memory,
        fails_n1=memory <= nodes.reserved,
        disk=nodes.disk + disk,
        cpus=nodes.cpus - demand.used_vcpus,
        spindles=nodes.spindles - spindles,
        primaries=nodes.primaries - 1,
        load_cpu=nodes.load_cpu - demand.load.cpu,
        load_memory=nodes.load_memory - demand.load.memory,
        load_disk=nodes.load_disk - demand.load.disk,
        load_network=nodes.load_network - demand.load.network,
        location=nodes.location - location,
    )


def remove_secondary(nodes: Accounts, demand: Demand, *, reserved: Ints) -> Accounts:
    """Drop a real instance's copy; ``reserved`` is what its node then keeps for its peers."""
    disk, spindles = _local(demand)
    return replace(
        nodes,
        reserved=reserved,
        fails_n1=nodes.memory <= reserved,
        disk=nodes.disk + disk,
        spindles=nodes.spindles - spindles,
        secondaries=nodes.secondaries - 1,
        load_disk=nodes.load_disk - demand.load.disk,
        next_disk=nodes.next_disk + disk,
        next_spindles=nodes.next_spindles - spindles,
    )


def _local(demand: Demand) -> tuple[int, int]:
    """Disk space and spindles taken; shared storage takes none of the node's."""
    return (demand.disk, demand.spindle_use) if demand.is_local else (0, 0)


def _too_many(cpus: Ints, nodes: Accounts) -> Bools:
    with np.errstate(divide="ignore", invalid="ignore"):  # a node may report no processors
        return (nodes.cpu_ratio >= 0) & (nodes.cpu_ratio < cpus / nodes.total_cpus)


def _primary_promises(after: Accounts, demand: Demand) -> list[_Check]:
    """The checks that also count forthcoming instances."""
    checks: list[_Check] = [(after.next_memory <= 0, Reason.MEMORY)]
    if demand.is_local:
        checks += [
            (after.next_disk <= 0, Reason.DISK),
            (after.next_spindles > after.spindle_limit, Reason.SPINDLES),
        ]
    return [*checks, (_too_many(after.next_cpus, after), Reason.CPU)]


def _first_reason(checks: list[_Check], nodes: Accounts) -> Ints:
    """The code of the first check that holds, per node; 0 where none does."""
    codes = np.zeros(len(nodes.memory), dtype=np.int64)
    for failed, reason in reversed(checks):
        codes[failed] = reason
    return codes
