"""Physical volumes that only pretend, under the groups of ``FakeVolumes``."""

from dataclasses import dataclass, replace

from common.names import MiB
from common.noderpc.physical_volumes import PhysicalVolumeReport, VolumeGroupReport
from noded.storage.lvm.fake import FakeVolumes
from noded.storage.lvm.physical import PhysicalVolumeDriver, check_told, find_device
from noded.storage.lvm.refusals import in_use
from noded.storage.lvm.volumes import Volume


@dataclass(frozen=True, slots=True)
class FakeDevice:
    group: str
    allocatable: bool = True
    missing: bool = False


class FakePhysicalVolumes(PhysicalVolumeDriver):
    """One device a group. ``by_name`` is for scenarios to change."""

    def __init__(self, volumes: FakeVolumes) -> None:
        self._volumes = volumes
        self.by_name = {f"/dev/{name}": FakeDevice(name) for name in volumes.groups}

    def lose(self, device: str) -> None:
        """Have a device disappear, and break the volumes that are on it."""
        self.by_name[device] = replace(self.by_name[device], missing=True)
        group = self._volumes.groups[self.by_name[device].group]
        for name, volume in group.volumes.items():
            group.volumes[name] = replace(volume, is_whole=device not in volume.devices)

    @property
    def told(self) -> list[str]:
        """Say what there is, to be compared."""
        return [f"{name}: {device}" for name, device in sorted(self.by_name.items())]

    async def devices(self) -> tuple[PhysicalVolumeReport, ...]:
        return tuple(
            PhysicalVolumeReport(
                name=name,
                group=device.group,
                size=self._volumes.groups[device.group].capacity,
                free=self._volumes.groups[device.group].free,
                allocatable=device.allocatable,
                missing=device.missing,
            )
            for name, device in sorted(self.by_name.items())
        )

    async def groups(self) -> tuple[VolumeGroupReport, ...]:
        return tuple(
            VolumeGroupReport(
                name=name,
                size=group.capacity,
                free=MiB(max(0, group.free)),
                missing=sum(each.missing for each in self.by_name.values() if each.group == name),
                broken=tuple(
                    sorted(each.place.name for each in group.volumes.values() if not each.is_whole)
                ),
            )
            for name, group in sorted(self._volumes.groups.items())
        )

    async def set_allocatable(self, device: str, *, allocatable: bool) -> None:
        find_device(await self.devices(), device)
        self.by_name[device] = replace(self.by_name[device], allocatable=allocatable)

    async def forget_missing(self, group: str, broken: tuple[str, ...]) -> None:
        if not check_told(await self.groups(), group, broken):
            return
        volumes = self._volumes.groups[group].volumes
        lost = [each for each in volumes.values() if not each.is_whole]
        for each in lost:
            if f"{group}/{each.place.name}" in self._volumes.held and each.disk and each.instance:
                raise in_use(Volume(place=each.place, disk=each.disk, instance=each.instance))
        for each in lost:
            del volumes[each.place.name]
        self.by_name = {
            name: each
            for name, each in self.by_name.items()
            if not (each.missing and each.group == group)
        }
