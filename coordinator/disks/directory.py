"""Disks that are files: ``file``, on one node, ``sharedfile`` and ``gluster``, seen by all."""

import posixpath
import re
from collections.abc import Callable

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.backing import Backing, FileBacking, GlusterBacking, Qcow2Backing
from common.model.cluster import Cluster
from common.model.disk_parameters import FileParameters, ImageFormat
from common.model.parameters import settled
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.template import DiskTemplate
from common.names import DiskId, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.kind import DiskKind, NewDisk, kept_beside
from coordinator.disks.wish import DiskWish

# What is hidden is not for disks, and nothing leads out of the cluster's directory.
_NAME = r"[A-Za-z0-9_][A-Za-z0-9._+@-]{0,99}"
_BELOW = re.compile(rf"{_NAME}(/{_NAME}){{0,7}}/?")


class DirectoryKind(DiskKind):
    """Files below a directory of the cluster's, one for each disk."""

    def __init__(
        self,
        template: DiskTemplate,
        directory: Callable[[Cluster], str],
        *,
        option: str,
        unusable: str,
        backing: Callable[..., FileBacking] = FileBacking,
        heeds: frozenset[str] = frozenset(),
    ) -> None:
        """Keep disks below what ``directory`` returns; ``option`` is what it is set with."""
        super().__init__(template)
        self.heeds = heeds
        self.unusable = unusable
        self._directory = directory
        self._option = option
        self._backing = backing

    def pool(self, cluster: Cluster) -> Pool | None:
        directory = self._directory(cluster)
        return Pool(kind=PoolKind.DIRECTORY, name=directory) if directory else None

    def can_be_bad(self, backing: Backing) -> bool:
        return isinstance(backing, Qcow2Backing)  # by its tables

    def is_thin(self, backing: Backing) -> bool:
        return isinstance(backing, Qcow2Backing)

    def new_backing(self, cluster: Cluster, new: NewDisk) -> FileBacking:
        pool = self.pool(cluster)
        if pool is None:
            raise InvalidRequest(
                f"This cluster has no directory for {self.template} disks; it is set with "
                f"“gnt-cluster modify {self._option}”."
            )
        place = posixpath.join(pool.name, new.wish.directory, new.instance, new.disk)
        if self._format(cluster, new) is ImageFormat.QCOW2:
            return Qcow2Backing(path=f"{place}.qcow2", shared=self.traits.is_external)
        return self._backing(path=f"{place}.raw", shared=self.traits.is_external)

    def check_wish(self, wish: DiskWish) -> None:
        super().check_wish(wish)
        if wish.format and wish.format not in list(ImageFormat):
            raise InvalidRequest(
                f"A disk has the format {' or '.join(ImageFormat)}, and not “{wish.format}”."
            )
        if wish.directory and not _BELOW.fullmatch(wish.directory):
            raise InvalidRequest(
                f"“{wish.directory}” is no directory below the cluster's: give names with / in "
                "between, as in “fast” or “fast/web”, and none that begins with a dot."
            )

    def wish_of(self, cluster: Cluster, backing: Backing) -> DiskWish:
        if "format" not in self.heeds:
            return DiskWish()
        assert isinstance(backing, FileBacking)
        is_qcow2 = isinstance(backing, Qcow2Backing)
        return DiskWish(
            format=ImageFormat.QCOW2 if is_qcow2 else ImageFormat.RAW,
            directory=self._below(cluster, backing),
        )

    def _below(self, cluster: Cluster, backing: FileBacking) -> str:
        """Return the directory that was asked for; none if the cluster's has become another."""
        top = f"{self._directory(cluster)}/"
        own = posixpath.dirname(backing.path)
        return posixpath.dirname(own.removeprefix(top)) if own.startswith(top) else ""

    def _format(self, cluster: Cluster, new: NewDisk) -> ImageFormat:
        if "format" not in self.heeds:
            return ImageFormat.RAW
        layers = (cluster.diskparams.get(self.template, {}), new.parameters)
        return ImageFormat(new.wish.format or settled(FileParameters, *layers).format)

    def kept_in(self, disk: DiskSpec, uuid: DiskId, room: MiB) -> SnapshotSpec | None:  # noqa: ARG002
        """Keep it in a file beside it, which shares with it what neither has changed.

        QEMU's own format keeps it inside.
        """
        if not self.traits.keeps_snapshots:
            return None
        assert isinstance(disk.backing, FileBacking)
        if isinstance(disk.backing, Qcow2Backing):
            return kept_beside(disk, uuid, replace(disk.backing, snapshot=uuid))
        path = posixpath.join(posixpath.dirname(disk.backing.path), f"{uuid}.snapshot")
        return kept_beside(disk, uuid, replace(disk.backing, path=path))


FILE = DirectoryKind(
    DiskTemplate.FILE,
    lambda cluster: cluster.file_storage_dir,
    option="--file-storage-dir",
    unusable="ENODEFILESTORAGEPATHUNUSABLE",
    heeds=frozenset({"format", "directory"}),
)
SHARED_FILE = DirectoryKind(
    DiskTemplate.SHAREDFILE,
    lambda cluster: cluster.shared_file_storage_dir,
    option="--shared-file-storage-dir",
    unusable="ENODESHAREDFILESTORAGEPATHUNUSABLE",
    heeds=frozenset({"format", "directory"}),
)
GLUSTER = DirectoryKind(
    DiskTemplate.GLUSTER,
    lambda cluster: cluster.gluster_storage_dir,
    option="--gluster-storage-dir",
    unusable="ENODEGLUSTERSTORAGEPATHUNUSABLE",
    backing=GlusterBacking,
)
