"""The logical volumes of this machine, by LVM's commands.

Each method looks once and changes things once, whatever the number of volumes: starting LVM costs
more than all that it does for a volume.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from common.model.pool import Pool
from common.names import MiB
from common.noderpc.disks import Unfinished
from common.noderpc.facts import StorageReport
from noded.storage.lvm import commands, lvm, names
from noded.storage.lvm.adopting import check_adoptable, check_name, is_adopted, is_on_its_way
from noded.storage.lvm.device import mapper_path, open_device
from noded.storage.lvm.making import grow, keep, make, remove_pointless
from noded.storage.lvm.merging import Merging
from noded.storage.lvm.ours import change_unused, check_snapshots, find_ours, usable
from noded.storage.lvm.refusals import in_use, not_ours
from noded.storage.lvm.room import Rooms
from noded.storage.lvm.seen import Seen
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume, VolumeReport, Volumes
from noded.storage.lvm.zeroing import Zeroing
from noded.system.turns import Turns


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
        self._seen = Seen()

    async def ensure_present(self, wanted: Sequence[NewVolume]) -> None:
        if fresh := await self._make(wanted):
            await lvm.change(commands.finish(fresh))

    async def ensure_active(self, wanted: Sequence[NewVolume]) -> tuple[str, ...]:
        volumes = [new.volume for new in wanted]
        if await self._seen.are_sound(volumes):
            return tuple(map(mapper_path, volumes))
        if fresh := await self._make(wanted):
            await lvm.change(commands.finish_active(fresh))
            await self._seen.note_made(fresh)
        if set(volumes).difference(fresh):
            return await self.activate(volumes)
        return tuple(map(mapper_path, volumes))

    async def _make(self, wanted: Sequence[NewVolume]) -> list[Volume]:
        """Make what is missing; return what was made, which is active, zeros, and marked."""
        names.check(*(new.volume for new in wanted))
        fresh: list[Volume] = []
        async with AsyncExitStack() as turns:
            asked = sorted({new.volume.place.group for new in wanted})
            for group in asked:
                await turns.enter_async_context(self._turns.of(group))
            there = self._rooms.without([new.volume.place for new in wanted])
            if there is None:
                there = await remove_pointless(wanted, await lvm.look_at(*asked))
            for group in asked:
                self._rooms.forget(group)
                its = [new for new in wanted if new.volume.place.group == group]
                fresh += await make(its, there[group])
        ends = {new.volume: new.zeros for new in wanted if new.zeros is not None}
        await self._zeroing.have_zeros(dict.fromkeys(fresh, MiB(0)), ends)
        return fresh

    async def ensure_absent(self, volumes: Sequence[Volume]) -> None:
        names.check(*volumes)
        ours = await find_ours(volumes)
        for volume, found in ours.items():
            check_snapshots(volume, found.group)
        await self._zeroing.stop(ours)
        self._seen.forget(volumes)
        await change_unused(commands.remove, ours)

    async def find(self, volumes: Sequence[Volume]) -> tuple[VolumeReport | None, ...]:
        names.check(*volumes)
        ours = await find_ours(volumes)
        reports = [ours[volume].report if volume in ours else None for volume in volumes]
        return tuple(each if each and not each.is_unfinished else None for each in reports)

    async def activate(self, volumes: Sequence[Volume]) -> tuple[str, ...]:
        names.check(*volumes)
        if not await self._seen.are_sound(volumes):
            await self._activate(volumes)
        return tuple(map(mapper_path, volumes))

    async def _activate(self, volumes: Sequence[Volume]) -> None:
        ours = await find_ours(volumes)
        wanted = {volume: usable(volume, ours.get(volume), "attached") for volume in volumes}
        inactive = [volume for volume, found in wanted.items() if not found.report.is_active]
        if inactive:
            await lvm.change(commands.activate(inactive))
        await self._zero({v: found.unzeroed for v, found in wanted.items() if found.unzeroed})
        self._seen.note_told({volume: found.report for volume, found in wanted.items()})

    async def deactivate(self, volumes: Sequence[Volume]) -> None:
        names.check(*volumes)
        active = await self._seen.still_ours(volumes)
        if rest := [volume for volume in volumes if volume not in active]:
            ours = await find_ours(rest)
            active |= {
                volume
                for volume, found in ours.items()
                if found.report.is_active and not found.report.goes_with_origin
            }
        await change_unused(commands.deactivate, [each for each in volumes if each in active])
        self._seen.forget(volumes)

    async def rename(self, pairs: Sequence[tuple[Volume, Volume]]) -> None:
        every = [volume for pair in pairs for volume in pair]
        names.check(*every)
        async with AsyncExitStack() as turns:
            for name in sorted({volume.place.group for volume in every}):
                await turns.enter_async_context(self._turns.of(name))
            ours = await find_ours(every)
            for volume, new in pairs:
                if volume not in ours and new in ours:
                    continue
                group = usable(volume, ours.get(volume), "renamed").group
                if (there := group.volumes.get(new.place.name)) is not None:
                    raise not_ours(new, there)
                await lvm.change(commands.rename(volume, new))

    async def adopt(self, name: str, volume: Volume, size: MiB) -> None:
        names.check(volume)
        check_name(name)
        async with self._turns.of(volume.place.group):
            there = await self._beside(volume)
            if is_adopted(volume, there):
                return
            if not is_on_its_way(volume.place.name, volume, there):
                check_adoptable(name, volume, size, there)
                if not is_on_its_way(name, volume, there):
                    await lvm.change(commands.begin_adoption(volume, name))
                await lvm.change(commands.take_name(volume, name))
            await change_unused(lambda _: commands.end_adoption(volume), [volume])

    async def give_back(self, volume: Volume, name: str) -> None:
        names.check(volume)
        check_name(name)
        async with self._turns.of(volume.place.group):
            there = await self._beside(volume)
            if is_adopted(volume, there):
                await change_unused(lambda _: commands.begin_giving_back(volume), [volume])
            if is_adopted(volume, there) or is_on_its_way(volume.place.name, volume, there):
                await lvm.change(commands.leave_name(volume, name))
            elif not is_on_its_way(name, volume, there):
                return
            await lvm.change(commands.end_giving_back(volume, name))

    async def _beside(self, volume: Volume) -> Mapping[str, VolumeReport]:
        """Return all volumes of a group."""
        group = volume.place.group
        return (await lvm.look_at(group))[group].volumes

    async def grow(self, volume: Volume, size: MiB, *, alone: bool = False) -> None:
        names.check(volume)
        self._seen.doubt([volume])  # it may hold old data for a while
        async with self._turns.of(volume.place.group):
            found = usable(volume, (await find_ours([volume])).get(volume), "grown")
            start = found.unzeroed
            if found.report.size < size:
                # What is being zeroed is zeroed up to where the volume ended when that began.
                await self._zeroing.stop([volume])
                start = start or (None if volume.place.thin_pool else found.report.size)
                await grow(volume, size, found, alone=alone)
        if start is not None:
            if not found.report.is_active:
                await lvm.change(commands.activate([volume]))
            await self._zero({volume: start})
            if not found.report.is_active:
                await change_unused(commands.deactivate, [volume])

    async def snapshot(self, wanted: Sequence[NewSnapshot]) -> None:
        names.check(*(each.volume for each in wanted), *(each.kept.volume for each in wanted))
        for group in sorted({each.volume.place.group for each in wanted}):
            its = [each for each in wanted if each.volume.place.group == group]
            async with self._turns.of(group):
                ours = await find_ours([each.volume for each in its])
                for each in its:
                    usable(each.volume, ours.get(each.volume), "kept as it is")
                await keep(its, ours[its[0].volume].group)

    async def roll_back(self, volume: Volume, snapshot: Volume) -> None:
        names.check(volume, snapshot)
        self._seen.doubt([volume])
        if not self._merging.is_going(snapshot):
            ours = await find_ours([volume, snapshot])
            found = usable(volume, ours.get(volume), "rolled back")
            if snapshot not in ours:
                await self._see_merged(volume, found.report)
                return
            usable(snapshot, ours[snapshot], "gone back to")
            for each in (volume, snapshot):
                if ours[each].report.is_open:
                    raise in_use(each)
            if not found.report.is_active:  # else it would be done when somebody activates it
                await lvm.change(commands.activate([volume]))
        await self._merging.merge(snapshot)
        await self.deactivate([volume])

    async def _see_merged(self, volume: Volume, report: VolumeReport) -> None:
        """Return when a merge has ended that was begun before noded was started, or the machine.

        Raises:
            Unfinished: it goes on.
        """
        if report.is_merging:
            if not report.is_active:  # which has LVM go on with it
                await lvm.change(commands.activate([volume]))
            raise Unfinished(
                f"What was kept of {volume.name} is being written back; it goes on.",
                done_mib=0,
                total_mib=0,
            )
        await self.deactivate([volume])

    def open(self, volume: Volume, *, read_only: bool) -> int:
        names.check(volume)
        access = os.O_RDONLY if read_only else os.O_RDWR
        return open_device(volume, access, uuid=self._seen.uuid_of(volume))

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
