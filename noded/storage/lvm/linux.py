"""The logical volumes of this machine, by LVM's commands.

Each method looks once and changes things once, whatever the number of volumes: starting LVM costs
more than all that it does for a volume.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from common.errors import NodeFailure
from common.execute import CommandFailed
from common.model.pool import Pool
from common.names import MiB
from common.noderpc.facts import StorageReport
from noded.storage.lvm import commands, lvm, names
from noded.storage.lvm.adopting import check_adoptable, check_name, is_adopted, is_on_its_way
from noded.storage.lvm.commands import Command
from noded.storage.lvm.device import mapper_path, open_device
from noded.storage.lvm.merging import Merging
from noded.storage.lvm.parse import Group, parse_created, parse_in_use
from noded.storage.lvm.placing import check_space, in_extents, place
from noded.storage.lvm.refusals import LOST, in_use, no_space_to_grow, not_ours, not_there
from noded.storage.lvm.room import Rooms
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume, VolumeReport, Volumes
from noded.storage.lvm.zeroing import Zeroing
from noded.system.turns import Turns


class Found(NamedTuple):
    """A volume that is ours, as it is, and all that is in its group."""

    report: VolumeReport
    group: Group

    @property
    def unzeroed(self) -> MiB | None:
        """Say from where on it may hold what former volumes have left; None: nowhere."""
        return self.group.unzeroed.get(self.report.place.name)


class LinuxVolumes(Volumes):
    """Nobody gets to see what former volumes have left.

    What may hold that is marked in the same change that makes it; the mark goes when it has been
    overwritten, and nobody is given a volume that has one.
    """

    def __init__(self) -> None:
        self._turns = Turns()  # of groups: what one takes of a group, the next has to see
        self._zeroing = Zeroing()
        self._merging = Merging()
        self._rooms = Rooms()
        self._uuids: dict[str, str] = {}  # of volumes that were activated, by name

    async def ensure_present(self, wanted: Sequence[NewVolume]) -> None:
        names.check(*(new.volume for new in wanted))
        fresh: list[Volume] = []
        for group in sorted({new.volume.place.group for new in wanted}):
            its = [new for new in wanted if new.volume.place.group == group]
            async with self._turns.of(group):
                fresh += await _make(its, await lvm.look_at(group))
        if fresh:
            await self._zeroing.have_zeros(dict.fromkeys(fresh, MiB(0)))
            await lvm.change(commands.finish(fresh))

    async def ensure_absent(self, volumes: Sequence[Volume]) -> None:
        names.check(*volumes)
        ours = await _find_ours(volumes)
        for volume, found in ours.items():
            _check_snapshots(volume, found.group)
        await self._zeroing.stop(ours)
        await _change_unused(commands.remove, ours)

    async def find(self, volumes: Sequence[Volume]) -> tuple[VolumeReport | None, ...]:
        names.check(*volumes)
        ours = await _find_ours(volumes)
        reports = [ours[volume].report if volume in ours else None for volume in volumes]
        return tuple(each if each and not each.is_unfinished else None for each in reports)

    async def activate(self, volumes: Sequence[Volume]) -> tuple[str, ...]:
        names.check(*volumes)
        ours = await _find_ours(volumes)
        wanted = {volume: _usable(volume, ours.get(volume), "attached") for volume in volumes}
        inactive = [volume for volume, found in wanted.items() if not found.report.is_active]
        if inactive:
            await lvm.change(commands.activate(inactive))
        self._uuids |= {volume.name: found.report.uuid for volume, found in wanted.items()}
        await self._zero({v: found.unzeroed for v, found in wanted.items() if found.unzeroed})
        return tuple(map(mapper_path, volumes))

    async def deactivate(self, volumes: Sequence[Volume]) -> None:
        names.check(*volumes)
        ours = await _find_ours(volumes)
        await _change_unused(
            commands.deactivate,
            [
                volume
                for volume, found in ours.items()
                if found.report.is_active and not found.report.goes_with_origin
            ],
        )

    async def rename(self, volume: Volume, new: Volume) -> None:
        names.check(volume, new)
        async with self._turns.of(volume.place.group):
            ours = await _find_ours([volume, new])
            if volume not in ours and new in ours:
                return
            group = _usable(volume, ours.get(volume), "renamed").group
            if (there := group.volumes.get(new.place.name)) is not None:
                raise not_ours(new, there)
            await lvm.change(commands.rename(volume, new))

    async def adopt(self, name: str, volume: Volume, size: MiB) -> None:
        names.check(volume)
        check_name(name)
        async with self._turns.of(volume.place.group):
            there = (await lvm.look_at(volume.place.group)).volumes
            if is_adopted(volume, there):
                return
            if not is_on_its_way(volume.place.name, volume, there):
                check_adoptable(name, volume, size, there)
                if not is_on_its_way(name, volume, there):
                    await lvm.change(commands.begin_adoption(volume, name))
                await lvm.change(commands.take_name(volume, name))
            await _change_unused(lambda _: commands.end_adoption(volume), [volume])

    async def give_back(self, volume: Volume, name: str) -> None:
        names.check(volume)
        check_name(name)
        async with self._turns.of(volume.place.group):
            there = (await lvm.look_at(volume.place.group)).volumes
            if is_adopted(volume, there):
                await _change_unused(lambda _: commands.begin_giving_back(volume), [volume])
            if is_adopted(volume, there) or is_on_its_way(volume.place.name, volume, there):
                await lvm.change(commands.leave_name(volume, name))
            elif not is_on_its_way(name, volume, there):
                return
            await lvm.change(commands.end_giving_back(volume, name))

    async def grow(self, volume: Volume, size: MiB) -> None:
        names.check(volume)
        async with self._turns.of(volume.place.group):
            found = _usable(volume, (await _find_ours([volume])).get(volume), "grown")
            start = found.unzeroed
            if found.report.size < size:
                # What is being zeroed is zeroed up to where the volume ended when that began.
                await self._zeroing.stop([volume])
                start = start or (None if volume.place.thin_pool else found.report.size)
                await _grow(volume, size, found)
        if start is not None:
            if not found.report.is_active:
                await lvm.change(commands.activate([volume]))
            await self._zero({volume: start})
            if not found.report.is_active:
                await _change_unused(commands.deactivate, [volume])

    async def snapshot(self, wanted: Sequence[NewSnapshot]) -> None:
        names.check(*(each.volume for each in wanted), *(each.kept.volume for each in wanted))
        for group in sorted({each.volume.place.group for each in wanted}):
            its = [each for each in wanted if each.volume.place.group == group]
            async with self._turns.of(group):
                ours = await _find_ours([each.volume for each in its])
                for each in its:
                    _usable(each.volume, ours.get(each.volume), "kept as it is")
                await _keep(its, ours[its[0].volume].group)

    async def roll_back(self, volume: Volume, snapshot: Volume) -> None:
        names.check(volume, snapshot)
        if not self._merging.is_going(snapshot):
            ours = await _find_ours([volume, snapshot])
            found = _usable(volume, ours.get(volume), "rolled back")
            if snapshot not in ours:
                return
            _usable(snapshot, ours[snapshot], "gone back to")
            for each in (volume, snapshot):
                if ours[each].report.is_open:
                    raise in_use(each)
            if not found.report.is_active:  # else it would be done when somebody activates it
                await lvm.change(commands.activate([volume]))
        await self._merging.merge(snapshot)
        await self.deactivate([volume])

    def open(self, volume: Volume, *, read_only: bool) -> int:
        names.check(volume)
        access = os.O_RDONLY if read_only else os.O_RDWR
        return open_device(volume, access, uuid=self._uuids.get(volume.name, ""))

    async def inventory(self, pool: Pool) -> tuple[VolumeReport, ...]:
        name, thin_pool = names.split(pool)
        group = (await lvm.look([name])).get(name)
        every = group.volumes.values() if group else ()
        return tuple(each for each in every if not thin_pool or each.place.thin_pool == thin_pool)

    async def space(self, pool: Pool) -> StorageReport:
        return await self._rooms.of(pool)

    async def _zero(self, volumes: Mapping[Volume, MiB]) -> None:
        """Overwrite what was added to active volumes, and take their marks away."""
        await self._zeroing.have_zeros(volumes)
        for volume, start in volumes.items():
            await lvm.change(commands.unmark_unzeroed(volume, start))


async def _make(wanted: Sequence[NewVolume], group: Group) -> list[Volume]:
    """Make what is missing; return what is to be zeroed, which is active then."""
    there = {new: group.volumes.get(new.volume.place.name) for new in wanted}
    for new, report in there.items():
        if report is not None and report.disk != new.volume.disk:
            raise not_ours(new.volume, report)
    missing = [new for new, report in there.items() if report is None]
    half = [new.volume for new, report in there.items() if report and report.is_unfinished]
    check_space(missing, group)
    where = place(missing, group)
    lines = [commands.create(new, where.get(new.volume.place.name, ())) for new in missing]
    if half:
        lines.append(commands.activate(half))
    if lines:
        said = await lvm.change_all(lines)
        made = parse_created(said.stdout)
        if not made.issuperset(new.volume.place.name for new in missing):
            created = [new.volume for new in missing if new.volume.place.name in made]
            await _change_unused(commands.remove, created)
            raise NodeFailure(
                f"LVM did not make all volumes in {group.name}: "
                f"{said.stderr.decode(errors='replace').strip()}",
                group=group.name,
            )
    return half + [new.volume for new in missing if not new.volume.place.thin_pool]


async def _keep(wanted: Sequence[NewSnapshot], group: Group) -> None:
    """Take the snapshots that are missing, all by one process: the guest waits."""
    there = {each: group.volumes.get(each.kept.volume.place.name) for each in wanted}
    for each, report in there.items():
        if report is not None and report.disk != each.kept.volume.disk:
            raise not_ours(each.kept.volume, report)
    missing = [each for each, report in there.items() if report is None]
    if not missing:
        return
    check_space([each.kept for each in missing], group)
    said = await lvm.change_all(map(commands.snapshot, missing))
    made = parse_created(said.stdout)
    kept = [each.kept.volume for each in missing]
    if not made.issuperset(volume.place.name for volume in kept):
        await _change_unused(commands.remove, [v for v in kept if v.place.name in made])
        raise NodeFailure(
            f"LVM did not take all snapshots in {group.name}: "
            f"{said.stderr.decode(errors='replace').strip()}",
            group=group.name,
        )


async def _grow(volume: Volume, size: MiB, found: Found) -> None:
    more = MiB(in_extents(size, found.group) - found.report.size)
    if not volume.place.thin_pool:
        if more > found.group.free:
            raise no_space_to_grow(volume, more, found.group.free)
        if found.unzeroed is None:
            await lvm.change(commands.mark_unzeroed(volume, found.report.size))
    await lvm.change(commands.grow(volume, size))


async def _find_ours(volumes: Sequence[Volume]) -> dict[Volume, Found]:
    """Return those that are there and ours."""
    groups = await lvm.look(volume.place.group for volume in volumes)
    found = {}
    for volume in volumes:
        group = groups.get(volume.place.group)
        report = group.volumes.get(volume.place.name) if group else None
        if group and report and report.disk == volume.disk:
            found[volume] = Found(report, group)
    return found


def _usable(volume: Volume, found: Found | None, what: str) -> Found:
    """Return a volume that can be used as it is.

    Raises:
        NodeFailure: says why it cannot.
    """
    if found is None:
        raise not_there(volume, what)
    if found.report.is_unfinished:
        raise not_there(volume, what, "it is not finished; its creation was cut off")
    if not found.report.is_whole:
        raise not_there(volume, what, "a physical volume that it needs is missing")
    if found.report.is_lost:
        raise not_there(volume, what, LOST)
    return found


def _check_snapshots(volume: Volume, group: Group) -> None:
    """Refuse to remove what a snapshot that is not ours would be removed with."""
    for each in group.volumes.values():
        if each.origin == volume.place.name and not each.place.thin_pool and each.disk is None:
            raise not_there(volume, "removed", f"{each.place.name} is a snapshot of it")


async def _change_unused(
    command: Callable[[Iterable[Volume]], Command], volumes: Iterable[Volume]
) -> None:
    """Change volumes that nobody may have open. LVM itself waits for those who only have a look."""
    every = list(volumes)
    if not every:
        return
    try:
        await lvm.change(command(every))
    except CommandFailed as error:
        used = parse_in_use(error.detail.get("stderr", ""))
        for volume in every:
            if volume.name in used:
                raise in_use(volume) from error
        raise
