"""Instances put on nodes and taken off, column by column; shapes broadcast, rows are taken too.

The order of the checks is htools', since the first that fails is the one counted. Where a check
fails the resources afterwards mean nothing.
"""

from __future__ import annotations

from operator import add, sub

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
    one, strict, real = resources, force ^ True, demands.count > 0
    after = change_primary(one, demands, clashes=clashes, location=location, come=True)
    now = real & strict
    checks: list[_Check] = [
        (real & (after.memory <= 0), Reason.MEMORY),
        *_space_checks(after, demands, strict),
        (now & after.fails_n1 & (one.fails_n1 ^ True), Reason.MEMORY_N1),
        (now & too_many(one, after.cpus), Reason.CPU),
        (now & (clashes > 0), Reason.TAGS),
        (strict & (after.next_memory <= 0), Reason.MEMORY),
        *_next_space_checks(after, demands, strict),
        (strict & too_many(one, after.next_cpus), Reason.CPU),
    ]
    return first_failure(checks), after


def change_primary(
    one: NodeResources, demands: Demands, *, clashes: Any, location: Any, come: bool
) -> NodeResources:
    """What each instance changes on its primary as it comes, or goes.

    ``clashes`` are the exclusion tags that are then there more often than once, or were;
    ``location`` is what it adds, or had added, to the node's location score.
    """
    more, less = (add, sub) if come else (sub, add)
    memory = less(one.memory, demands.memory)
    return one.changed(
        **_space(one, demands, come=come),
        memory=memory,
        fails_n1=where(demands.count > 0, memory <= one.reserved, one.fails_n1),
        cpus=more(one.cpus, demands.cpus),
        primaries=more(one.primaries, demands.count),
        load=more(one.load, demands.load),
        conflicts=more(one.conflicts, clashes),
        location=more(one.location, location * demands.count),
        next_memory=less(one.next_memory, demands.next_memory),
        next_cpus=more(one.next_cpus, demands.next_cpus),
    )


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
    reserved = maximum(one.reserved, promised + demands.needed)
    after = change_secondary(one, demands, reserved=reserved, come=True)
    now, unmirrored = real & strict, demands.mirrored ^ True
    checks: list[_Check] = [
        (real & unmirrored, Reason.DISK),
        *_space_checks(after, demands, strict, any_disk),
        (now & (demands.needed >= one.memory), Reason.MEMORY),
        (now & after.fails_n1 & (one.fails_n1 ^ True), Reason.MEMORY_N1),
        (strict & unmirrored, Reason.DISK),
        *_next_space_checks(after, demands, strict),
        (strict & (demands.needed >= one.next_memory), Reason.MEMORY),
    ]
    return first_failure(checks), after


def change_secondary(
    one: NodeResources, demands: Demands, *, reserved: Any, come: bool
) -> NodeResources:
    """What the copy of each instance changes; ``reserved`` is then kept for its node's peers."""
    more, real = add if come else sub, demands.count > 0
    reserved = where(real, reserved, one.reserved)
    return one.changed(
        **_space(one, demands, come=come),
        reserved=reserved,
        fails_n1=where(real, one.memory <= reserved, one.fails_n1),
        secondaries=more(one.secondaries, demands.count),
        load=more(one.load, disk_only(demands.load)),
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


def _space(one: NodeResources, demands: Demands, *, come: bool) -> dict[str, Any]:
    """What disks that come, or go, change on a node; primary or not makes no difference."""
    more, less = (add, sub) if come else (sub, add)
    shared = one.exclusive ^ True
    free, next_free = one.free_spindles * 0, one.next_free_spindles * 0
    if has_any(one.exclusive):
        left = _free_spindles(one, demands, one.free_spindles, come=come)
        free = where(demands.count > 0, left, where(one.exclusive, one.free_spindles, 0))
        next_free = _free_spindles(one, demands, one.next_free_spindles, come=come)
    return {
        "disk": less(one.disk, demands.disk),
        "spindles": more(one.spindles, demands.spindles * shared),
        "free_spindles": free,
        "next_disk": less(one.next_disk, demands.next_disk),
        "next_spindles": more(one.next_spindles, demands.next_spindles * shared),
        "next_free_spindles": next_free,
    }


def _free_spindles(resources: NodeResources, demands: Demands, free: Ints, *, come: bool) -> Any:
    """Free spindles afterwards; below 0 where an instance came that does not say what it needs.

    An instance whose disks are elsewhere takes some, too, as with htools; it is not refused.
    """
    unknown = demands.disk_spindles == UNKNOWN
    left = free - demands.disk_spindles if come else free + demands.disk_spindles
    return where(resources.exclusive, where(unknown, UNKNOWN if come else free, left), 0)


def _space_checks(
    after: NodeResources, demands: Demands, strict: Any, any_disk: Any = None
) -> list[_Check]:
    """Where disks lack space now; ``any_disk`` is as of ``add_secondary``."""
    here = demands.local & (demands.count > 0)
    no_disk = here & (after.disk <= 0)
    return [
        (no_disk if any_disk is None else no_disk & (any_disk ^ True), Reason.DISK),
        (here & strict & (after.disk < after.least_disk), Reason.DISK),
        (here & after.exclusive & (after.free_spindles < 0), Reason.FREE_SPINDLES),
        (here & strict & (after.spindles > after.spindle_limit), Reason.SPINDLES),
    ]


def _next_space_checks(after: NodeResources, demands: Demands, strict: Any) -> list[_Check]:
    """The same with all that is to come, where that counts."""
    here, disk = demands.local & strict, after.next_disk
    return [
        (here & ((disk <= 0) | (disk < after.least_disk)), Reason.DISK),
        (here & after.exclusive & (after.next_free_spindles < 0), Reason.FREE_SPINDLES),
        (here & (after.next_spindles > after.spindle_limit), Reason.SPINDLES),
    ]
