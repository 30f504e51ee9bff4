"""Instances put on nodes and taken off, column by column; shapes broadcast, rows are taken too.

The order of the checks is htools', since the first that fails is the one counted. Where a check
fails the resources afterwards mean nothing.
"""

from __future__ import annotations

from coordinator.allocator.arithmetic import first_failure, has_any, maximum, ratio, where
from coordinator.allocator.model.resources import UNKNOWN, Loads
from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from coordinator.allocator.arrays import Bools, Ints
    from coordinator.allocator.model.resources import Demands, NodeResources

    _Check = tuple[Bools, Reason]


def add_primary(
    resources: NodeResources, demands: Demands, *, clashes: Any, location: Any, force: Any
) -> tuple[Any, NodeResources]:
    """Run each instance on its node.

    Args:
        resources: before.
        demands: the instances.
        clashes: how many of its exclusion tags are taken there.
        location: what it adds to the node's location score.
        force: where only lack of memory, disk or spindles counts.

    Returns:
        Codes of ``Reason``, and the resources after.
    """
    one, strict, real, local = resources, force ^ True, demands.count > 0, demands.local
    shared = one.exclusive ^ True
    memory = one.memory - demands.memory
    disk = one.disk - demands.disk
    spindles = one.spindles + demands.spindles * shared
    free_spindles = _taken(one, demands, one.free_spindles, real)
    fails_n1 = where(real, memory <= one.reserved, one.fails_n1)
    cpus = one.cpus + demands.cpus
    next_memory = one.next_memory - demands.next_memory
    next_disk = one.next_disk - demands.next_disk
    next_spindles = one.next_spindles + demands.next_spindles * shared
    next_free = _taken(one, demands, one.next_free_spindles)
    next_cpus = one.next_cpus + demands.next_cpus
    crowded = one.exclusive & local
    checks: list[_Check] = [
        (real & (memory <= 0), Reason.MEMORY),
        (real & local & (disk <= 0), Reason.DISK),
        (real & strict & local & (disk < one.least_disk), Reason.DISK),
        (real & crowded & (free_spindles < 0), Reason.FREE_SPINDLES),
        (real & strict & local & (spindles > one.spindle_limit), Reason.SPINDLES),
        (real & strict & fails_n1 & (one.fails_n1 ^ True), Reason.MEMORY_N1),
        (real & strict & too_many(one, cpus), Reason.CPU),
        (real & strict & (clashes > 0), Reason.TAGS),
        (strict & (next_memory <= 0), Reason.MEMORY),
        (strict & local & ((next_disk <= 0) | (next_disk < one.least_disk)), Reason.DISK),
        (strict & crowded & (next_free < 0), Reason.FREE_SPINDLES),
        (strict & local & (next_spindles > one.spindle_limit), Reason.SPINDLES),
        (strict & too_many(one, next_cpus), Reason.CPU),
    ]
    after = one.changed(
        memory=memory,
        fails_n1=fails_n1,
        disk=disk,
        cpus=cpus,
        spindles=spindles,
        free_spindles=free_spindles,
        primaries=one.primaries + demands.count,
        load=one.load + demands.load,
        conflicts=one.conflicts + clashes,
        location=one.location + location * demands.count,
        next_memory=next_memory,
        next_disk=next_disk,
        next_cpus=next_cpus,
        next_spindles=next_spindles,
        next_free_spindles=next_free,
    )
    return first_failure(checks), after


def add_secondary(
    resources: NodeResources,
    demands: Demands,
    *,
    promised: Any,
    force: Any,
    any_disk: Any = None,
) -> tuple[Any, NodeResources]:
    """Keep a copy of each instance on its node.

    Args:
        resources: before.
        demands: the instances.
        promised: memory that the node already keeps for the instance's primary node.
        force: where only lack of disk or spindles counts.
        any_disk: where not even lack of disk does.
    """
    one, strict, real = resources, force ^ True, demands.count > 0
    shared = one.exclusive ^ True
    disk = one.disk - demands.disk
    spindles = one.spindles + demands.spindles * shared
    free_spindles = _taken(one, demands, one.free_spindles, real)
    reserved = where(real, maximum(one.reserved, promised + demands.needed), one.reserved)
    fails_n1 = where(real, one.memory <= reserved, one.fails_n1)
    next_disk = one.next_disk - demands.next_disk
    next_spindles = one.next_spindles + demands.next_spindles * shared
    next_free = _taken(one, demands, one.next_free_spindles)
    no_disk = disk <= 0 if any_disk is None else (disk <= 0) & (any_disk ^ True)
    checks: list[_Check] = [
        (real & (demands.mirrored ^ True), Reason.DISK),
        (real & no_disk, Reason.DISK),
        (real & strict & (disk < one.least_disk), Reason.DISK),
        (real & one.exclusive & (free_spindles < 0), Reason.FREE_SPINDLES),
        (real & strict & (spindles > one.spindle_limit), Reason.SPINDLES),
        (real & strict & (demands.needed >= one.memory), Reason.MEMORY),
        (real & strict & fails_n1 & (one.fails_n1 ^ True), Reason.MEMORY_N1),
        (strict & (demands.mirrored ^ True), Reason.DISK),
        (strict & ((next_disk <= 0) | (next_disk < one.least_disk)), Reason.DISK),
        (strict & one.exclusive & (next_free < 0), Reason.FREE_SPINDLES),
        (strict & (next_spindles > one.spindle_limit), Reason.SPINDLES),
        (strict & (demands.needed >= one.next_memory), Reason.MEMORY),
    ]
    after = one.changed(
        reserved=reserved,
        fails_n1=fails_n1,
        disk=disk,
        spindles=spindles,
        free_spindles=free_spindles,
        secondaries=one.secondaries + demands.count,
        load=one.load + disk_only(demands.load),
        next_disk=next_disk,
        next_spindles=next_spindles,
        next_free_spindles=next_free,
    )
    return first_failure(checks), after


