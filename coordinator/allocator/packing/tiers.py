"""How many instances fit when they may be smaller where the first ones do not fit any more."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from common.record import replace
from coordinator.allocator.packing.codes import Failure
from coordinator.allocator.packing.fill import Filled, Filling, Placed, fill, try_sizes
from coordinator.allocator.snapshot import Instance

_MEMORY_STEP = 64  # MiB
_DISK_STEP = 256


_Try = tuple[Instance, Filled, int | None]  # a size, what came of it, and what is left of the limit
# A size that was refused, and why, to what it becomes by shrinking for this until it fits.
_Ways = dict[tuple[Instance, Failure], Instance | None]


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
    """The next size that fits, or None; adds those in between that do not to ``tried``."""
    filling, smaller = tried[-1][1].filling, demand
    worst = _worst(tried[-1][1].failures)
    while True:
        for trial in try_sizes(filling, _shrinking(smaller, worst), keeps_rules=False):
            if trial.fits:
                return trial.demand
            tried.append((trial.demand, Filled(filling, trial.failures), None))
            if _worst(trial.failures) is not worst:
                break
        last, result, _ = tried[-1]
        worst = _worst(result.failures)
        following = shrunk(last, worst)
        if following is None:
            return None
        smaller = following


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
    smaller = shrunk(demand, failure)
    found = None
    if smaller is not None:
        known = smaller, failure
        found = ways[known] if known in ways else _fitting(filling, smaller, failure)
    ways[demand, failure] = found
    return found


def _fitting(filling: Filling, demand: Instance, failure: Failure) -> Instance | None:
    """The first of ever smaller sizes that fits, as long as this failure is what stops them."""
    for trial in try_sizes(filling, (one for one, _ in pairwise(_shrinking(demand, failure)))):
        if trial.fits:
            return trial.demand
        if not trial.failures[failure]:
            break
    return None


def _shrinking(demand: Instance, failure: Failure) -> Iterator[Instance]:
    """An instance, then smaller and smaller ones."""
    smaller: Instance | None = demand
    while smaller is not None:
        yield smaller
        smaller = shrunk(smaller, failure)


def shrunk(demand: Instance, failure: Failure) -> Instance | None:
    """The instance one step smaller in what it failed for; None if it cannot be."""
    match failure:
        case Failure.MEM if demand.memory >= 2 * _MEMORY_STEP:
            return replace(demand, memory=demand.memory - _MEMORY_STEP)
        case Failure.DISK if all(size >= 2 * _DISK_STEP for size in demand.disks):
            disks = tuple(size - _DISK_STEP for size in demand.disks)
            return replace(demand, disks=disks, disk=demand.disk - _DISK_STEP * len(disks))
        case Failure.CPU if demand.vcpus > 1:
            return replace(demand, vcpus=demand.vcpus - 1)
        case Failure.SPINDLES if demand.disk_spindles is not None and demand.disk_spindles > 1:
            return replace(demand, disk_spindles=demand.disk_spindles - 1)
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
