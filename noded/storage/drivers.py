"""The drivers that keep a node's disks; one more is one more line."""

from collections.abc import Callable
from functools import partial

from common.model.backing import (
    BlockBacking,
    DrbdBacking,
    DumpBacking,
    ExtBacking,
    FileBacking,
    GlusterBacking,
    LvmBacking,
    Qcow2Backing,
    RbdBacking,
    StreamBacking,
)
from common.model.pool_kind import PoolKind
from common.names import NodeId
from common.paths import Paths
from noded.exports.directory import ExportDirectory
from noded.hypervisor.kvm.images import GuestsImages
from noded.operating_systems.streams import Streams
from noded.storage.adopted import AdoptedStorage
from noded.storage.attached import AttachedDevices
from noded.storage.directories import read_directories
from noded.storage.drbd.devices import MirrorDevices
from noded.storage.drbd.driver import MirrorStorage
from noded.storage.drbd.linux import LinuxDrbd
from noded.storage.drbd.upkeep import MirrorUpkeep
from noded.storage.ext.driver import ExtStorage
from noded.storage.file import FileStorage
from noded.storage.lvm.linux import LinuxVolumes
from noded.storage.plain import PlainStorage
from noded.storage.qcow2.driver import Qcow2Storage
from noded.storage.rbd.driver import RbdStorage
from noded.storage.storages import Storages


def storages(paths: Paths, exports: ExportDirectory, me: Callable[[], NodeId]) -> Storages:
    """Return the drivers of a node, by what they keep; ``me`` tells which node it is."""
    directories = partial(read_directories, paths.ssconf)
    files, volumes = FileStorage(directories), LinuxVolumes()
    plain, mirrors = PlainStorage(volumes), MirrorDevices(volumes, LinuxDrbd(), me)
    attached = AttachedDevices(paths.attached)
    return Storages(
        {
            FileBacking: files,
            GlusterBacking: files,
            Qcow2Backing: Qcow2Storage(directories, files, GuestsImages(paths.instances)),
            LvmBacking: plain,
            DrbdBacking: MirrorStorage(mirrors),
            ExtBacking: ExtStorage(paths.providers(), attached),
            RbdBacking: RbdStorage(attached),
            BlockBacking: AdoptedStorage(attached),
            DumpBacking: exports,
            StreamBacking: Streams(paths.os_runs),
        },
        {PoolKind.DIRECTORY: files, PoolKind.VOLUME_GROUP: plain},
        MirrorUpkeep(mirrors),
    )
