"""Calls about what the volume groups of this node are made of."""

import asyncio

from common.errors import NodeFailure
from common.noderpc.physical_volumes import (
    PhysicalVolumeReport,
    PhysicalVolumes,
    VolumeGroupReport,
)
from noded.storage.lvm.physical import PhysicalVolumeDriver


class PhysicalVolumeHandlers(PhysicalVolumes):
    """Carried out by the driver, one change at a time."""

    def __init__(self, driver: PhysicalVolumeDriver | None) -> None:
        self._driver = driver
        self._changing = asyncio.Lock()

    async def devices(self) -> tuple[PhysicalVolumeReport, ...]:
        return await self._lvm.devices()

    async def groups(self) -> tuple[VolumeGroupReport, ...]:
        return await self._lvm.groups()

    async def set_allocatable(self, *, device: str, allocatable: bool) -> None:
        async with self._changing:
            await self._lvm.set_allocatable(device, allocatable=allocatable)

    async def forget_missing(self, *, group: str, broken: tuple[str, ...]) -> None:
        async with self._changing:
            await self._lvm.forget_missing(group, broken)

    @property
    def _lvm(self) -> PhysicalVolumeDriver:
        if self._driver is None:
            raise NodeFailure("This node has no volume groups.")
        return self._driver
