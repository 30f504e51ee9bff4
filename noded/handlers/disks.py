"""Calls about the disks of this node."""

from collections.abc import Sequence

from common.errors import InvalidRequest
from common.model.pool import Pool
from common.names import DiskId, is_uuid
from common.noderpc.disks import Access, DiskReport, Disks, DiskSpec, VolumeListing
from noded.storage.interface import Storage
from noded.storage.storages import Storages
from noded.system.turns import Turns


class DiskHandlers(Disks):
    """Carried out by the drivers, one at a time for the disks of one instance."""

    def __init__(self, storages: Storages, turns: Turns) -> None:
        self._storages = storages
        self._turns = turns

    async def ensure_present(self, *, disk: DiskSpec, others: tuple[DiskSpec, ...] = ()) -> None:
        _check(disk, *others)
        storage = self._storages.of(disk)
        alike = [
            each
            for each in others
            if each.instance == disk.instance and self._storages.of(each) is storage
        ]
        async with self._turns.of(disk.instance):
            await storage.ensure_present_with(disk, alike)

    async def ensure_absent(self, *, disk: DiskSpec) -> None:
        _check(disk)
        async with self._turns.of(disk.instance):
            await self._storages.of(disk).ensure_absent(disk)

    async def adopt(self, *, disk: DiskSpec, name: str) -> None:
        _check(disk)
        async with self._turns.of(disk.instance):
            await self._storages.of(disk).adopt(disk, name)

    async def give_back(self, *, disk: DiskSpec, name: str) -> None:
        _check(disk)
        async with self._turns.of(disk.instance):
            await self._storages.of(disk).give_back(disk, name)

    async def grow(self, *, disk: DiskSpec) -> None:
        _check(disk)
        async with self._turns.of(disk.instance):
            await self._storages.of(disk).grow(disk)

    async def find(self, *, disks: tuple[DiskSpec, ...]) -> tuple[DiskReport | None, ...]:
        _check(*disks)
        found: dict[DiskId, DiskReport | None] = {}
        for storage, some in self._batches(disks):
            reports = await storage.find_all(some)
            found |= zip((disk.id for disk in some), reports, strict=True)
        return tuple(found[disk.id] for disk in disks)

    async def problems(self, *, disks: tuple[DiskSpec, ...]) -> tuple[str, ...]:
        _check(*disks)
        return tuple([await self._storages.of(disk).problem(disk) for disk in disks])

    async def attach(self, *, disks: tuple[DiskSpec, ...], access: Access) -> tuple[str, ...]:
        _check(*disks)
        paths: dict[DiskId, str] = {}
        for storage, some in self._batches(disks):
            async with self._turns.of(some[0].instance):
                attached = await storage.attach_all(some, access)
            paths |= zip((disk.id for disk in some), attached, strict=True)
        return tuple(paths[disk.id] for disk in disks)

    async def detach(self, *, disks: tuple[DiskSpec, ...]) -> None:
        _check(*disks)
        for storage, some in self._batches(disks):
            async with self._turns.of(some[0].instance):
                await storage.detach_all(some)

    async def inventory(self, *, pools: tuple[Pool, ...]) -> tuple[str, ...]:
        found = [await self._storages.inventory(pool) for pool in pools]
        return tuple(sorted({path for each in found for path in each}))

    async def volumes(self, *, pools: tuple[Pool, ...]) -> tuple[VolumeListing, ...]:
        found = [each for pool in pools for each in await self._storages.volumes(pool)]
        by_name = {(each.group, each.name): each for each in found}
        return tuple(by_name[key] for key in sorted(by_name))

    def _batches(self, disks: Sequence[DiskSpec]) -> list[tuple[Storage, list[DiskSpec]]]:
        """Return the disks of each instance that one driver looks after, in their order."""
        batches: dict[tuple[str, int], tuple[Storage, list[DiskSpec]]] = {}
        for disk in disks:
            storage = self._storages.of(disk)
            batches.setdefault((disk.instance, id(storage)), (storage, []))[1].append(disk)
        return list(batches.values())


def _check(*disks: DiskSpec) -> None:
    for disk in disks:
        if not (is_uuid(disk.id) and is_uuid(disk.instance)):
            raise InvalidRequest("Disks and instances are told apart by UUIDs.", disk=disk.id)
        if disk.size < 1:
            raise InvalidRequest(f"A disk has at least 1 MiB, not {disk.size}.", disk=disk.id)
