"""Writing zeros over what former volumes left: in the background, piece by piece."""

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from common.errors import NodeFailure
from common.names import MiB
from common.noderpc.disks import Unfinished
from common.tasks import Background
from common.units import format_mib
from noded.storage.lvm.device import open_device, size_of, zero
from noded.storage.lvm.refusals import not_there
from noded.storage.lvm.volumes import Volume
from noded.system.threads import in_thread

PIECE = MiB(64)  # between two looks whether it is still wanted
AT_ONCE = 2  # more would only have the heads of a disk move to and fro
WAIT_S = 20.0  # for the end of it, before whoever asks is told how far it is


@dataclass(slots=True)
class _Progress:
    total: MiB = MiB(0)  # known once it has begun
    done: MiB = MiB(0)


class Zeroing:
    """What is being zeroed on this node; it goes on while nobody asks how far it is."""

    def __init__(self) -> None:
        self._background = Background()
        self._going: dict[tuple[str, MiB], tuple[asyncio.Task[None], _Progress]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    async def have_zeros(
        self, volumes: Mapping[Volume, MiB], ends: Mapping[Volume, MiB] = MappingProxyType({})
    ) -> None:
        """Return when active volumes are zeros from where it is told, in MiB.

        Args:
            volumes: from where on.
            ends: up to where, of those that need not be zeros to their end.

        Raises:
            Unfinished: it goes on; to be asked again.
            NodeFailure: a volume could not be written, or somebody else has it open.
        """
        if not volumes:
            return
        works = {key: self._begin(*key, ends.get(key[0])) for key in volumes.items()}
        _, late = await asyncio.wait([task for task, _ in works.values()], timeout=WAIT_S)
        if late:
            done = MiB(sum(progress.done for _, progress in works.values()))
            total = MiB(sum(progress.total for _, progress in works.values()))
            raise Unfinished(
                f"{format_mib(done)} of {format_mib(total)} are zeroed; it goes on.",
                done_mib=done,
                total_mib=total,
            )
        for (volume, start), (task, _) in works.items():
            self._going.pop((volume.name, start), None)
            if task.cancelled():
                raise not_there(volume, "zeroed", "it is being removed, or grows")
            task.result()

    async def stop(self, volumes: Iterable[Volume]) -> None:
        """Zero no more of some volumes; return when nothing is written to them any more."""
        gone = {volume.name for volume in volumes}
        tasks = [self._going.pop(key)[0] for key in [*self._going] if key[0] in gone]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _begin(
        self, volume: Volume, start: MiB, end: MiB | None
    ) -> tuple[asyncio.Task[None], _Progress]:
        key = (volume.name, start)
        if key not in self._going:
            progress = _Progress()
            work = self._zero(volume, start, end, progress)
            task = self._background.start(work, name=f"zero {volume.name}")
            self._going[key] = task, progress
        return self._going[key]

    async def _zero(
        self, volume: Volume, start: MiB, upto: MiB | None, progress: _Progress
    ) -> None:
        # What is new nobody else may have; what has grown, its guest may.
        access = os.O_RDWR | (0 if start else os.O_EXCL)
        opened: list[int] = []  # also where this is stopped while a thread opens it
        async with self._places:
            try:
                await in_thread(lambda: opened.append(open_device(volume, access)))
                (descriptor,) = opened
                size = size_of(descriptor)
                end = size if upto is None else min(size, upto)
                progress.total = MiB(end - start)
                for begin in range(start, end, PIECE):
                    await in_thread(zero, descriptor, MiB(begin), MiB(min(begin + PIECE, end)))
                    progress.done = MiB(min(begin + PIECE, end) - start)
                await in_thread(os.fsync, descriptor)
            except OSError as error:
                raise NodeFailure(
                    f"The disk {volume.name} cannot be zeroed: {error.strerror}.",
                    volume=volume.name,
                ) from error
            finally:
                for descriptor in opened:
                    os.close(descriptor)
