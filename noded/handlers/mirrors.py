"""Calls about the mirrored disks of this node."""

from collections.abc import Awaitable, Callable

from common.errors import NodeFailure
from common.names import DiskId
from common.noderpc.disks import DiskSpec
from common.noderpc.mirrors import MirrorDevice, MirrorReport, Mirrors
from noded.storage.drbd.upkeep import MirrorUpkeep
from noded.system.turns import Turns


class MirrorHandlers(Mirrors):
    """Carried out by the driver of mirrored disks; in turn with what else is asked of a disk."""

    def __init__(self, storage: MirrorUpkeep | None, turns: Turns) -> None:
        """Ask ``storage``; ``turns`` are those of the calls about disks."""
        self._storage = storage
        self._turns = turns

    async def status(self, *, disks: tuple[DiskSpec, ...]) -> tuple[MirrorReport | None, ...]:
        return await self._there.status(disks)

    async def devices(self) -> tuple[MirrorDevice, ...]:
        return await self._there.devices()

    async def take_away(self, *, disk: DiskId) -> None:
        async with self._turns.of(disk):
            await self._there.take_away(disk)

    async def begin(self, *, disks: tuple[DiskSpec, ...], full: bool) -> None:
        await self._each(disks, lambda disk: self._there.begin(disk, full=full))

    async def declare_good(self, *, disks: tuple[DiskSpec, ...]) -> None:
        await self._each(disks, self._there.declare_good)

    async def give_up(self, *, disks: tuple[DiskSpec, ...]) -> None:
        await self._each(disks, self._there.give_up)

    async def connect(self, *, disks: tuple[DiskSpec, ...], discard: bool) -> None:
        await self._each(disks, lambda disk: self._there.connect(disk, discard=discard))

    async def set_aside(self, *, disks: tuple[DiskSpec, ...]) -> None:
        await self._each(disks, self._there.set_aside)

    async def take_back(self, *, disks: tuple[DiskSpec, ...]) -> None:
        await self._each(disks, self._there.take_back)

    async def drop_aside(self, *, disks: tuple[DiskSpec, ...]) -> None:
        await self._each(disks, self._there.drop_aside)

    @property
    def _there(self) -> MirrorUpkeep:
        if self._storage is None:
            raise NodeFailure("This node cannot keep mirrored disks.")
        return self._storage

    async def _each(
        self, disks: tuple[DiskSpec, ...], action: Callable[[DiskSpec], Awaitable[None]]
    ) -> None:
        for disk in disks:
            async with self._turns.of(disk.instance):
                await action(disk)
