"""Logical volumes that exist in memory only, as strict as those of LVM."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from msgspec.structs import replace as replace_struct

from common.model.pool import Pool
from common.names import DiskId, MiB
from common.noderpc.disks import Unfinished
from common.noderpc.facts import StorageReport
from noded.storage.lvm import names
from noded.storage.lvm.adopting import check_adoptable, check_name, is_adopted
from noded.storage.lvm.device import mapper_path
from noded.storage.lvm.exclusive import devices_to_grow_on, kept_on
from noded.storage.lvm.fake_group import FakeGroup, extents
from noded.storage.lvm.placing import lay_out
from noded.storage.lvm.refusals import (
    LOST,
    in_use,
    no_group,
    no_space,
    no_space_to_grow,
    not_ours,
    not_there,
)
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume, VolumeReport, Volumes


class FakeVolumes(Volumes):
    """The groups of one machine, by name.

    ``groups`` and ``held`` (group and name of volumes that something has open) are for scenarios to
    change, and for those who put devices on top of volumes. Tags are taken for true: what is
    reported with a disk is ours.
    """

    def __init__(self, *groups: str, uses: Callable[[DiskId], bool] = lambda _: False) -> None:
        """Make groups; ``uses`` tells whether a guest of this machine has a disk open."""
        self.groups = {name: FakeGroup() for name in groups}
        self.held: set[str] = set()
        self.on_copy: Callable[[str, str], None] = lambda _from, _to: None  # is told LVM's UUIDs
        self.delays = 0  # how often who makes or grows volumes is told that they are not zeros yet
        self._uses = uses
        self._made = 0

    def names(self) -> list[str]:
        """Return group and name of all volumes, sorted."""
        every = self.groups.items()
        return sorted(f"{group}/{name}" for group, there in every for name in there.volumes)

    def lose_power(self) -> None:
        """Leave no device active: none becomes active when the machine boots."""
        self.held.clear()
        for group in self.groups.values():
            for name, there in group.volumes.items():
                group.volumes[name] = replace(there, is_active=False)

    async def ensure_present(self, wanted: Sequence[NewVolume]) -> None:
        names.check(*(new.volume for new in wanted))
        self._remove_pointless(wanted)
        missing = [new for new in wanted if self._is_missing(new)]
        made = [pair for name, its in _by_group(missing) for pair in self._laid_out(name, its)]
        for new, devices in made:
            self._make(new, devices, is_unfinished=True)
        fresh = [new for new in wanted if self._there(new).is_unfinished]
        if fresh and self.delays:
            self.delays -= 1
            total = sum(new.size for new in fresh)
            raise Unfinished("It goes on.", done_mib=total // 2, total_mib=total)
        for new in fresh:
            self._change(new.volume, is_unfinished=False)

    async def ensure_active(self, wanted: Sequence[NewVolume]) -> tuple[str, ...]:
        await self.ensure_present(wanted)
        return await self.activate([new.volume for new in wanted])

    async def ensure_absent(self, volumes: Sequence[Volume]) -> None:
        names.check(*volumes)
        gone = [volume for volume in volumes if self._ours(volume) is not None]
        for volume in gone:
            self._check_free(volume)
            for each in self._snapshots(volume):
                if each.disk is None:
                    raise not_there(volume, "removed", f"{each.place.name} is a snapshot of it")
        for volume in gone:
            group = self.groups[volume.place.group].volumes
            for each in self._snapshots(volume):
                group.pop(each.place.name, None)
            group.pop(volume.place.name, None)

    async def find(self, volumes: Sequence[Volume]) -> tuple[VolumeReport | None, ...]:
        names.check(*volumes)
        found = [self._ours(volume) for volume in volumes]
        return tuple(each if each and not each.is_unfinished else None for each in found)

    async def activate(self, volumes: Sequence[Volume]) -> tuple[str, ...]:
        names.check(*volumes)
        for volume in volumes:
            self._wanted(volume, "attached")
        for volume in volumes:
            self._activate(self._wanted(volume, "attached"), is_active=True)
        return tuple(map(mapper_path, volumes))

    async def deactivate(self, volumes: Sequence[Volume]) -> None:
        names.check(*volumes)
        found = [(volume, self._ours(volume)) for volume in volumes]
        there = [(v, each) for v, each in found if each and not each.goes_with_origin]
        for volume, _ in there:
            self._check_free(volume)
            for each in self._snapshots(volume):
                if self._seen(each).is_open:
                    raise in_use(volume)
        for _, each in there:
            self._activate(each, is_active=False)

    async def rename(self, pairs: Sequence[tuple[Volume, Volume]]) -> None:
        names.check(*(volume for pair in pairs for volume in pair))
        for volume, new in pairs:
            self._rename(volume, new)

    def _rename(self, volume: Volume, new: Volume) -> None:
        if self._ours(volume) is None and self._ours(new) is not None:
            return
        there, group = self._wanted(volume, "renamed"), self.groups[volume.place.group].volumes
        if new.place.name in group:
            raise not_ours(new, group[new.place.name])
        group[new.place.name] = replace(there, place=new.place, is_open=False)
        del group[volume.place.name]
        if volume.name in self.held:
            self.held = (self.held - {volume.name}) | {new.name}

    async def adopt(self, name: str, volume: Volume, size: MiB) -> None:
        names.check(volume)
        check_name(name)
        there = self._all(volume)
        if is_adopted(volume, there):
            return
        seen = {each.place.name: self._seen(each) for each in there.values()}
        check_adoptable(name, volume, size, seen)
        there[volume.place.name] = replace(
            there.pop(name), place=volume.place, disk=volume.disk, instance=volume.instance,
            is_active=False,
        )  # fmt: skip

    async def give_back(self, volume: Volume, name: str) -> None:
        names.check(volume)
        check_name(name)
        there = self._all(volume)
        if is_adopted(volume, there):
            self._check_free(volume)
            place = replace_struct(volume.place, name=name)
            there[name] = replace(
                there.pop(volume.place.name), place=place, disk=None, instance=None, is_active=False
            )

    async def grow(self, volume: Volume, size: MiB, *, alone: bool = False) -> None:
        names.check(volume)
        there, group = self._wanted(volume, "grown"), self.groups[volume.place.group]
        more = MiB(extents(size) - there.size)
        if more > 0:
            if not volume.place.thin_pool and group.free < more:
                raise no_space_to_grow(volume, more, group.free)
            if not volume.place.thin_pool and alone:
                devices_to_grow_on(volume, size, there, group.as_told(volume.place.group))
            self._change(volume, size=extents(size))
        if self.delays:
            self.delays -= 1
            raise Unfinished("It goes on.", done_mib=size // 2, total_mib=size)

    async def snapshot(self, wanted: Sequence[NewSnapshot]) -> None:
        names.check(*(each.volume for each in wanted), *(each.kept.volume for each in wanted))
        for volume, _ in wanted:
            self._wanted(volume, "kept as it is")
        missing = [each for each in wanted if self._is_missing(each.kept)]
        for name in {each.volume.place.group for each in missing}:
            thick = [kept.size for volume, kept in missing
                     if volume.place.group == name and not volume.place.thin_pool]  # fmt: skip
            size, free = MiB(sum(map(extents, thick))), self.groups[name].free
            if free < size:
                raise no_space(name, size, free)
        told = {name: group.as_told(name) for name, group in self.groups.items()}
        on = {each: kept_on(each, told[each.volume.place.group]) for each in missing}
        for (volume, kept), devices in on.items():
            self._make(kept, devices)
            there = self._wanted(volume, "kept as it is")
            is_active = there.is_active and not volume.place.thin_pool
            name, group = volume.place.name, self.groups[volume.place.group]
            group.rooms[kept.volume.place.name] = extents(kept.size)
            self._change(kept.volume, origin=name, is_active=is_active, size=there.size)
            self._copy(volume, kept.volume)

    async def roll_back(self, volume: Volume, snapshot: Volume) -> None:
        names.check(volume, snapshot)
        self._wanted(volume, "rolled back")
        if self._ours(snapshot) is not None:
            self._wanted(snapshot, "gone back to")
            self._check_free(volume)
            self._check_free(snapshot)
            self._copy(snapshot, volume)
            del self.groups[volume.place.group].volumes[snapshot.place.name]

    def open(self, volume: Volume, *, read_only: bool) -> int:  # noqa: ARG002 -- there is nothing to be read
        """Refuse what could not be opened."""
        names.check(volume)
        if not self._wanted(volume, "opened").is_active:
            raise not_there(volume, "opened", "it is not attached")
        return -1

    async def inventory(self, pool: Pool) -> tuple[VolumeReport, ...]:
        name, thin_pool = names.split(pool)
        if name not in self.groups:
            return ()
        return tuple(self._seen(each) for each in self.groups[name].volumes.values()
                     if not thin_pool or each.place.thin_pool == thin_pool)  # fmt: skip

    async def space(self, pool: Pool) -> StorageReport:
        name, thin_pool = names.split(pool)
        group = self.groups.get(name)
        if group is None or (thin_pool and thin_pool not in group.thin_pools):
            problem = no_group(name).message
            return StorageReport(
                pool=pool, total=MiB(0), free=MiB(0), usable=False, problem=problem
            )
        total = group.thin_pools[thin_pool] if thin_pool else group.capacity
        free = group.thin_pools[thin_pool] if thin_pool else group.free
        spindles = None if thin_pool else group.as_told(name).spindles
        return StorageReport(pool=pool, total=total, free=free, usable=True, spindles=spindles)

    def _laid_out(
        self, name: str, wanted: Sequence[NewVolume]
    ) -> Iterator[tuple[NewVolume, tuple[str, ...]]]:
        """Yield new volumes of a group with their physical volumes, as the real ones are put."""
        thin = [new for new in wanted if new.volume.place.thin_pool and new.spindles is None]
        yield from ((new, ()) for new in thin)
        yield from lay_out(
            [new for new in wanted if new not in thin], self.groups[name].as_told(name)
        )

    def _remove_pointless(self, wanted: Sequence[NewVolume]) -> None:
        for new in wanted:
            if new.tells_of and self._is_done(new.volume) and not self._is_done(new.tells_of):
                self._check_free(new.volume)
                del self.groups[new.volume.place.group].volumes[new.volume.place.name]

    def _is_done(self, volume: Volume) -> bool:
        there = self._ours(volume)
        return there is not None and not there.is_unfinished

    def _is_missing(self, new: NewVolume) -> bool:
        """Tell whether something is still to be made, and nothing is in its way."""
        place = new.volume.place
        if place.group not in self.groups:
            raise no_group(place.group)
        there = self.groups[place.group].volumes.get(place.name)
        if there is None:
            return True
        if there.disk != new.volume.disk:
            raise not_ours(new.volume, there)
        return False

    def _all(self, volume: Volume) -> dict[str, VolumeReport]:
        if volume.place.group not in self.groups:
            raise no_group(volume.place.group)
        return self.groups[volume.place.group].volumes

    def _there(self, new: NewVolume) -> VolumeReport:
        return self.groups[new.volume.place.group].volumes[new.volume.place.name]

    def _make(
        self, new: NewVolume, devices: tuple[str, ...] = (), *, is_unfinished: bool = False
    ) -> None:
        self._made += 1
        place = new.volume.place
        self.groups[place.group].volumes[place.name] = VolumeReport(
            place=place, size=extents(new.size), uuid=f"fake-{self._made}",
            disk=new.volume.disk, instance=new.volume.instance,
            devices=devices or (f"/dev/{place.group}",),
            is_unfinished=is_unfinished,
        )  # fmt: skip

    def _ours(self, volume: Volume) -> VolumeReport | None:
        group = self.groups.get(volume.place.group)
        there = group.volumes.get(volume.place.name) if group else None
        return self._seen(there) if there and there.disk == volume.disk else None

    def _seen(self, there: VolumeReport) -> VolumeReport:
        name = f"{there.place.group}/{there.place.name}"
        is_used = there.disk is not None and self._uses(there.disk)
        return replace(there, is_open=name in self.held or (is_used and there.is_active))

    def _wanted(self, volume: Volume, what: str) -> VolumeReport:
        there = self._ours(volume)
        if there is None:
            raise not_there(volume, what)
        if there.is_unfinished:
            raise not_there(volume, what, "it is not finished; its creation was cut off")
        if not there.is_whole:
            raise not_there(volume, what, "a physical volume that it needs is missing")
        if there.is_lost:
            raise not_there(volume, what, LOST)
        return there

    def _check_free(self, volume: Volume) -> None:
        there = self._ours(volume)
        if there is not None and there.is_open:
            raise in_use(volume)

    def _snapshots(self, volume: Volume) -> Iterator[VolumeReport]:
        for each in tuple(self.groups[volume.place.group].volumes.values()):
            if each.origin == volume.place.name and not each.place.thin_pool:
                yield each

    def _copy(self, source: Volume, target: Volume) -> None:
        volumes = self.groups[source.place.group].volumes
        self.on_copy(volumes[source.place.name].uuid, volumes[target.place.name].uuid)

    def _activate(self, there: VolumeReport, *, is_active: bool) -> None:
        """Give a volume a device, or none; one that goes with its origin follows that."""
        name = there.origin if there.goes_with_origin else there.place.name
        group = self.groups[there.place.group].volumes
        for each in [each for each in group.values() if each.place.name == name
                     or (each.goes_with_origin and each.origin == name)]:  # fmt: skip
            group[each.place.name] = replace(each, is_active=is_active)

    def _change(self, volume: Volume, **changes: object) -> None:
        group = self.groups[volume.place.group].volumes
        group[volume.place.name] = replace(group[volume.place.name], **changes)  # type: ignore[arg-type] # fields of a report


def _by_group(wanted: Iterable[NewVolume]) -> Iterable[tuple[str, list[NewVolume]]]:
    """Return new volumes by the names of their groups."""
    groups: dict[str, list[NewVolume]] = {}
    for new in wanted:
        groups.setdefault(new.volume.place.group, []).append(new)
    return groups.items()