def remove_primary(
    resources: NodeResources, demands: Demands, *, freed: Any, location: Any
) -> NodeResources:
    """Take each instance off its primary.

    ``freed`` are the exclusion tags that are then there once less than too often, ``location`` what
    it had added to the node's location score.
    """
    one, real = resources, demands.count > 0
    memory = one.memory + demands.memory
    return one.changed(
        memory=memory,
        fails_n1=where(real, memory <= one.reserved, one.fails_n1),
        disk=one.disk + demands.disk,
        cpus=one.cpus - demands.cpus,
        spindles=one.spindles - demands.spindles * (one.exclusive ^ True),
        free_spindles=_given_back(one, demands, one.free_spindles, real),
        primaries=one.primaries - demands.count,
        load=one.load - demands.load,
        conflicts=one.conflicts - freed,
        location=one.location - location * demands.count,
        next_memory=one.next_memory + demands.next_memory,
        next_disk=one.next_disk + demands.next_disk,
        next_cpus=one.next_cpus - demands.next_cpus,
        next_spindles=one.next_spindles - demands.next_spindles * (one.exclusive ^ True),
        next_free_spindles=_given_back(one, demands, one.next_free_spindles),
    )


def remove_secondary(resources: NodeResources, demands: Demands, *, reserved: Any) -> NodeResources:
    """Drop each instance's copy; ``reserved`` is what its node then keeps for its peers."""
    one, real = resources, demands.count > 0
    reserved = where(real, reserved, one.reserved)
    return one.changed(
        reserved=reserved,
        fails_n1=where(real, one.memory <= reserved, one.fails_n1),
        disk=one.disk + demands.disk,
        spindles=one.spindles - demands.spindles * (one.exclusive ^ True),
        free_spindles=_given_back(one, demands, one.free_spindles, real),
        secondaries=one.secondaries - demands.count,
        load=one.load - disk_only(demands.load),
        next_disk=one.next_disk + demands.next_disk,
        next_spindles=one.next_spindles - demands.next_spindles * (one.exclusive ^ True),
        next_free_spindles=_given_back(one, demands, one.next_free_spindles),
    )


def disk_only(load: Any) -> Any:
    """What of a load a secondary has: that of its disk."""
    if isinstance(load, Loads):
        return Loads((0.0, 0.0, load[2], 0.0))
    only = load.copy()
    only[...] = 0.0
    only[2] = load[2]
    return only


def too_many(resources: NodeResources, cpus: Ints) -> Any:
    """Where so many virtual processors break the node's ratio; a node may have none."""
    limit = resources.cpu_ratio
    return (limit >= 0) & (limit < ratio(cpus, resources.total_cpus))


def _taken(
    resources: NodeResources, demands: Demands, free: Ints, counts: Bools | bool = True
) -> Any:
    """Free spindles afterwards; below 0 where the instance does not say what it needs.

    An instance whose disks are elsewhere takes some, too, as with htools; it is not refused.
    """
    if not has_any(resources.exclusive):
        return free * 0
    left = where(demands.disk_spindles == UNKNOWN, UNKNOWN, free - demands.disk_spindles)
    return where(resources.exclusive, where(counts, left, free), 0)


def _given_back(
    resources: NodeResources, demands: Demands, free: Ints, counts: Bools | bool = True
) -> Any:
    if not has_any(resources.exclusive):
        return free * 0
    known = where(demands.disk_spindles == UNKNOWN, 0, demands.disk_spindles)
    return where(resources.exclusive, free + known * counts, 0)
