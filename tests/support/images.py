"""Images as disks: what is on one, and what it keeps inside."""

import os

from msgspec.structs import replace

from common.model.backing import Qcow2Backing
from common.model.disk import Mode
from common.names import DiskId, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from noded.images.contents import Contents, contents_of, layout_of
from noded.storage.interface import Storage
from tests.support.file_rigs import DISK_B


class Opened:
    """An image as who copies it has it open."""

    def __init__(self, storage: Storage, disk: DiskSpec) -> None:
        self._descriptor = storage.open(disk)
        self.contents: Contents = contents_of(self._descriptor, layout_of(disk.backing))

    def close(self) -> None:
        os.close(self._descriptor)


def kept_in(of: DiskSpec, name: DiskId = DISK_B) -> SnapshotSpec:
    """Return a snapshot of an image, which is kept inside."""
    assert isinstance(of.backing, Qcow2Backing)
    kept = replace(of, id=name, mode=Mode.READ_ONLY, backing=replace(of.backing, snapshot=name))
    return SnapshotSpec(of=of, kept=kept, room=MiB(0))
