"""Disks that are logical volumes of this node: ``plain``."""

from collections.abc import Sequence

from common.errors import InvalidRequest
from common.messages import from_builtins
from common.model.backing import LvmBacking
from common.model.disk import Mode
from common.model.disk_parameters import PlainParameters
from common.model.pool import Pool
from common.noderpc.disks import Access, DiskReport, DiskSpec, VolumeListing
from common.noderpc.facts import StorageReport
from common.noderpc.snapshots import SnapshotSpec
from noded.storage.interface import PoolDriver, Storage
from noded.storage.lvm import names
from noded.storage.lvm.refusals import LOST
from noded.storage.lvm.volumes import NewSnapshot, NewVolume, Volume, VolumeReport, Volumes


class PlainStorage(Storage, PoolDriver):
    """One volume for each disk. A disk is attached while its volume has a device."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def check_place(self, disk: DiskSpec) -> None:
        names.check(_volume(disk))

    async def ensure_present(self, disk: DiskSpec) -> None:
        await self._volumes.ensure_present([_new(disk)])

    async def ensure_present_with(self, disk: DiskSpec, others: Sequence[DiskSpec]) -> None:
        await self._volumes.ensure_present(list(map(_new, (disk, *others))))

    async def ensure_absent(self, disk: DiskSpec) -> None:
        await self._volumes.ensure_absent([_volume(disk)])

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        (report,) = await self.find_all((disk,))
        return report

    async def find_all(self, disks: Sequence[DiskSpec]) -> tuple[DiskReport | None, ...]:
        found = await self._volumes.find(list(map(_volume, disks)))
        return tuple(
            _report(disk, each) if each else None for disk, each in zip(disks, found, strict=True)
        )

    async def grow(self, disk: DiskSpec) -> None:
        await self._volumes.grow(_volume(disk), disk.size, alone=disk.spindles is not None)

    async def attach(self, disk: DiskSpec, access: Access) -> str:  # noqa: ARG002 -- one node has it
        (path,) = await self._volumes.activate([_volume(disk)])
        return path

    async def attach_all(self, disks: Sequence[DiskSpec], access: Access) -> tuple[str, ...]:  # noqa: ARG002
        return await self._volumes.activate(list(map(_volume, disks)))

    async def detach(self, disk: DiskSpec) -> None:
        await self._volumes.deactivate([_volume(disk)])

    async def detach_all(self, disks: Sequence[DiskSpec]) -> None:
        await self._volumes.deactivate(list(map(_volume, disks)))

    async def adopt(self, disk: DiskSpec, name: str) -> None:
        await self._volumes.adopt(name, _volume(disk), disk.size)

    async def give_back(self, disk: DiskSpec, name: str) -> None:
        await self._volumes.give_back(_volume(disk), name)

    async def snapshot_problem(self, disk: DiskSpec) -> str:  # noqa: ARG002 -- LVM always can
        return ""

    async def take_snapshots(self, wanted: Sequence[SnapshotSpec]) -> None:
        await self._volumes.snapshot(list(map(_snapshot, wanted)))

    async def roll_back(self, snapshot: SnapshotSpec) -> None:
        volume, kept = _snapshot(snapshot)
        await self._volumes.roll_back(volume, kept.volume)
        await self._volumes.snapshot([_snapshot(snapshot)])  # LVM has used it up

    def open(self, disk: DiskSpec) -> int:
        return self._volumes.open(_volume(disk), read_only=disk.mode is Mode.READ_ONLY)

    async def inventory(self, pool: Pool) -> tuple[str, ...]:
        found = await self._volumes.inventory(pool)
        return tuple(path for each in found for path in each.place.paths)

    async def volumes(self, pool: Pool) -> tuple[VolumeListing, ...]:
        return tuple(map(_listing, await self._volumes.inventory(pool)))

    async def space(self, pool: Pool) -> StorageReport:
        return await self._volumes.space(pool)


def _report(disk: DiskSpec, found: VolumeReport) -> DiskReport:
    is_thin = bool(found.place.thin_pool)
    return DiskReport(
        id=disk.id,
        instance=found.instance,
        size=found.size,
        spindles=None if is_thin else len(found.devices),
    )


def _listing(found: VolumeReport) -> VolumeListing:
    problem = ""
    if not found.is_whole:
        problem = "it lacks a physical volume"
    elif found.is_unfinished:
        problem = "its creation was cut off"
    elif found.is_lost:
        problem = LOST
    return VolumeListing(
        group=found.place.group,
        name=found.place.name,
        size=found.size,
        disk=found.disk,
        instance=found.instance,
        devices=found.devices,
        problem=problem,
        thin_pool=found.place.thin_pool,
        is_open=found.is_open,
        origin=found.origin,
    )


def _volume(disk: DiskSpec) -> Volume:
    place: object = disk.backing
    if not isinstance(place, LvmBacking):
        raise InvalidRequest("This disk is no logical volume.", disk=disk.id)
    return Volume(place, disk.id, disk.instance)


def _snapshot(wanted: SnapshotSpec) -> NewSnapshot:
    kept = NewVolume(_volume(wanted.kept), wanted.room, spindles=wanted.of.spindles)
    return NewSnapshot(_volume(wanted.of), kept)


def _new(disk: DiskSpec) -> NewVolume:
    what = f"the parameters of the disk {disk.id}"
    parameters = from_builtins(disk.parameters, PlainParameters, what=what)
    return NewVolume(
        _volume(disk),
        disk.size,
        stripes=parameters.stripes,
        stripe_kib=parameters.stripe_size,
        spindles=disk.spindles,
    )
