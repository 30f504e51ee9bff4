"""Calls about the disks of this node."""

from common.errors import InvalidRequest
from common.names import is_uuid
from common.noderpc.disks import DiskReport, Disks, DiskSpec
from noded.storage.interface import Storage
from noded.system.turns import Turns


class DiskHandlers(Disks):
    """Carried out by the storage driver, one at a time for the disks of one instance."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._turns = Turns()

    async def ensure_present(self, *, disk: DiskSpec) -> None:
        _check(disk)
        async with self._turns.of(disk.instance):
            await self._storage.ensure_present(disk)

    async def ensure_absent(self, *, disk: DiskSpec) -> None:
        _check(disk)
        async with self._turns.of(disk.instance):
            await self._storage.ensure_absent(disk)

    async def find(self, *, disks: tuple[DiskSpec, ...]) -> tuple[DiskReport | None, ...]:
        for disk in disks:
            _check(disk)
        return tuple([await self._storage.find(disk) for disk in disks])

    async def inventory(self, *, directories: tuple[str, ...]) -> tuple[str, ...]:
        return await self._storage.inventory(directories)


def _check(disk: DiskSpec) -> None:
    if not (is_uuid(disk.id) and is_uuid(disk.instance)):
        raise InvalidRequest("Disks and instances are told apart by UUIDs.", disk=disk.id)
    if disk.size < 1:
        raise InvalidRequest(f"A disk has at least 1 MiB, not {disk.size}.", disk=disk.id)
