"""Calls about copies of this node's disks."""

import asyncio

from common.errors import InvalidRequest
from common.names import TaskId, is_uuid
from common.noderpc.copies import (
    Compression,
    Copies,
    CopyId,
    Offer,
    Patience,
    Peer,
    Rate,
    Stranger,
)
from common.noderpc.disks import DiskSpec
from noded.copies.interface import Copier
from noded.copies.progress import sentence, share
from noded.system.turns import Turns
from noded.tasks.registry import Progress, TaskRegistry

LOOK_EVERY_S = 0.5
TELL_EVERY_S = 30.0  # or with each hundredth of it: jobs keep what they were told


class CopyHandlers(Copies):
    """Carried out by the copier, one call at a time for each copy."""

    def __init__(self, copier: Copier, tasks: TaskRegistry) -> None:
        self._copier, self._tasks = copier, tasks
        self._turns = Turns()

    async def offer(
        self, *, copy: CopyId, disk: DiskSpec, peer: Peer, compression: Compression, rate: Rate
    ) -> Offer:
        _check(disk)
        async with self._turns.of(copy):
            return await self._copier.offer(copy, disk, peer, compression, rate)

    async def begin_fetch(
        self, *, copy: CopyId, disk: DiskSpec, peer: Peer, host: str, offer: Offer, task: TaskId
    ) -> None:
        _check(disk)
        async with self._turns.of(copy):
            await self._copier.fetch(copy, disk, peer, host, offer)
        self._tasks.begin(task, lambda progress: self._follow(copy, progress))

    async def begin_expect(
        self,
        *,
        copy: CopyId,
        disk: DiskSpec,
        peer: Stranger,
        wait_s: Patience,
        task: TaskId,
        until_confirmed: bool = False,
        beside: tuple[CopyId, ...] = (),
    ) -> Offer:
        _check(disk)
        async with self._turns.of(copy):
            offer = await self._copier.expect(
                copy, disk, peer, wait_s, until_confirmed=until_confirmed
            )

        self._tasks.begin(task, lambda progress: self._see_arrive(copy, beside, progress))
        return offer

    async def begin_confirm(self, *, copy: CopyId, task: TaskId) -> None:
        async with self._turns.of(copy):
            await self._copier.confirm(copy)
        self._tasks.begin(task, lambda progress: self._follow(copy, progress))

    async def begin_send(
        self,
        *,
        copy: CopyId,
        disk: DiskSpec,
        peer: Stranger,
        host: str,
        offer: Offer,
        compression: Compression,
        rate: Rate,
        task: TaskId,
        until_confirmed: bool = False,
        beside: tuple[CopyId, ...] = (),
    ) -> None:
        _check(disk)
        async with self._turns.of(copy):
            await self._copier.bring(
                copy, disk, peer, host, offer, compression, rate, until_confirmed=until_confirmed
            )
        self._tasks.begin(task, lambda progress: self._see_arrive(copy, beside, progress))

    async def has_arrived(self, *, copy: CopyId) -> bool:
        return await self._copier.has_arrived(copy)

    async def ensure_ended(self, *, copy: CopyId) -> None:
        async with self._turns.of(copy):
            await self._copier.end(copy)

    async def _see_arrive(
        self, copy: CopyId, beside: tuple[CopyId, ...], progress: Progress
    ) -> None:
        """Tell how far a copy is until all is there; of the last one only is that kept back."""
        await self._follow(copy, progress, heard=False)
        await self._copier.confirm_unless_last(copy, beside)

    async def _follow(self, copy: str, progress: Progress, *, heard: bool = True) -> None:
        """Tell how far a copy is until all is there, and the other side has ``heard`` so."""
        now = asyncio.get_running_loop().time
        told, told_at = -1, now()
        while not (fetched := await self._copier.look(copy)).has_ended:
            if fetched.is_there and not heard:
                return
            done = share(fetched)
            hundredth = int((done or 0) * 100)
            if hundredth != told or now() - told_at >= TELL_EVERY_S:
                told, told_at = hundredth, now()
                progress.tell(sentence(fetched), done)
            await asyncio.sleep(LOOK_EVERY_S)


def _check(disk: DiskSpec) -> None:
    if not (is_uuid(disk.id) and is_uuid(disk.instance)):
        raise InvalidRequest("Disks and instances are told apart by UUIDs.", disk=disk.id)
