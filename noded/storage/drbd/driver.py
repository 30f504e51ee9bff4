"""Disks that DRBD mirrors between two nodes, as any disk is: made, attached, opened, taken away."""

from collections.abc import Sequence

from common.errors import NodeFailure
from common.model.disk import Mode
from common.noderpc.disks import Access, DiskReport, DiskSpec
from noded.storage.drbd.decide import check_growth
from noded.storage.drbd.devices import MirrorDevices
from noded.storage.interface import Storage
from noded.storage.lvm import names


class MirrorStorage(Storage):
    """The disks of this node that are mirrored."""

    def __init__(self, devices: MirrorDevices) -> None:
        self.devices = devices
        self._volumes = devices.volumes
        self._module = devices.module

    def check_place(self, disk: DiskSpec) -> None:
        names.check(*self.devices.read(disk).volumes)

    async def ensure_present(self, disk: DiskSpec) -> None:
        await self.ensure_present_with(disk, ())

    async def ensure_present_with(self, disk: DiskSpec, others: Sequence[DiskSpec]) -> None:
        mirrors = [self.devices.read(each) for each in (disk, *others)]
        volumes = [new for mirror in mirrors for new in mirror.new_volumes]
        _, *paths = await self._volumes.ensure_active(volumes)
        for mirror, meta in zip(mirrors, paths[::2], strict=True):
            await self._module.ensure_meta(mirror.minor, meta)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        mirror = self.devices.read(disk)
        if await self.devices.find(mirror) is not None:
            raise NodeFailure(f"The disk {mirror.name} is attached; detach it first.")
        await self._volumes.ensure_absent([*mirror.volumes, *mirror.set_aside])

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        data, meta = await self._volumes.find(self.devices.read(disk).volumes)
        if data is None or meta is None:
            return None
        return DiskReport(id=disk.id, instance=data.instance, size=data.size)

    async def grow(self, disk: DiskSpec) -> None:
        mirror = self.devices.read(disk)
        device = await self.devices.find(mirror)
        is_small = device is not None and device.volumes is not None and device.size < disk.size
        if device is not None and is_small:
            check_growth(device.report, mirror.name)
        await self._volumes.grow(mirror.data, disk.size)
        if device is not None and is_small:
            report = device.report
            is_last = report.primary or not report.peer_primary
            if is_last:
                await self._module.resize(mirror.minor, disk.size)

    async def attach(self, disk: DiskSpec, access: Access) -> str:
        mirror = self.devices.read(disk)
        device = await self.devices.set_up(mirror)
        is_primary = device is not None and device.report.primary
        if is_primary and access is Access.STANDBY:
            await self.devices.demote(mirror)
        await self.devices.link(mirror, device, allow_two=access is Access.SHARED)
        if not is_primary and access is not Access.STANDBY:
            await self.devices.promote(mirror, access)
        return f"/dev/drbd{mirror.minor}"

    async def attach_all(self, disks: Sequence[DiskSpec], access: Access) -> tuple[str, ...]:
        await self.devices.activate([self.devices.read(disk) for disk in disks])
        return tuple([await self.attach(disk, access) for disk in disks])

    async def detach(self, disk: DiskSpec) -> None:
        await self.detach_all((disk,))

    async def detach_all(self, disks: Sequence[DiskSpec]) -> None:
        mirrors = [self.devices.read(disk) for disk in disks]
        for mirror in mirrors:
            device = await self.devices.find(mirror)
            if device is not None:
                if device.report.primary:
                    await self.devices.demote(mirror)
                await self._module.remove(mirror.resource)
        await self._volumes.deactivate([each for mirror in mirrors for each in mirror.volumes])

    def open(self, disk: DiskSpec) -> int:
        mirror = self.devices.read(disk)
        read_only = disk.mode is Mode.READ_ONLY
        return self._module.open(mirror.resource, mirror.minor, read_only=read_only)
