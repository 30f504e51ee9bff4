"""Disks that exist in memory only."""

from collections.abc import Callable

from common.errors import Conflict, NodeFailure
from common.names import MiB
from common.noderpc.disks import DiskReport, DiskSpec
from common.noderpc.facts import StorageReport
from common.units import format_mib
from noded.storage.directories import Directories, check_disk_path, check_listable, locate
from noded.storage.interface import Storage

TEBIBYTE = MiB(1 << 20)


class FakeFiles:
    """A file system; the one of shared disks is given to several nodes.

    ``mounted`` and ``in_use`` (paths) are for scenarios to change.
    """

    def __init__(self, capacity: MiB = TEBIBYTE) -> None:
        self.capacity = capacity
        self.disks: dict[str, DiskReport] = {}
        self.mounted = True
        self.in_use: set[str] = set()

    @property
    def free(self) -> MiB:
        return MiB(self.capacity - sum(disk.size for disk in self.disks.values()))


class FakeStorage(Storage):
    """One node's view of a file system of its own and of a shared one."""

    def __init__(
        self, directories: Callable[[], Directories], *, local: FakeFiles, shared: FakeFiles
    ) -> None:
        self._directories = directories
        self.local = local
        self.shared = shared

    async def ensure_present(self, disk: DiskSpec) -> None:
        files, path = self._locate(disk), disk.backing.path
        if not files.mounted:
            directory = self._directories().of(disk.backing)
            raise NodeFailure(
                f"The directory {directory} does not exist on this node; create or mount it.",
                path=directory,
            )
        there = files.disks.get(path)
        if there is not None and there.id != disk.id:
            raise Conflict(f"{path} cannot become a disk: the disk {there.id} is there.", path=path)
        if there is None:
            if files.free < disk.size:
                raise NodeFailure(
                    f"There is no space for a disk of {format_mib(disk.size)} at {path}: "
                    f"{format_mib(files.free)} are free.",
                    path=path, free_mib=files.free,
                )  # fmt: skip
            files.disks[path] = DiskReport(id=disk.id, instance=disk.instance, size=disk.size)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        if await self.find(disk) is not None:
            files, path = self._locate(disk), disk.backing.path
            if path in files.in_use:
                raise NodeFailure(
                    f"The disk {path} is in use by a running guest; stop it first.", path=path
                )
            del files.disks[path]

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        files = self._locate(disk)
        there = files.disks.get(disk.backing.path) if files.mounted else None
        return there if there is not None and there.id == disk.id else None

    def check_path(self, path: str) -> None:
        check_disk_path(path, self._directories())

    async def inventory(self, directories: tuple[str, ...]) -> tuple[str, ...]:
        check_listable(directories, self._directories())
        return tuple(
            sorted(
                path
                for files in (self.local, self.shared)
                for path in (files.disks if files.mounted else ())
                if any(path.startswith(directory + "/") for directory in directories)
            )
        )

    async def space(self, directory: str) -> StorageReport:
        files = self.shared if directory == self._directories().shared else self.local
        problem = "" if files.mounted else f"Cannot use {directory}: No such file or directory."
        return StorageReport(
            path=directory,
            total=files.capacity if files.mounted else MiB(0),
            free=files.free if files.mounted else MiB(0),
            usable=files.mounted,
            problem=problem,
        )

    def _locate(self, disk: DiskSpec) -> FakeFiles:
        locate(disk.backing, self._directories())
        return self.shared if disk.backing.shared else self.local
