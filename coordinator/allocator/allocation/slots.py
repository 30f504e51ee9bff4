"""Whether instances without a mirror all find room, judged by what they take together.

Two ways to count show that none is stuck, whatever the order and the choices. A node has so many
slots for an instance: as many as fit of memory, disk and spindles alike. Whatever comes takes at
most one of those for the largest, so as many slots as there are instances are enough. And to be
closed to the largest a node has to be given a part of what all others take, of memory, disk or
spindles; of each they have one whole to give.

One is stuck for sure if there are fewer slots for the smallest than instances, or if they take
more together than there is.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator.allocator.model.assignment import Assignment
    from coordinator.allocator.model.resources import NodeResources
    from coordinator.allocator.model.state import State
    from coordinator.allocator.snapshot import Instance

# What decides where an instance may be made anew.
_kind = attrgetter("template", "memory", "disks", "vcpus", "spindle_use", "disk_spindles")
_ENDLESS = 1 << 60


class _Limit:
    """Something that each target has to spare, and that each instance takes some of."""

    def __init__(self, spare: Sequence[int], takes: Sequence[int]) -> None:
        self.spare, self.total, self.most, self.least = spare, sum(takes), max(takes), min(takes)

    def slots(self, target: int, size: int) -> int:
        spare = self.spare[target]
        if spare < 0:
            return 0
        return spare // size if size else _ENDLESS

    def part(self, target: int) -> float:
        """What closes a target to the largest, as a part of what all others take."""
        closing, others = self.spare[target] + 1 - self.most, self.total - self.most
        if closing <= 0:
            return 0.0
        return closing / others if others else inf

    def is_short(self, targets: Iterable[int]) -> bool:
        return sum(self.spare[target] for target in targets) < self.total


def all_fit(
    state: State,
    instances: Sequence[Instance],
    source: int,
    targets: Sequence[int],
    *,
    after: Iterable[Assignment],
) -> bool | None:
    """Whether all leave ``source`` for targets as these stand; None if counting does not tell.

    Soft limits do not count. Each of the instances moves as it is or is made anew, ``after``
    others failed over.
    """
    if not instances:
        return True
    rows = [state.row(target) for target in targets]
    if any(one.disk_spindles is None for one in instances) and any(row.exclusive for row in rows):
        return None
    kinds = {_kind(one): one for one in instances}.values()
    allowed = list(zip(*(_allowed(state, one, source, targets) for one in kinds), strict=True))
    come = Counter[int]()
    for resident in after:
        come[resident.secondary] += resident.demand.used_memory
    memory = [row.memory - come[target] for row, target in zip(rows, targets, strict=True)]
    limits = _limits(memory, rows, instances)
    # Only what has its disks on its node is refused for lack of those.
    hard = limits if all(one.is_local for one in instances) else limits[:1]
    slots = {
        at: min(limit.slots(at, limit.least) for limit in hard)
        for at, flags in enumerate(allowed)
        if any(flags)
    }
    some = [at for at, count in slots.items() if count]
    if sum(slots.values()) < len(instances) or any(limit.is_short(some) for limit in hard):
        return False
    common = [at for at, flags in enumerate(allowed) if all(flags)]
    if sum(min(limit.slots(at, limit.most) for limit in limits) for at in common) >= len(instances):
        return True
    closing = [limit for limit in limits if any(limit.part(at) <= 1 for at in common)]
    parts = sum(min((limit.part(at) for limit in closing), default=inf) for at in common)
    return True if parts > len(closing) * (1 + 1e-9) else None


def _allowed(state: State, demand: Instance, source: int, targets: Sequence[int]) -> Sequence[bool]:
    if not demand.is_made_anew:
        return state.model.may_migrate(source, targets)
    return [not code for code in state.model.forbidden(demand, targets)]


def _limits(
    memory: Sequence[int], rows: Sequence[NodeResources], instances: Sequence[Instance]
) -> list[_Limit]:
    """Memory; where disks count, those and spindles, too."""
    limits = [_Limit([free - 1 for free in memory], [one.used_memory for one in instances])]
    if any(one.is_local for one in instances):
        disks = [one.disk if one.is_local else 0 for one in instances]
        limits.append(_Limit([row.disk - 1 for row in rows], disks))
        if any(row.exclusive for row in rows):
            spare = [row.free_spindles if row.exclusive else _ENDLESS for row in rows]
            limits.append(_Limit(spare, [one.disk_spindles or 0 for one in instances]))
    return limits
