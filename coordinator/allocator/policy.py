"""Instance policy: whether a group allows an instance of this size at all."""

from __future__ import annotations

import operator

from common.model.template import DiskTemplate
from common.record import Record
from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    _Compare = Callable[[int, int], bool]


class Spec(Record):
    """One size of instance; memory and disk in MiB. The order is that of Ganeti's text format."""

    memory_size: int
    cpu_count: int
    disk_size: int
    disk_count: int
    nic_count: int
    spindle_use: int


TEMPLATES = tuple(map(str, DiskTemplate))
"""Disk templates in Ganeti's order."""

_SMALLEST = Spec(
    memory_size=128, cpu_count=1, disk_size=1024, disk_count=1, nic_count=1, spindle_use=1
)


class Bounds(Record):
    """Smallest and largest instance allowed, per quantity."""

    min: Spec = _SMALLEST
    max: Spec = Spec(
        memory_size=32768, cpu_count=8, disk_size=1048576, disk_count=16, nic_count=8,
        spindle_use=12,
    )  # fmt: skip


class InstancePolicy(Record):
    """What a group allows; the defaults are Ganeti's, and the bounds of ours are wider.

    ``minmax`` holds alternatives: an instance has to fit one of them.
    """

    minmax: tuple[Bounds, ...] = (Bounds(),)
    std: Spec = _SMALLEST
    disk_templates: tuple[str, ...] = TEMPLATES
    vcpu_ratio: float = 4.0
    spindle_ratio: float = 32.0


def check_policy(policy: InstancePolicy, demand: Any, *, exclusive: bool = False) -> Reason:
    """Tell why ``policy`` forbids ``demand``, an ``Instance``; ``Reason.NONE`` if it does not.

    One of the alternatives in ``minmax`` has to fit; where none does, the reason is that
    of the first. No alternatives at all allow everything. With ``exclusive`` storage the
    spindles of the disks count instead of the spindle use.
    """
    why = [
        _beyond(bounds.min, demand, operator.lt, exclusive)
        or _beyond(bounds.max, demand, operator.gt, exclusive)
        for bounds in policy.minmax
    ]
    if why and all(why):
        return why[0]
    is_known = demand.template in policy.disk_templates
    return Reason.NONE if is_known else Reason.POLICY_TEMPLATE


def _beyond(bound: Spec, demand: Any, beyond: _Compare, exclusive: bool) -> Reason:
    """The first quantity that is beyond its bound, in hail's order."""
    spindles = demand.disk_spindles if exclusive else demand.spindle_use
    if beyond(demand.memory, bound.memory_size):
        return Reason.POLICY_MEMORY
    if any(beyond(size, bound.disk_size) for size in demand.disks):
        return Reason.POLICY_DISK
    if beyond(demand.vcpus, bound.cpu_count):
        return Reason.POLICY_CPU
    if spindles is None or beyond(spindles, bound.spindle_use):
        return Reason.POLICY_SPINDLES
    if demand.template != "diskless" and beyond(len(demand.disks), bound.disk_count):
        return Reason.POLICY_DISK_COUNT
    return Reason.NONE
