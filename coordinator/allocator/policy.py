"""Instance policy: whether a group allows an instance of this size at all."""

from __future__ import annotations

import operator

from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from common.model.policy import InstancePolicy, Spec
    from coordinator.allocator.snapshot import Instance

    _Compare = Callable[[int, int], bool]


def check_policy(policy: InstancePolicy, demand: Instance, *, exclusive: bool = False) -> Reason:
    """Tell why ``policy`` forbids the instance, or ``Reason.NONE``.

    One of the alternatives in ``minmax`` has to fit; where none does, the reason is that
    of the first. No alternatives at all allow everything. With ``exclusive`` storage the
    spindles of the disks count instead of the spindle use.
    """
    reason = Reason.NONE
    for bounds in reversed(policy.minmax):
        too_small = _outside(bounds.min, demand, operator.lt, exclusive)
        reason = too_small or _outside(bounds.max, demand, operator.gt, exclusive)
        if not reason:
            break
    if reason:
        return reason
    allowed = demand.template in policy.disk_templates
    return Reason.NONE if allowed else Reason.POLICY_TEMPLATE


def _outside(bound: Spec, demand: Instance, beyond: _Compare, exclusive: bool) -> Reason:
    """The first quantity that is beyond its bound, in hail's order."""
    if beyond(demand.memory, bound.memory_size):
        return Reason.POLICY_MEMORY
    if any(beyond(size, bound.disk_size) for size in demand.disks):
        return Reason.POLICY_DISK
    if beyond(demand.vcpus, bound.cpu_count):
        return Reason.POLICY_CPU
    spindles = demand.disk_spindles if exclusive else demand.spindle_use
    if spindles is None or beyond(spindles, bound.spindle_use):
        return Reason.POLICY_SPINDLES
    counts_disks = demand.template != "diskless"
    if counts_disks and beyond(len(demand.disks), bound.disk_count):
        return Reason.POLICY_DISK_COUNT
    return Reason.NONE
