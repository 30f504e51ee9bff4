"""How many instances fit when they may be smaller where the first ones do not fit any more."""

from collections.abc import Mapping, Sequence

from common.record import replace
from coordinator.allocator.packing.fill import ended, fill, fits, keeps_rules
from coordinator.allocator.packing.filling import Filled, Filling, Placed
from coordinator.allocator.refusal import Failure
from coordinator.allocator.snapshot import Instance

_MEMORY_STEP = 64  # MiB
_DISK_STEP = 256


_Try = tuple[Instance, Filled, int | None]  # a size, what came of it, and what is left of the limit
# By sizes that were refused, and why: how many steps smaller in this they fit.
_Ways = dict[tuple[Instance, Failure], int | None]


def fill_in_tiers(start: Filling, demand: Instance, limit: int | None) -> Filled:
    """Fill; then shrink the instance by what stood most in the way, and go on.

    Where shrinking step by step by the most frequent failure places nothing more, the latest
    size is shrunk by one failure only until it fits, the most frequent first.
    """
    tried: list[_Try] = []
    filling, left, smaller = start, limit, demand
    while True:
        result = fill(filling, smaller, left)
        placed = len(result.filling.placed)
        # As with hspace all that was placed counts against what the last size left of the limit.
        if left is None or left > placed:
            left = None if left is None else left - placed
            tried.append((smaller, result, left))
            following = shrunk(smaller, _worst(result.failures))
            if following is not None and limit is None:
                following = _next_fitting(tried, following)
            if following is not None:
                filling, smaller = result.filling, following
                continue
        another = _another_way(tried, tried[-1][1] if limit is None else result)
        if isinstance(another, Filled):
            return another
        filling, smaller, left = another
        tried.clear()


def _next_fitting(tried: list[_Try], demand: Instance) -> Instance | None:
    """The next size that fits, or None; adds those in between that do not to ``tried``.

    Of sizes that all nodes treat alike only the smallest: the others would become one that fits
    by way of it.
    """
    filling, smaller = tried[-1][1].filling, demand
    while not fits(filling, smaller):
        result = ended(filling, smaller, in_vain=filling.refusals.count(smaller)[None])
        worst = _worst(result.failures)
        last = _last_alike(filling, smaller, worst)
        tried.append((last, result, None))
        following = shrunk(last, worst)
        if following is None:
            return None
        smaller = following
    return smaller


def _another_way(tried: list[_Try], last: Filled) -> Filled | tuple[Filling, Instance, int | None]:
    """What to go on with, or the result if something was placed since, or nothing helps."""
    ways: _Ways = {}  # of one state: all results that are looked at have placed the same
    for size, result, left in reversed(tried):
        if len(last.filling.placed) > len(result.filling.placed):
            break
        fitting = _first_fitting(result, size, ways)
        if fitting is not None:
            return result.filling, fitting, left
        last = result
    return last


def _ranked(failures: Mapping[Failure, int]) -> list[Failure]:
    """The most frequent last, and last of the equals the last."""
    return sorted(failures, key=lambda failure: failures[failure])


def _worst(failures: Mapping[Failure, int]) -> Failure:
    return _ranked(failures)[-1]


def _first_fitting(result: Filled, size: Instance, ways: _Ways) -> Instance | None:
    found = (
        _shrunk_enough(result.filling, size, each, ways)
        for each in reversed(_ranked(result.failures))
        if result.failures[each]
    )
    return next((one for one in found if one is not None), None)


def _shrunk_enough(
    filling: Filling, demand: Instance, failure: Failure, ways: _Ways
) -> Instance | None:
    """The instance, which does not fit, so small that it does, shrunk by one thing only.

    As with hspace it is not shrunk to the very least. What is found is added to ``ways``: larger
    sizes that were refused for the same shrink through this one.
    """
    smaller, steps = shrunk(demand, failure), None
    if smaller is not None:
        known = (smaller, failure)
        steps = ways[known] if known in ways else _steps(filling, smaller, failure)
    found = ways[demand, failure] = None if steps is None else steps + 1
    return None if found is None else shrunk(demand, failure, found)


def _has_own_way(filling: Filling, demand: Instance) -> bool:
    """Whether every amount may count: while nodes are emptied they decide what goes where."""
    return filling.rules.emptied is not None and not demand.is_mirrored


def _steps(filling: Filling, demand: Instance, failure: Failure) -> int | None:
    """How many steps make it fit, as long as this failure is what stops it; None if none do."""
    steps = 0
    while (one := shrunk(demand, failure, steps)) and shrunk(one, failure):
        count = filling.refusals.count(one)
        if count[None] and keeps_rules(filling, one):
            return steps
        if not count[failure]:
            return None
        is_alone = count[None] and _has_own_way(filling, one)
        steps += 1 if is_alone else _steps_alike(filling, one, failure)
    return None


def _steps_alike(filling: Filling, demand: Instance, failure: Failure) -> int:
    """After how many steps it may first come out otherwise."""
    memory, disks = filling.refusals.spare(demand)
    match failure:
        case Failure.MEM:
            return memory // _MEMORY_STEP + 1
        case Failure.DISK:
            return min(disks, default=0) // _DISK_STEP + 1
        case _:
            return 1


def _last_alike(filling: Filling, demand: Instance, failure: Failure) -> Instance:
    """The smallest that comes out like an instance, which it becomes by one thing shrinking."""
    if _has_own_way(filling, demand):
        return demand
    sizes = (
        shrunk(demand, failure, steps)
        for steps in range(_steps_alike(filling, demand, failure) - 1, 0, -1)
    )
    return next((size for size in sizes if size is not None), demand)


def shrunk(demand: Instance, failure: Failure, steps: int = 1) -> Instance | None:
    """The instance so many steps smaller in what it failed for; None if it cannot be."""
    memory, disk = steps * _MEMORY_STEP, steps * _DISK_STEP
    match failure:
        case Failure.MEM if demand.memory >= memory + _MEMORY_STEP:
            return replace(demand, memory=demand.memory - memory)
        case Failure.DISK if all(size >= disk + _DISK_STEP for size in demand.disks):
            disks = tuple(size - disk for size in demand.disks)
            return replace(demand, disks=disks, disk=demand.disk - disk * len(disks))
        case Failure.CPU if demand.vcpus > steps:
            return replace(demand, vcpus=demand.vcpus - steps)
        case Failure.SPINDLES if (demand.disk_spindles or 0) > steps:
            return replace(demand, disk_spindles=(demand.disk_spindles or 0) - steps)
        case _:
            return None


def runs_of(placed: Sequence[Placed]) -> list[tuple[Instance, int]]:
    """Runs of equal instances, with their lengths."""
    runs: list[tuple[Instance, int]] = []
    for one in placed:
        if runs and _size(runs[-1][0]) == _size(one.demand):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((one.demand, 1))
    return runs


def _size(one: Instance) -> tuple[int, int, int, int | None]:
    return one.memory, one.disk, one.vcpus, one.disk_spindles
