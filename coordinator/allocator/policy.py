"""Instance policy: whether a group allows an instance of this size at all."""

from __future__ import annotations

import operator

from common.model.template import DiskTemplate
from common.record import Record
from coordinator.allocator.arithmetic import first_failure, where
from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    _Compare = Callable[[Any, Any], Any]


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


def check_policy(policy: InstancePolicy, demand: Any, *, exclusive: bool = False) -> Any:
    """Tell why ``policy`` forbids an instance: the code of a ``Reason``, 0 if it does not.

    One of the alternatives in ``minmax`` has to fit; where none does, the reason is that
    of the first. No alternatives at all allow everything. With ``exclusive`` storage the
    spindles of the disks count instead of the spindle use.

    Args:
        policy: of the group.
        demand: the instance; or several that differ in amounts only, which are arrays then.
        exclusive: whether the node has exclusive storage.
    """
    code, fits = 0, len(policy.minmax) == 0
    for bounds in reversed(policy.minmax):
        too_small = _beyond(bounds.min, demand, operator.lt, exclusive)
        too_large = _beyond(bounds.max, demand, operator.gt, exclusive)
        code = first_failure([*too_small, *too_large])
        fits = fits | (code == 0)
    if demand.template not in policy.disk_templates:
        return where(fits, int(Reason.POLICY_TEMPLATE), code)
    return where(fits, 0, code)


def _beyond(
    bound: Spec, demand: Any, beyond: _Compare, exclusive: bool
) -> list[tuple[Any, Reason]]:
    """Whether each quantity is beyond its bound, in hail's order."""
    spindles = demand.disk_spindles if exclusive else demand.spindle_use
    is_much = spindles is None or beyond(spindles, bound.spindle_use)
    count = len(demand.disks)
    return [
        (beyond(demand.memory, bound.memory_size), Reason.POLICY_MEMORY),
        *((beyond(size, bound.disk_size), Reason.POLICY_DISK) for size in demand.disks),
        (beyond(demand.vcpus, bound.cpu_count), Reason.POLICY_CPU),
        (is_much, Reason.POLICY_SPINDLES),
        (
            demand.template != "diskless" and beyond(count, bound.disk_count),
            Reason.POLICY_DISK_COUNT,
        ),
    ]
