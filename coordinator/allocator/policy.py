"""Instance policy: whether a group allows an instance of this size at all."""

from __future__ import annotations

import operator

from common.model.template import TRAITS, DiskTemplate
from common.record import Record
from coordinator.allocator.refusal import Reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


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


QUANTITIES = (
    (Reason.POLICY_MEMORY, "memory_size", "MiB of memory"),
    (Reason.POLICY_DISK, "disk_size", "MiB a disk"),
    (Reason.POLICY_CPU, "cpu_count", "processors"),
    (Reason.POLICY_SPINDLES, "spindle_use", "spindles"),
    (Reason.POLICY_DISK_COUNT, "disk_count", "disks"),
)
"""What is bounded, in hail's order: how one that is beyond is refused, its field, and its unit."""


def asked_amounts(demand: Any, *, exclusive: bool = False) -> tuple[tuple[int | None, ...], ...]:
    """What ``demand`` asks of each of the quantities; None if it does not tell.

    With ``exclusive`` storage the spindles of the disks count instead of the spindle use.
    """
    spindles = demand.disk_spindles if exclusive else demand.spindle_use
    count = (len(demand.disks),) if TRAITS[demand.template].has_disks else ()
    return (demand.memory,), demand.disks, (demand.vcpus,), (spindles,), count


def check_policy(policy: InstancePolicy, demand: Any, *, exclusive: bool = False) -> Reason:
    """Tell why ``policy`` forbids ``demand``, an ``Instance``; ``Reason.NONE`` if it does not.

    One of the alternatives in ``minmax`` has to fit; where none does, the reason is that
    of the first. No alternatives at all allow everything. ``exclusive`` is as of ``asked_amounts``.
    """
    amounts = asked_amounts(demand, exclusive=exclusive)
    why = [
        _beyond(bounds.min, amounts, operator.lt) or _beyond(bounds.max, amounts, operator.gt)
        for bounds in policy.minmax
    ]
    if why and all(why):
        return why[0]
    is_known = demand.template in policy.disk_templates
    return Reason.NONE if is_known else Reason.POLICY_TEMPLATE


def _beyond(
    bound: Spec, amounts: Sequence[Sequence[int | None]], beyond: Callable[[int, int], bool]
) -> Reason:
    """The first quantity that is beyond its bound, or not given."""
    for (reason, field, _), asked in zip(QUANTITIES, amounts, strict=True):
        limit = getattr(bound, field)
        for amount in asked:
            if amount is None or beyond(amount, limit):
                return reason
    return Reason.NONE
