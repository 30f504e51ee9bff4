"""How many equal instances each node could take, as far as that does not depend on its peers.

Of one node, a row, or of many, as arrays; see ``arithmetic``.
"""

from __future__ import annotations

from functools import reduce

from coordinator.allocator.arithmetic import maximum, minimum, where, whole
from coordinator.allocator.model.shift import too_many

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from coordinator.allocator.model.resources import NodeResources
    from coordinator.allocator.snapshot import Instance

NO_LIMIT = 1 << 60
_MANY = 1e15  # processors, or spindles: more than there can be


def room_of_singles(resources: NodeResources, demand: Instance) -> Any:
    """Per node: how many fit that are not mirrored; one that fails N+1 may go on doing so."""
    kept = where(resources.fails_n1, -NO_LIMIT, resources.reserved)
    spare, used = resources.memory - kept - 1, demand.used_memory
    times = maximum(0, spare // used) if used > 0 else where(spare >= 0, NO_LIMIT, 0)
    rooms = (times, room_of_primaries(resources, demand), room_of_disks(resources, demand))
    return reduce(minimum, rooms)


def room_of_primaries(resources: NodeResources, demand: Instance) -> Any:
    """Per node: how many find memory and processors, which only primaries take."""
    rooms = (
        _times(resources.memory - 1, demand.used_memory),
        _times(resources.next_memory - 1, demand.memory),
        _processor_times(resources, resources.cpus, demand.used_vcpus),
        _processor_times(resources, resources.next_cpus, demand.used_vcpus),
    )
    return reduce(minimum, rooms)


def room_of_disks(resources: NodeResources, demand: Instance) -> Any:
    """Per node: how many find disk space and spindles, which secondaries take as well."""
    b, use, spindles = resources, demand.spindle_use, demand.disk_spindles
    if not demand.is_local:
        return b.disk * 0 + NO_LIMIT
    least = maximum(1, b.least_disk)
    rooms = [_times(b.disk - least, demand.disk), _times(b.next_disk - least, demand.disk)]
    for free in (b.free_spindles, b.next_free_spindles):
        alone = free * 0 if spindles is None else _times(free, spindles)
        rooms.append(where(b.exclusive, alone, NO_LIMIT))
    limit = whole(b.spindle_limit, most=_MANY, unknown=_MANY)
    rooms += [
        where(b.exclusive, _times(limit - used, 0), _times(limit - used, use))
        for used in (b.spindles, b.next_spindles)
    ]
    return reduce(minimum, rooms)


def _times(spare: Any, amount: int) -> Any:
    """How often ``amount`` can be taken while ``spare`` does not become negative."""
    if amount <= 0:
        return where(spare - amount >= 0, NO_LIMIT, 0)
    return maximum(0, spare // amount)


def _processor_times(resources: NodeResources, cpus: Any, amount: int) -> Any:
    """How often so many can be added; compared as a ratio, since that is rounded."""
    fits = too_many(resources, cpus + amount) ^ True
    if amount <= 0:
        return where(fits, NO_LIMIT, 0)
    most = whole(resources.cpu_ratio * resources.total_cpus, most=_MANY, unknown=0.0)
    guess = maximum(1, (most - cpus) // amount)
    times = guess * 0 + 1
    for count in (maximum(1, guess - 1), guess, guess + 1):
        times = where(too_many(resources, cpus + count * amount), times, count)
    return where(fits, where(resources.cpu_ratio < 0, NO_LIMIT, times), 0)
