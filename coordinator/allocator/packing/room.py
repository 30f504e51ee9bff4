"""How many equal instances each node could take, as far as that does not depend on its peers."""

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.shift import too_many
from coordinator.allocator.snapshot import Instance

NO_LIMIT = np.int64(1) << 60


def room_of_singles(resources: NodeResources, demand: Instance) -> Ints:
    """Per node: how many fit that are not mirrored; one that fails N+1 may go on doing so."""
    kept = np.where(resources.fails_n1, np.int64(-1) << 60, resources.reserved)
    spare, used = resources.memory - kept - 1, demand.used_memory
    times = np.maximum(0, spare // used) if used > 0 else (spare >= 0) * NO_LIMIT
    rooms = [times, room_of_primaries(resources, demand), room_of_disks(resources, demand)]
    room: Ints = np.minimum.reduce(rooms)
    return room


def room_of_primaries(resources: NodeResources, demand: Instance) -> Ints:
    """Per node: how many find memory and processors, which only primaries take."""
    room: Ints = np.minimum.reduce(
        [
            _times(resources.memory - 1, demand.used_memory),
            _times(resources.next_memory - 1, demand.memory),
            _processor_times(resources, resources.cpus, demand.used_vcpus),
            _processor_times(resources, resources.next_cpus, demand.used_vcpus),
        ]
    )
    return room


def room_of_disks(resources: NodeResources, demand: Instance) -> Ints:
    """Per node: how many find disk space and spindles, which secondaries take as well."""
    if not demand.is_local:
        return np.full(len(resources.memory), NO_LIMIT)
    b, least, use = resources, np.maximum(1, resources.least_disk), demand.spindle_use
    spindles = demand.disk_spindles
    rooms = [_times(b.disk - least, demand.disk), _times(b.next_disk - least, demand.disk)]
    for free in (b.free_spindles, b.next_free_spindles):
        alone = np.zeros_like(free) if spindles is None else _times(free, spindles)
        rooms.append(np.where(b.exclusive, alone, NO_LIMIT))
    limit = np.where(np.isfinite(b.spindle_limit), np.floor(b.spindle_limit), 1e15)
    for used in (b.spindles, b.next_spindles):
        left = limit.astype(np.int64) - used
        rooms.append(np.where(b.exclusive, _times(left, 0), _times(left, use)))
    room: Ints = np.minimum.reduce(rooms)
    return room


def _times(spare: Ints, amount: int) -> Ints:
    """How often ``amount`` can be taken while ``spare`` does not become negative."""
    if amount <= 0:
        return np.where(spare - amount >= 0, NO_LIMIT, 0)
    return np.maximum(0, spare // amount)


def _processor_times(resources: NodeResources, cpus: Ints, amount: int) -> Ints:
    """How often so many can be added; compared as a ratio, since that is rounded."""
    fits: Bools = ~too_many(resources, cpus + amount)
    if amount <= 0:
        return np.where(fits, NO_LIMIT, 0)
    with np.errstate(invalid="ignore"):
        most = np.nan_to_num(resources.cpu_ratio * resources.total_cpus, posinf=1e15)
    guess = np.maximum(1, (np.minimum(most, 1e15).astype(np.int64) - cpus) // amount)
    times = np.ones_like(guess)
    for count in (np.maximum(1, guess - 1), guess, guess + 1):
        times = np.where(too_many(resources, cpus + count * amount), times, count)
    return np.where(fits, np.where(resources.cpu_ratio < 0, NO_LIMIT, times), 0)
