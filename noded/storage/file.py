"""Disks as regular files, below a directory that the cluster set aside for them."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from common.errors import Conflict, GntError, NodeFailure
from common.messages import from_builtins
from common.model.backing import GlusterBacking
from common.model.disk_parameters import GlusterParameters
from common.model.pool import Pool
from common.names import MiB
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.facts import StorageReport
from common.noderpc.snapshots import SnapshotSpec
from noded.storage import cloning
from noded.storage.directories import Directories, as_file, check_listable, locate, path_of
from noded.storage.file_calls import allocate, explain, is_locked, write_label
from noded.storage.interface import PoolDriver, Storage
from noded.storage.mounts import check_gluster, read_mounts
from noded.storage.opening import open_disk
from noded.storage.place import MIB, NEVER_BY_LINK, Place
from noded.system.threads import in_thread

T = TypeVar("T")


class FileStorage(Storage, PoolDriver):
    """Keeps each disk in a file, labelled with the disk's and the instance's UUID.

    The label (an extended attribute) tells a disk from whatever else got its path. A file
    system without such attributes works too; there, a file of the right size is the disk, and so
    is one that is called by the disk's UUID.
    """

    def __init__(
        self,
        directories: Callable[[], Directories],
        mounts: Callable[[], str] = read_mounts,
    ) -> None:
        """Ask ``directories`` before every call, since the master may publish new ones.

        A Gluster volume has to be mounted where its disks are: ``mounts`` tells what is.
        """
        self._directories = directories
        self._mounts = mounts

    async def ensure_present(self, disk: DiskSpec) -> None:
        await in_thread(self._at_place, "create", _create, disk)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        await in_thread(self._at_place, "delete", _delete, disk)

    async def grow(self, disk: DiskSpec) -> None:
        await in_thread(self._at_place, "grow", _grow, disk)

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        return await in_thread(self._at_place, "look at", _look, disk)

    def check_place(self, disk: DiskSpec) -> None:
        locate(as_file(disk.backing), self._directories())

    async def attach(self, disk: DiskSpec, access: Access) -> str:  # noqa: ARG002 -- a file is everybody's
        """Look whether it is there: a file needs no more."""
        os.close(await in_thread(self.open, disk))
        return path_of(disk)

    async def detach(self, disk: DiskSpec) -> None:
        """Do nothing: a file is not attached. Whoever shares it may go on using it."""
        self.check_place(disk)

    def open(self, disk: DiskSpec) -> int:
        self._check_mounted(disk)
        return open_disk(disk, self._directories())

    async def snapshot_problem(self, disk: DiskSpec) -> str:
        def look(place: Place, _: DiskSpec) -> str:
            return cloning.find_problem(place) if place.enter() else ""

        return await in_thread(self._at_place, "keep", look, disk)

    async def take_snapshots(self, wanted: Sequence[SnapshotSpec]) -> None:
        for each in wanted:
            await in_thread(self._with_snapshot, "keep", cloning.take, each)

    async def roll_back(self, snapshot: SnapshotSpec) -> None:
        await in_thread(self._with_snapshot, "roll back", cloning.roll_back, snapshot)

    async def inventory(self, pool: Pool) -> tuple[str, ...]:
        check_listable(pool.name, self._directories())
        if self._problem(pool):
            return ()
        return await in_thread(_list_files, pool.name)

    async def space(self, pool: Pool) -> StorageReport:
        return await in_thread(self._measure, pool)

    def _measure(self, pool: Pool) -> StorageReport:
        report = _measure(pool)
        problem = self._problem(pool)
        return replace(report, usable=False, problem=problem) if problem else report

    def _problem(self, pool: Pool) -> str:
        """Say what keeps the directory of a Gluster volume from being one."""
        if pool.name != self._directories().gluster:
            return ""
        try:
            check_gluster(self._mounts(), pool.name, volume="", how="")
        except NodeFailure as error:
            return error.message
        return ""

    def _check_mounted(self, disk: DiskSpec) -> None:
        """See that a Gluster disk does not end up beside the volume, on the node itself."""
        if isinstance(disk.backing, GlusterBacking):
            told = from_builtins(disk.parameters, GlusterParameters, what="its parameters")
            root, _ = locate(disk.backing, self._directories())
            how = f"mount -t glusterfs -o server-port={told.port} {told.host}:/{told.volume} {root}"
            check_gluster(self._mounts(), root, volume=told.volume, how=how)

    def _with_snapshot(
        self,
        doing: str,
        action: Callable[[Place, Place, SnapshotSpec], None],
        snapshot: SnapshotSpec,
    ) -> None:
        self._check_mounted(snapshot.of)
        where, kept = (
            locate(as_file(disk.backing), self._directories())
            for disk in (snapshot.of, snapshot.kept)
        )
        try:
            with Place(*where) as place, Place(*kept) as beside:
                action(place, beside, snapshot)
        except OSError as error:
            raise explain(error, doing, snapshot.of) from error

    def _at_place(self, doing: str, action: Callable[[Place, DiskSpec], T], disk: DiskSpec) -> T:
        self._check_mounted(disk)
        root, names = locate(as_file(disk.backing), self._directories())
        try:
            with Place(root, names) as place:
                return action(place, disk)
        except OSError as error:
            raise explain(error, doing, disk) from error


def _look(place: Place, disk: DiskSpec) -> DiskReport | None:
    found = place.examine(disk) if place.enter() else ""
    return None if isinstance(found, str) else found


def _create(place: Place, disk: DiskSpec) -> None:
    try:
        place.make()
        found = place.examine(disk)
        if found == "":
            _make_file(place, disk)
        elif isinstance(found, str):
            raise Conflict(
                f"{path_of(disk)} cannot become a disk: {found} is there.",
                path=path_of(disk),
            )
    except (OSError, GntError):
        place.leave_no_empty_directory()
        raise


def _make_file(place: Place, disk: DiskSpec) -> None:
    """Make the file under another name first, so that half a disk is never taken for one."""
    place.check_space(disk, disk.size)
    place.unlink(place.unfinished)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NEVER_BY_LINK
    descriptor = os.open(place.unfinished, flags, 0o600, dir_fd=place.directory)
    try:
        allocate(descriptor, disk.size * MIB)
        write_label(descriptor, disk.id, disk.instance)
        os.fsync(descriptor)
        place.finish()
    except OSError:
        place.unlink(place.unfinished)
        raise
    finally:
        os.close(descriptor)


def _grow(place: Place, disk: DiskSpec) -> None:
    found = place.examine(disk) if place.enter() else ""
    if isinstance(found, str):
        what = f"{found} is in its place" if found else "it is not there"
        raise NodeFailure(f"The disk {path_of(disk)} cannot be grown: {what}.", path=path_of(disk))
    if found.size >= disk.size:
        return
    place.check_space_to_grow(disk, MiB(disk.size - found.size))
    descriptor = place.open_file(os.O_RDWR)
    if descriptor is None:
        raise Conflict(f"{path_of(disk)} has just been replaced.", path=path_of(disk))
    present = os.fstat(descriptor).st_size
    try:
        # What is there stays as it is: the guest may have punched holes into it.
        allocate(descriptor, disk.size * MIB, present=present)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, present)  # a file system may have given a part of it
        raise
    finally:
        os.close(descriptor)


def _delete(place: Place, disk: DiskSpec) -> None:
    if not place.enter():
        return
    place.unlink(place.unfinished)
    if isinstance(place.examine(disk), DiskReport):
        _check_unused(place, disk)
        place.unlink(place.name)
    os.fsync(place.directory)
    place.leave_no_empty_directory()


def _check_unused(place: Place, disk: DiskSpec) -> None:
    descriptor = place.open_file(os.O_RDONLY)
    if descriptor is None:
        return  # it has been replaced since it was examined
    try:
        if is_locked(descriptor):
            raise NodeFailure(
                f"The disk {path_of(disk)} is in use by a running guest; stop it first.",
                path=path_of(disk),
            )
    finally:
        os.close(descriptor)


def _measure(pool: Pool) -> StorageReport:
    try:
        there = os.statvfs(pool.name)
        problem = "" if Path(pool.name).is_dir() else f"{pool.name} is no directory."
    except OSError as error:
        problem = f"Cannot use {pool.name}: {error.strerror}."
        return StorageReport(pool=pool, total=MiB(0), free=MiB(0), usable=False, problem=problem)
    if there.f_flag & os.ST_RDONLY:
        problem = f"{pool.name} is mounted read-only."
    total, free = (blocks * there.f_frsize // MIB for blocks in (there.f_blocks, there.f_bavail))
    return StorageReport(
        pool=pool, total=MiB(total), free=MiB(free), usable=not problem, problem=problem
    )


def _list_files(directory: str) -> tuple[str, ...]:
    def complain(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise NodeFailure(f"Cannot list {error.filename}: {error.strerror}.") from error

    return tuple(
        str(Path(parent) / name)
        for parent, _, files in os.walk(directory, onerror=complain)
        for name in files
    )
