"""Which instances fit on which nodes, as comparisons of amounts, for all of them at once."""

from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.model.resources import UNKNOWN, Demands, NodeResources
from coordinator.allocator.model.shift import too_many

NO_LIMIT = np.int64(1) << 60


@dataclass(frozen=True, slots=True)
class Checks:
    """What instances ask, beside what nodes have room for.

    Attributes:
        strict, hard: amounts of instances, shape (instances,), to be below those of nodes, shape
            (nodes,), in MiB or spindles; the latter even by force.
        cpus: per instance a row of the table; the table, see ``_cpu_table``. None if secondaries.
        exclusive: whether spindles suffice where storage is exclusive, now and in time; both of
            shape (instances, nodes). None if it is so nowhere.
    """

    strict: list[tuple[Ints, Ints]]
    hard: list[tuple[Ints, Ints]]
    cpus: tuple[Ints, Bools] | None
    exclusive: tuple[Bools, Bools] | None

    def matrix(self, part: slice, strict: Bools, clashes: Ints | None) -> Bools:
        """Row by instance, column by target."""
        ok = self._table(self.strict, part)
        if self.cpus is not None:
            ok &= self.cpus[1][self.cpus[0][part]]
        if clashes is not None:
            ok &= clashes == 0
        if self.exclusive is not None:
            ok &= self.exclusive[0][part] & self.exclusive[1][part]
        if not strict.all():
            lax = self._table(self.hard, part)
            if self.exclusive is not None:
                lax &= self.exclusive[0][part]
            ok = np.where(strict[:, None], ok, lax)
        return ok

    def _table(self, limits: list[tuple[Ints, Ints]], part: slice) -> Bools:
        (amounts, limit), *others = limits
        ok: Bools = amounts[part][:, None] < limit
        for amounts, limit in others:
            ok &= amounts[part][:, None] < limit
        return ok


def checks_of(demands: Demands, resources: NodeResources, *, as_primary: bool) -> Checks:
    """The checks of instances as primaries or as secondaries on each of some nodes."""
    local, real = demands.local, demands.count > 0
    disk = np.where(local & real, demands.disk, -NO_LIMIT)
    soon_disk = np.where(local, demands.next_disk, -NO_LIMIT)
    spindles = np.where(local & real, demands.spindles, -NO_LIMIT)
    soon_spindles = np.where(local, demands.next_spindles, -NO_LIMIT)
    strict = [
        (disk, _disk_room(resources.disk, resources)),
        (soon_disk, _disk_room(resources.next_disk, resources)),
        (spindles, _spindle_room(resources.spindles, resources)),
        (soon_spindles, _spindle_room(resources.next_spindles, resources)),
    ]
    hard = [(disk, resources.disk)]
    cpus = None
    if as_primary:
        memory = np.where(real, demands.memory, -NO_LIMIT)
        kept = np.where(resources.fails_n1, 0, np.maximum(resources.reserved, 0))
        hard.append((memory, resources.memory))
        strict += [
            (memory, resources.memory - kept),
            (demands.next_memory, resources.next_memory),
        ]
        cpus = _cpu_table(demands, resources)
    else:
        needed = np.where(real, demands.needed, -NO_LIMIT)
        strict += [(needed, resources.memory), (demands.needed, resources.next_memory)]
    return Checks(_merged(strict), _merged(hard), cpus, _exclusive(demands, resources))


def _disk_room(disk: Ints, resources: NodeResources) -> Ints:
    room: Ints = np.minimum(disk, disk - resources.least_disk + 1)
    return room


def _spindle_room(spindles: Ints, resources: NodeResources) -> Ints:
    counts = np.isfinite(resources.spindle_limit) & ~resources.exclusive
    limit = np.floor(np.where(counts, resources.spindle_limit, 0)).astype(np.int64)
    room: Ints = np.where(counts, limit - spindles + 1, NO_LIMIT)
    return room


def _merged(limits: list[tuple[Ints, Ints]]) -> list[tuple[Ints, Ints]]:
    """Equal amounts compared once."""
    found: dict[bytes, tuple[Ints, Ints]] = {}
    for amounts, limit in limits:
        key = amounts.tobytes()
        found[key] = amounts, np.minimum(limit, found[key][1]) if key in found else limit
    return list(found.values())


def _cpu_table(demands: Demands, resources: NodeResources) -> tuple[Ints, Bools]:
    """Whether virtual processors suffice, equal amounts compared once.

    Returns:
        Rows of the table, shape (instances,); the table, shape (distinct amounts, nodes).
    """
    kinds = np.stack((demands.cpus, demands.next_cpus, demands.count), axis=1)
    amounts, rows = np.unique(kinds, axis=0, return_inverse=True)
    now, soon, real = amounts[:, :1], amounts[:, 1:2], amounts[:, 2:] > 0
    ok = ~(real & too_many(resources, resources.cpus + now)) & ~too_many(
        resources, resources.next_cpus + soon
    )
    return rows.ravel(), ok


def _exclusive(demands: Demands, resources: NodeResources) -> tuple[Bools, Bools] | None:
    """As ``Checks.exclusive``; counted in spindles."""
    if not resources.exclusive.any():
        return None
    wanted = np.where(demands.disk_spindles == UNKNOWN, NO_LIMIT, demands.disk_spindles)[:, None]
    exempt = ~resources.exclusive | ~demands.local[:, None]
    now = exempt | (demands.count == 0)[:, None] | (wanted <= resources.free_spindles)
    return now, exempt | (wanted <= resources.next_free_spindles)
