"""Disks in files of QEMU's format, which keep their snapshots inside.

What is done to an image is done by qemu-img, or by the QEMU of the guest that has it open. What is
to be known of it is read here: so nothing has to be opened that may be open elsewhere.
"""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import PurePath

from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NodeFailure
from common.model.disk import Mode
from common.names import DiskId, MiB
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from noded.images.qcow2 import BadImage, Qcow2
from noded.storage.directories import Directories, locate, path_of
from noded.storage.file import FileStorage
from noded.storage.file_calls import explain, is_locked, write_label
from noded.storage.interface import Storage
from noded.storage.opening import open_disk
from noded.storage.place import MIB, NEVER_BY_LINK, Place
from noded.storage.qcow2 import commands
from noded.storage.qcow2.guests import OpenImages
from noded.storage.qcow2.image import as_image, examined, itself, named
from noded.system.execute import ENVIRONMENT, CommandFailed, Finished, execute
from noded.system.threads import in_thread

TIME_S = 100.0  # of one command; a disk of some TiB takes seconds

_DAMAGED = (1, 2)  # that is: not to be checked, or corrupt; 3 is wasted space

Run = Callable[..., Awaitable[Finished]]


class Qcow2Storage(Storage):
    """Keeps each disk in an image, labelled and placed as any file is."""

    def __init__(
        self,
        directories: Callable[[], Directories],
        files: FileStorage,
        guests: OpenImages,
        run: Run = execute,
    ) -> None:
        """Delete as ``files`` does; ``guests`` are asked to change what they have open."""
        self._directories, self._files, self._guests, self._run = directories, files, guests, run

    def check_place(self, disk: DiskSpec) -> None:
        locate(as_image(disk), self._directories())
        if PurePath(path_of(disk)).name != f"{itself(disk).id}.qcow2":
            raise InvalidRequest(f"{path_of(disk)} is no image of the disk {disk.id}.")

    async def ensure_present(self, disk: DiskSpec) -> None:
        self.check_place(disk)
        try:
            with Place(*locate(as_image(disk), self._directories())) as place:
                await in_thread(place.make)
                found = place.examine(disk)
                if found == "":
                    await self._make(place, disk)
                elif isinstance(found, str):
                    raise Conflict(
                        f"{path_of(disk)} cannot become a disk: {found} is there.",
                        path=path_of(disk),
                    )
        except OSError as error:
            raise explain(error, "create", disk) from error

    async def _make(self, place: Place, disk: DiskSpec) -> None:
        """Make it under another name first, so that half an image is never taken for one."""
        place.check_space(disk, disk.size)
        place.unlink(place.unfinished)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NEVER_BY_LINK
        descriptor = os.open(place.unfinished, flags, 0o600, dir_fd=place.directory)
        try:
            await self._do(commands.create(named(descriptor), disk.size))
            write_label(descriptor, disk.id, disk.instance)
            await in_thread(os.fsync, descriptor)
            place.finish()
        except (OSError, GntError):
            place.unlink(place.unfinished)
            place.leave_no_empty_directory()
            raise
        finally:
            os.close(descriptor)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        self.check_place(disk)
        name = DiskId(as_image(disk).snapshot)
        if not name:
            await self._files.ensure_absent(disk)
        elif await self.find(disk) is not None and not await self._guests.forget(
            itself(disk), name
        ):
            await self._change(disk, commands.forget, name)

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        self.check_place(disk)
        there = await self._files.find(itself(disk))
        if there is None:
            return None
        try:
            return await in_thread(self._look, disk, there)
        except (BadImage, OSError) as error:
            return replace(there, id=disk.id, size=disk.size, problem=f"Its image is bad: {error}.")

    def _look(self, disk: DiskSpec, there: DiskReport) -> DiskReport | None:
        descriptor = open_disk(replace(itself(disk), mode=Mode.READ_ONLY), self._directories())
        try:
            image, taken = Qcow2(descriptor), os.fstat(descriptor).st_blocks * 512
            size, name = image.size, as_image(disk).snapshot
            kept = {each: place[2] for each, place in image.snapshots()}
        finally:
            os.close(descriptor)
        if name and name not in kept:
            return None
        allocated = MiB(-(-taken // MIB))
        size = kept.get(name, size)
        return replace(there, id=disk.id, size=MiB(-(-size // MIB)), allocated=allocated)

    async def problem(self, disk: DiskSpec) -> str:
        """Say what is wrong with an image; one that a guest has open is not read in whole."""
        found = await self.find(disk)
        if found is None or found.problem:
            return found.problem if found else ""
        async with self._opened(disk, Mode.READ_ONLY) as descriptor:
            if is_locked(descriptor):
                return ""
            before = os.fstat(descriptor).st_mtime_ns
            try:
                await self._do(commands.check(named(descriptor)))
            except CommandFailed as error:
                # Who began to write to it meanwhile has had it look bad.
                is_as_read = os.fstat(descriptor).st_mtime_ns == before
                if (
                    error.detail.get("status") in _DAMAGED
                    and is_as_read
                    and not is_locked(descriptor)
                ):
                    return f"Its image is bad: {error.message}"
        return ""

    async def grow(self, disk: DiskSpec) -> None:
        """Grow an image, or have the guest of this node do so that has it open."""
        found = await self.find(disk)
        if found is None or found.problem:
            what = found.problem if found else "It is not there."
            raise NodeFailure(f"The disk {path_of(disk)} cannot be grown. {what}")
        if found.size >= disk.size:
            return
        with Place(*locate(as_image(disk), self._directories())) as place:
            place.enter()
            place.check_space_to_grow(disk, MiB(disk.size - found.size))
        async with self._opened(disk) as descriptor:
            if not is_locked(descriptor):
                await in_thread(examined, descriptor, itself(disk))
                await self._do(commands.grow(named(descriptor), disk.size))
            elif not await self._guests.grow(disk):
                raise NodeFailure(
                    f"The disk {path_of(disk)} cannot be grown: it is in use, and not by a guest "
                    "of this node that is known to have it. Try again when it is not.",
                    path=path_of(disk),
                )

    async def attach(self, disk: DiskSpec, access: Access) -> str:  # noqa: ARG002 -- a file is everybody's
        """Look whether it is there: a file needs no more."""
        os.close(await in_thread(self.open, disk))
        return path_of(disk)

    async def detach(self, disk: DiskSpec) -> None:
        """Do nothing: a file is not attached. Whoever shares it may go on using it."""
        self.check_place(disk)

    async def snapshot_problem(self, disk: DiskSpec) -> str:
        if disk.mode is Mode.READ_ONLY and await self.find(disk) is not None:
            async with self._opened(disk, Mode.READ_ONLY) as descriptor:
                if is_locked(descriptor):
                    return (
                        f"The image {path_of(disk)} may only be read by the guest that has it, and "
                        "keeps nothing inside meanwhile: stop the guest first, or have such disks "
                        "in the format raw."
                    )
        return ""

    async def take_snapshots(self, wanted: Sequence[SnapshotSpec]) -> None:
        for each in wanted:
            there = await self.find(each.of)
            if there is None or there.problem:
                raise NodeFailure(f"The disk {path_of(each.of)} is not there, or its image is bad.")
            if await self.find(each.kept) is None and not await self._guests.keep(
                each.of, each.kept.id
            ):
                await self._change(each.of, commands.keep, each.kept.id)

    async def roll_back(self, snapshot: SnapshotSpec) -> None:
        if await self.find(snapshot.kept) is None:
            raise NodeFailure(f"{path_of(snapshot.of)} has kept no {snapshot.kept.id}.")
        await self._change(snapshot.of, commands.go_back, snapshot.kept.id)

    def open(self, disk: DiskSpec) -> int:
        """Open the file; what is kept inside can only be read.

        Raises:
            NodeFailure: it is not there, or no image that stands for itself.
        """
        self.check_place(disk)
        descriptor = open_disk(itself(disk), self._directories())
        try:
            examined(descriptor, disk)
        except NodeFailure:
            os.close(descriptor)
            raise
        return descriptor

    async def _change(
        self, disk: DiskSpec, command: Callable[[str, DiskId], commands.Command], name: DiskId
    ) -> None:
        async with self._opened(disk) as descriptor:
            if is_locked(descriptor):
                raise NodeFailure(
                    f"The disk {path_of(disk)} is in use by a running guest, or is being copied; "
                    "stop it first.",
                    path=path_of(disk),
                )
            await in_thread(examined, descriptor, itself(disk))
            await self._do(command(named(descriptor), name))
            await in_thread(os.fsync, descriptor)

    async def _do(self, command: commands.Command) -> None:
        if shutil.which(command[0], path=ENVIRONMENT["PATH"]) is None:
            raise NodeFailure(
                f"This node has no {command[0]}, which disks in the format qcow2 need; install the "
                "package qemu-utils."
            )
        await self._run(*command, timeout_s=TIME_S)

    @asynccontextmanager
    async def _opened(self, disk: DiskSpec, mode: Mode = Mode.READ_WRITE) -> AsyncIterator[int]:
        there = replace(itself(disk), mode=mode)
        descriptor = await in_thread(open_disk, there, self._directories())
        with closing(os.fdopen(descriptor, "rb", buffering=0)):
            yield descriptor
