"""Disks that exist in memory only."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from common.errors import Conflict, NodeFailure
from common.model.backing import Qcow2Backing
from common.model.pool import Pool
from common.names import DiskId, MiB
from common.noderpc.disks import Access, DiskReport, DiskSpec
from common.noderpc.facts import StorageReport
from common.noderpc.snapshots import SnapshotSpec
from common.units import format_mib
from noded.storage.directories import Directories, as_file, check_listable, locate
from noded.storage.interface import PoolDriver, Storage

TEBIBYTE = MiB(1 << 20)


class FakeFiles:
    """A file system; the one of shared and Gluster disks is given to several nodes.

    ``mounted`` and ``in_use`` (paths) are for scenarios to change.
    """

    def __init__(self, capacity: MiB = TEBIBYTE) -> None:
        self.capacity = capacity
        self.disks: dict[str, DiskReport] = {}
        self.contents: dict[str, str] = {}  # a word for what is on a disk; none: zeros
        self.mounted = True
        self.in_use: set[str] = set()
        self.bad: set[str] = set()  # images

    @property
    def free(self) -> MiB:
        sizes = (disk.size for path, disk in self.disks.items() if not _is_inside(path))
        return MiB(self.capacity - sum(sizes))


def _is_inside(path: str) -> bool:
    """Tell whether what is called so is a part of an image."""
    return "@" in path


class FakeStorage(Storage, PoolDriver):
    """One machine's view of a file system of its own and of a shared one.

    It is as strict as block devices are: what is not attached cannot be opened, and what is in
    use cannot be detached.
    """

    def __init__(
        self,
        directories: Callable[[], Directories],
        *,
        local: FakeFiles,
        shared: FakeFiles,
        uses: Callable[[DiskId], bool] = lambda _: False,
    ) -> None:
        """Make a storage; ``uses`` tells whether a guest of this machine has a disk open."""
        self._directories = directories
        self._uses = uses
        self.local = local
        self.shared = shared
        self.clones = False  # whether snapshots can be taken
        self.attached: dict[DiskId, Access] = {}  # until the machine loses its power

    def check_place(self, disk: DiskSpec) -> None:
        locate(as_file(disk.backing), self._directories())

    async def ensure_present(self, disk: DiskSpec) -> None:
        files, path = self._locate(disk), self._name(disk)
        if not files.mounted:
            raise self._unreachable(disk)
        there = files.disks.get(path)
        if there is not None and there.id != disk.id:
            raise Conflict(f"{path} cannot become a disk: the disk {there.id} is there.", path=path)
        if there is None:
            if files.free < disk.size:
                raise NodeFailure(
                    f"There is no space for a disk of {format_mib(disk.size)} at {path}: "
                    f"{format_mib(files.free)} are free.",
                    path=path,
                    free_mib=files.free,
                )
            files.disks[path] = DiskReport(id=disk.id, instance=disk.instance, size=disk.size)

    async def ensure_absent(self, disk: DiskSpec) -> None:
        if await self.find(disk) is not None:
            self._check_unused(disk)
            if disk.id in self.attached:
                raise NodeFailure(f"The disk {self._name(disk)} is attached; detach it first.")
            files, name = self._locate(disk), self._name(disk)
            for each in [name, *(path for path in files.disks if path.startswith(f"{name}@"))]:
                del files.disks[each]
                files.contents.pop(each, None)

    async def grow(self, disk: DiskSpec) -> None:
        there, files, path = await self.find(disk), self._locate(disk), self._name(disk)
        if there is None:
            raise NodeFailure(f"The disk {path} cannot be grown: it is not there.", path=path)
        if there.size >= disk.size:
            return
        if files.free < disk.size - there.size:
            raise NodeFailure(
                f"There is no space to grow the disk {path} by "
                f"{format_mib(MiB(disk.size - there.size))}: {format_mib(files.free)} are free.",
                path=path,
                free_mib=files.free,
            )
        files.disks[path] = replace(there, size=disk.size)

    async def find(self, disk: DiskSpec) -> DiskReport | None:
        files = self._locate(disk)
        there = files.disks.get(self._name(disk)) if files.mounted else None
        if there is None or there.id != disk.id:
            return None
        if isinstance(disk.backing, Qcow2Backing):
            return replace(there, allocated=there.size if self.read(disk) else MiB(0))
        return there

    async def attach(self, disk: DiskSpec, access: Access) -> str:
        if await self.find(disk) is None:
            path = self._name(disk)
            raise NodeFailure(f"The disk {path} cannot be attached: it is not there.", path=path)
        self.attached[disk.id] = access
        return self._name(disk)

    async def detach(self, disk: DiskSpec) -> None:
        self.check_place(disk)
        if disk.id in self.attached:
            self._check_unused(disk)
            del self.attached[disk.id]

    async def problem(self, disk: DiskSpec) -> str:
        return "Its image is bad." if self._name(disk) in self._locate(disk).bad else ""

    async def snapshot_problem(self, disk: DiskSpec) -> str:
        can = self.clones or isinstance(disk.backing, Qcow2Backing)
        return "" if can else f"Nothing shares its data with {self._name(disk)}."

    async def take_snapshots(self, wanted: Sequence[SnapshotSpec]) -> None:
        for each in wanted:
            if problem := await self.snapshot_problem(each.of):
                raise NodeFailure(problem)
            if await self.find(each.of) is None:
                name = self._name(each.of)
                raise NodeFailure(f"The disk {name} cannot be kept as it is: it is not there.")
            await self.ensure_present(each.kept)
            self.write(each.kept, self.read(each.of))

    async def roll_back(self, snapshot: SnapshotSpec) -> None:
        if snapshot.of.id in self.attached:
            raise NodeFailure(f"The disk {self._name(snapshot.of)} is attached; detach it first.")
        for each in (snapshot.of, snapshot.kept):
            if await self.find(each) is None:
                raise NodeFailure(f"The disk {self._name(each)} is not there.")
        self.write(snapshot.of, self.read(snapshot.kept))

    def open(self, disk: DiskSpec) -> int:
        """Refuse what could not be opened; there is nothing to be read from what it returns."""
        self.check_place(disk)
        if disk.id not in self.attached:
            raise NodeFailure(
                f"The disk {self._name(disk)} cannot be opened: it is not attached.",
                disk=disk.id,
            )
        return -1

    async def inventory(self, pool: Pool) -> tuple[str, ...]:
        check_listable(pool.name, self._directories())
        return tuple(
            path
            for files in (self.local, self.shared)
            for path in (files.disks if files.mounted else ())
            if path.startswith(f"{pool.name}/") and not _is_inside(path)
        )

    async def space(self, pool: Pool) -> StorageReport:
        everywhere = (self._directories().shared, self._directories().gluster)
        files = self.shared if pool.name in everywhere else self.local
        problem = "" if files.mounted else f"Cannot use {pool.name}: No such file or directory."
        return StorageReport(
            pool=pool,
            total=files.capacity if files.mounted else MiB(0),
            free=files.free if files.mounted else MiB(0),
            usable=files.mounted,
            problem=problem,
        )

    def read(self, disk: DiskSpec) -> str:
        """Return the word that stands for what is on a disk."""
        return self._locate(disk).contents.get(self._name(disk), "")

    def write(self, disk: DiskSpec, word: str) -> None:
        self._locate(disk).contents[self._name(disk)] = word

    def ending(self, _: DiskSpec) -> str | None:
        """Tell that no script writes what is on a disk."""
        return ""

    def _check_unused(self, disk: DiskSpec) -> None:
        path = self._name(disk)
        if path in self._locate(disk).in_use or self._uses(disk.id):
            raise NodeFailure(
                f"The disk {path} is in use by a running guest; stop it first.", path=path
            )

    def _locate(self, disk: DiskSpec) -> FakeFiles:
        locate(as_file(disk.backing), self._directories())
        return self.shared if as_file(disk.backing).shared else self.local

    def _name(self, disk: DiskSpec) -> str:
        return disk.backing.where

    def _unreachable(self, disk: DiskSpec) -> NodeFailure:
        directory = self._directories().of(as_file(disk.backing))
        return NodeFailure(
            f"The directory {directory} does not exist on this node; create or mount it.",
            path=directory,
        )
