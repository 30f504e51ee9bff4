"""Disks as files, as nodes are told of them."""

from common.model.backing import FileBacking, GlusterBacking
from common.model.disk import Mode
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import DiskId, InstanceId, MiB
from common.noderpc.disks import DiskSpec
from noded.copies.fake import FakeCopier, FakeWires
from noded.operating_systems.fake import FakeOsDriver
from noded.storage.fake import FakeStorage
from noded.storage.file import FileStorage
from noded.storage.storages import Storages

WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")


def file_disk(
    id: str,
    path: str,
    *,
    instance: InstanceId = WEB1,
    size: int = 8,
    mode: Mode = Mode.READ_WRITE,
    shared: bool = False,
) -> DiskSpec:
    return DiskSpec(
        id=DiskId(id), instance=instance, size=MiB(size), mode=mode,
        backing=FileBacking(path=path, shared=shared),
    )  # fmt: skip


def only_files(driver: FakeStorage | FileStorage) -> Storages:
    """What holds disks on a node that has nothing but files."""
    return Storages({FileBacking: driver, GlusterBacking: driver}, {PoolKind.DIRECTORY: driver})


def idle_copier(storage: FakeStorage) -> FakeCopier:
    """What copies disks on a node of which nobody asks that."""
    return FakeCopier(
        "beta", "192.0.2.2", FakeWires(), storages=only_files(storage), contents=storage
    )


def idle_os_driver(storage: FakeStorage) -> FakeOsDriver:
    """What runs scripts on a node of which nobody asks that."""
    return FakeOsDriver(only_files(storage), storage)


def directory(path: str) -> Pool:
    return Pool(kind=PoolKind.DIRECTORY, name=path)
