"""Storages that keep disks in files, real and fake, and what happens behind their backs."""

import asyncio
import fcntl
import os
import shutil
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

import pytest
from msgspec.structs import replace

from common.model.backing import FileBacking, GlusterBacking, Qcow2Backing
from common.model.pool import Pool
from common.names import DiskId, InstanceId, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.facts import StorageReport
from noded.storage.directories import Directories, path_of
from noded.storage.fake import FakeFiles, FakeStorage
from noded.storage.file import FileStorage
from noded.storage.interface import PoolDriver, Storage
from noded.storage.qcow2.driver import Qcow2Storage
from noded.storage.qcow2.guests import NobodyHasThem
from tests.support.disks import directory
from tests.support.volumes import ANOTHER

T = TypeVar("T")
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")
DISK_A = DiskId("dddddddd-0000-4000-8000-00000000000a")
DISK_B = DiskId("dddddddd-0000-4000-8000-00000000000b")


class KeepsDisks(Storage, PoolDriver, Protocol):
    """What keeps disks of one kind, in pools of one kind."""


class Rig(Protocol):
    """A storage of any kind, and ways to change the world behind its back."""

    @property
    def storage(self) -> KeepsDisks: ...
    @property
    def pool(self) -> Pool: ...
    def disk(self, name: str, *, id: DiskId, size: int) -> DiskSpec: ...
    def unmount(self) -> None: ...
    def use(self, path: str) -> None: ...

    def occupy(self, disk: DiskSpec) -> Callable[[], bool]:
        """Put the disk ANOTHER where one would be; return what tells whether it is there still."""


class OfFiles:
    """Disks below a directory."""

    directories: Directories
    storage: KeepsDisks

    @property
    def pool(self) -> Pool:
        return directory(self.directories.local)

    def disk(self, name: str, *, id: DiskId, size: int) -> DiskSpec:
        return at(f"{self.directories.local}/{name}", id=id, size=size)

    def occupy(self, disk: DiskSpec) -> Callable[[], bool]:
        another = replace(disk, id=ANOTHER)
        run(self.storage.ensure_present(another))
        return lambda: run(self.storage.find(another)) is not None


class FakeRig(OfFiles):
    def __init__(self, root: Path) -> None:
        self.directories = Directories(local=f"{root}/local", shared=f"{root}/shared")
        self.files = FakeFiles()
        self.storage = FakeStorage(lambda: self.directories, local=self.files, shared=FakeFiles())

    def unmount(self) -> None:
        self.files.mounted = False

    def use(self, path: str) -> None:
        self.files.in_use.add(path)


class OfGluster(OfFiles):
    """Disks below the place of a Gluster volume."""

    @property
    def pool(self) -> Pool:
        return directory(self.directories.gluster)

    def disk(self, name: str, *, id: DiskId, size: int) -> DiskSpec:
        backing = GlusterBacking(path=f"{self.directories.gluster}/{name}")
        return DiskSpec(id=id, instance=WEB1, size=MiB(size), backing=backing)


class FakeGlusterRig(OfGluster):
    def __init__(self, root: Path) -> None:
        self.directories = Directories(gluster=f"{root}/gluster")
        self.files = FakeFiles()
        self.storage = FakeStorage(lambda: self.directories, local=FakeFiles(), shared=self.files)

    def unmount(self) -> None:
        self.files.mounted = False

    def use(self, path: str) -> None:
        self.files.in_use.add(path)


class FileRig(OfFiles):
    def __init__(self, root: Path) -> None:
        self.directories = Directories(local=f"{root}/local", shared=f"{root}/shared")
        Path(self.directories.local).mkdir()
        Path(self.directories.shared).mkdir()
        self.storage = FileStorage(lambda: self.directories)
        self.opened: list[int] = []

    def unmount(self) -> None:
        Path(self.pool.name).rmdir()

    def use(self, path: str) -> None:
        """Lock the file as QEMU locks its images."""
        self.opened.append(os.open(path, os.O_RDONLY))
        lock = struct.pack("hhqqi0q", fcntl.F_RDLCK, os.SEEK_SET, 100, 1, 0)
        fcntl.fcntl(self.opened[-1], fcntl.F_OFD_SETLK, lock)


class GlusterRig(OfGluster, FileRig):
    """A plain directory, where the kernel is made to tell that the volume is mounted."""

    def __init__(self, root: Path) -> None:
        self.directories = Directories(gluster=f"{root}/a volume")
        Path(self.directories.gluster).mkdir()
        self.mounts = mounted(self.directories.gluster, "127.0.0.1:/gv0")
        self.storage = FileStorage(lambda: self.directories, lambda: self.mounts)
        self.opened = []


class OfImages(OfFiles):
    """Disks in images, which are called by their UUIDs."""

    def disk(self, name: str, *, id: DiskId, size: int) -> DiskSpec:
        path = f"{self.directories.local}/{name.split('/')[0]}/{id}.qcow2"
        backing = Qcow2Backing(path=path, shared=False)
        return DiskSpec(id=id, instance=WEB1, size=MiB(size), backing=backing)


class FakeImageRig(OfImages, FakeRig):
    pass


class Images(Qcow2Storage, PoolDriver):
    """Disks in images, in pools that are directories as those of other files."""

    def __init__(self, directories: Callable[[], Directories]) -> None:
        self.files = FileStorage(directories)
        super().__init__(directories, self.files, NobodyHasThem())

    async def inventory(self, pool: Pool) -> tuple[str, ...]:
        return await self.files.inventory(pool)

    async def space(self, pool: Pool) -> StorageReport:
        return await self.files.space(pool)


class ImageRig(OfImages, FileRig):
    def __init__(self, root: Path) -> None:
        if not shutil.which("qemu-img"):
            pytest.skip("qemu-img IS NOT INSTALLED: images were not tested")
        super().__init__(root)
        self.images = self.storage = Images(lambda: self.directories)

    def occupy(self, disk: DiskSpec) -> Callable[[], bool]:
        """Put another file there: an image is called by the UUID of its disk."""
        another = at(path_of(disk), id=ANOTHER)
        run(self.images.files.ensure_present(another))
        return lambda: run(self.images.files.find(another)) is not None


def mounted(path: str, source: str, kind: str = "fuse.glusterfs") -> str:
    """Return what the kernel tells when something is mounted; see proc_pid_mountinfo(5)."""
    point = path.replace(" ", "\\040")
    return (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"93 22 0:52 / {point} rw,relatime shared:49 - {kind} {source} rw,user_id=0\n"
    )


def run(work: Awaitable[T]) -> T:
    async def main() -> T:
        return await work

    return asyncio.run(main())


def disk(rig: Rig, name: str = "web1/disk0", *, id: DiskId = DISK_A, size: int = 8) -> DiskSpec:
    return rig.disk(name, id=id, size=size)


def at(path: str, *, id: DiskId = DISK_A, size: int = 8, shared: bool = False) -> DiskSpec:
    backing = FileBacking(path=path, shared=shared)
    return DiskSpec(id=id, instance=WEB1, size=MiB(size), backing=backing)
