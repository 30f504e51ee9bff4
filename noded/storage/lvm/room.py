"""How much room a pool has; asked often, and for a group found out only when it has changed."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from common.model.backing import LvmBacking
from common.model.pool import Pool
from common.names import MiB
from common.noderpc.facts import StorageReport
from noded.storage.lvm import lvm, names
from noded.storage.lvm.parse import Group, ThinPool
from noded.storage.lvm.refusals import no_group

BACKUPS = Path("/etc/lvm/backup")  # where LVM writes a group's metadata whenever it changes them
KEPT_S = 60.0  # a device can go without the group's being changed
NONE = MiB(0)
NEARLY_FULL = 80.0  # percent of a thin pool; so far LVM extends none by itself


class _Known(NamedTuple):
    stamp: tuple[int, int, int]
    until_s: float
    group: Group


class Rooms:
    """The room in pools of this machine."""

    def __init__(self, backups: Path = BACKUPS) -> None:
        self._backups = backups
        self._known: dict[str, _Known] = {}

    async def of(self, pool: Pool) -> StorageReport:
        """Return how much room a pool has.

        What was found out of a group holds for a while if LVM has not changed it since, by whose
        order ever. A thin pool fills up without that.
        """
        name, thin_pool = names.split(pool)
        group = None if thin_pool else self._recent(name)
        return room_in(pool, group or await self._look(name))

    def without(self, places: Iterable[LvmBacking]) -> Mapping[str, Group] | None:
        """Return the groups of volumes that are to be made, as of the last time they were asked.

        None if that is too long ago, or not enough to go by: something is in one of these places,
        or is to be in a thin pool.
        """
        groups: dict[str, Group] = {}
        for place in places:
            group = self._recent(place.group)
            if group is None or place.name in group.volumes or place.thin_pool:
                return None
            groups[place.group] = group
        return groups

    def _recent(self, name: str) -> Group | None:
        """Return a group as it was found a while ago, if LVM has not changed it since."""
        known = self._known.get(name)
        if known is None or known.stamp != self._stamp(name) or known.until_s <= _now_s():
            return None
        return known.group

    def forget(self, name: str) -> None:
        """Look at a group anew next time: it is being changed, which may leave no stamp."""
        self._known.pop(name, None)

    async def _look(self, name: str) -> Group | None:
        stamp, until_s = self._stamp(name), _now_s() + KEPT_S
        group = (await lvm.look([name])).get(name)
        self.forget(name)
        if group and stamp and not any(each.is_missing for each in group.devices):
            self._known[name] = _Known(stamp, until_s, group)
        return group

    def _stamp(self, group: str) -> tuple[int, int, int] | None:
        with suppress(OSError):
            found = (self._backups / group).stat()
            return found.st_ino, found.st_mtime_ns, found.st_size
        return None


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def room_in(pool: Pool, group: Group | None) -> StorageReport:
    """Return how much room there is in a group, or in a thin pool of it."""
    name, thin_pool = names.split(pool)
    if group is None:
        return _unusable(pool, no_group(name).message)
    if missing := [each.uuid for each in group.devices if each.is_missing]:
        problem = (
            f"The volume group {name} lacks physical volumes (UUID {', '.join(missing)}); bring "
            f"them back, or have it do without them: “gnt-node repair-storage NODE lvm-vg {name}”, "
            "with the name of this node."
        )
        return _unusable(pool, problem, total=group.size)
    if not thin_pool:
        return StorageReport(
            pool=pool, total=group.size, free=group.free, usable=True, spindles=group.spindles
        )
    thin = group.thin_pools.get(thin_pool)
    if thin is None:
        return _unusable(pool, f"The volume group {name} has no thin pool {thin_pool}.")
    return _room_in_thin(pool, thin)


def _room_in_thin(pool: Pool, thin: ThinPool) -> StorageReport:
    if not thin.is_whole:
        problem = f"The thin pool {pool.name} has failed; “lvs -o+lv_health_status” says how."
        return _unusable(pool, problem)
    if not thin.zeroes:
        problem = (
            f"The thin pool {pool.name} would show new disks what former ones have left; "
            f"“lvchange --zero y {pool.name}” has it keep that back."
        )
        return _unusable(pool, problem, total=thin.size)
    if thin.data_percent is None:  # it is not active
        free = MiB(max(0, thin.size - thin.allotted))
        return StorageReport(pool=pool, total=thin.size, free=free, usable=True)
    free, problem = MiB(int(thin.size * (100.0 - thin.data_percent) / 100.0)), ""
    if max(thin.data_percent, thin.metadata_percent) >= NEARLY_FULL:
        problem = (
            f"The thin pool {pool.name} is nearly full (data {thin.data_percent:.0f} %, metadata "
            f"{thin.metadata_percent:.0f} %): guests stop when it is. “lvextend” gives it more."
        )
    return StorageReport(pool=pool, total=thin.size, free=free, usable=True, problem=problem)


def _unusable(pool: Pool, problem: str, *, total: MiB = NONE) -> StorageReport:
    return StorageReport(pool=pool, total=total, free=MiB(0), usable=False, problem=problem)
