"""Putting an instance on nodes and taking it off, for many nodes side by side.

Each function looks at every node on its own: element i of the result is node i with the
instance on it. The order of the checks is hail's, since the first that fails is reported.
"""

from dataclasses import replace

import numpy as np

from common.model.disk import DiskTemplate
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
    disk, spindles = _local(nodes, demand)
    after = replace(
        nodes,
        conflicts=nodes.conflicts + clashes,
        next_free_spindles=_fewer(nodes.next_free_spindles, demand),
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
        free_spindles=_fewer(nodes.free_spindles, demand),
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
        checks.append((nodes.exclusive & (after.free_spindles < 0), Reason.FREE_SPINDLES))
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
    nodes: Accounts,
    demand: Demand,
    *,
    promised: Ints,
    force: bool = False,
    ignore_disk: bool = False,
) -> tuple[Ints, Accounts]:
    """Keep a copy of an instance's disks on each node.

    Args:
        nodes: the books before.
        demand: the instance; only a mirrored one has a secondary node.
        promised: memory that each node already keeps for the instance's primary node.
        force: allow everything but using more disk than there is.
        ignore_disk: allow even that, on a node that is offline and lost its disks anyway.

    Returns:
        As ``add_primary``.
    """
    disk, spindles = _local(nodes, demand)
    after = replace(
        nodes,
        next_disk=nodes.next_disk - disk,
        next_spindles=nodes.next_spindles + spindles,
        next_free_spindles=_fewer(nodes.next_free_spindles, demand),
    )
    if demand.template is not DiskTemplate.DRBD:
        return np.full(len(nodes.memory), Reason.DISK, dtype=np.int64), after
    needed = demand.reserved_memory
    soon: list[_Check] = [
        (after.next_disk <= 0, Reason.DISK),
        (nodes.exclusive & (after.next_free_spindles < 0), Reason.FREE_SPINDLES),
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
        free_spindles=_fewer(nodes.free_spindles, demand),
        secondaries=nodes.secondaries + 1,
        load_disk=nodes.load_disk + demand.load.disk,
    )
    checks: list[_Check] = [] if ignore_disk else [(after.disk <= 0, Reason.DISK)]
    checks.append((nodes.exclusive & (after.free_spindles < 0), Reason.FREE_SPINDLES))
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
    disk, spindles = _local(nodes, demand)
    after = replace(
        nodes,
        conflicts=nodes.conflicts - clashes,
        next_free_spindles=_more(nodes.next_free_spindles, demand),
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
        free_spindles=_more(nodes.free_spindles, demand),
        primaries=nodes.primaries - 1,
        load_cpu=nodes.load_cpu - demand.load.cpu,
        load_memory=nodes.load_memory - demand.load.memory,
        load_disk=nodes.load_disk - demand.load.disk,
        load_network=nodes.load_network - demand.load.network,
        location=nodes.location - location,
    )


def remove_secondary(nodes: Accounts, demand: Demand, *, reserved: Ints) -> Accounts:
    """Drop an instance's copy; ``reserved`` is what its node then keeps for its peers."""
    disk, spindles = _local(nodes, demand)
    after = replace(
        nodes,
        next_disk=nodes.next_disk + disk,
        next_spindles=nodes.next_spindles - spindles,
        next_free_spindles=_more(nodes.next_free_spindles, demand),
    )
    if demand.forthcoming:
        return after
    return replace(
        after,
        reserved=reserved,
        fails_n1=nodes.memory <= reserved,
        disk=nodes.disk + disk,
        spindles=nodes.spindles - spindles,
        free_spindles=_more(nodes.free_spindles, demand),
        secondaries=nodes.secondaries - 1,
        load_disk=nodes.load_disk - demand.load.disk,
    )


def _local(nodes: Accounts, demand: Demand) -> tuple[int, Ints]:
    """Disk space and spindle use; shared storage takes none of the node's."""
    if not demand.is_local:
        return 0, np.zeros(len(nodes.exclusive), dtype=np.int64)
    return demand.disk, np.where(nodes.exclusive, 0, demand.spindle_use)


def _fewer(free: Ints, demand: Demand) -> Ints:
    """Free spindles with the instance; too few for sure where its spindles are not known."""
    if demand.disk_spindles is None:
        return np.full_like(free, -1)
    return free - demand.disk_spindles


def _more(free: Ints, demand: Demand) -> Ints:
    return free if demand.disk_spindles is None else free + demand.disk_spindles


def _too_many(cpus: Ints, nodes: Accounts) -> Bools:
    with np.errstate(divide="ignore", invalid="ignore"):  # a node may report no processors
        return (nodes.cpu_ratio >= 0) & (nodes.cpu_ratio < cpus / nodes.total_cpus)


def _primary_promises(after: Accounts, demand: Demand) -> list[_Check]:
    """The checks that also count forthcoming instances."""
    checks: list[_Check] = [(after.next_memory <= 0, Reason.MEMORY)]
    if demand.is_local:
        checks += [
            (after.next_disk <= 0, Reason.DISK),
            (after.exclusive & (after.next_free_spindles < 0), Reason.FREE_SPINDLES),
            (after.next_spindles > after.spindle_limit, Reason.SPINDLES),
        ]
    return [*checks, (_too_many(after.next_cpus, after), Reason.CPU)]


def _first_reason(checks: list[_Check], nodes: Accounts) -> Ints:
    """The code of the first check that holds, per node; 0 where none does."""
    codes = np.zeros(len(nodes.memory), dtype=np.int64)
    for failed, reason in reversed(checks):
        codes[failed] = reason
    return codes
