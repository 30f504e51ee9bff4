"""Disks that are files: ``file``, on one node, ``sharedfile`` and ``gluster``, seen by all."""

import posixpath
from collections.abc import Callable

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.cluster import Cluster
from common.model.disk import FileBacking, GlusterBacking
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.template import DiskTemplate
from common.names import DiskId, MiB
from common.noderpc.disks import DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.kind import DiskKind, NewDisk, kept_beside


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
    ) -> None:
        """Keep disks below what ``directory`` returns; ``option`` is what it is set with."""
        super().__init__(template)
        self.unusable = unusable
        self._directory = directory
        self._option = option
        self._backing = backing

    def pool(self, cluster: Cluster) -> Pool | None:
        directory = self._directory(cluster)
        return Pool(kind=PoolKind.DIRECTORY, name=directory) if directory else None

    def new_backing(self, cluster: Cluster, new: NewDisk) -> FileBacking:
        pool = self.pool(cluster)
        if pool is None:
            raise InvalidRequest(
                f"This cluster has no directory for {self.template} disks; it is set with "
                f"“gnt-cluster modify {self._option}”."
            )
        path = f"{pool.name}/{new.instance}/{new.disk}.raw"
        return self._backing(path=path, shared=self.traits.is_external)

    def kept_in(self, disk: DiskSpec, uuid: DiskId, room: MiB) -> SnapshotSpec | None:  # noqa: ARG002
        """Keep it in a file beside it, which shares with it what neither has changed."""
        if not self.traits.keeps_snapshots:
            return None
        assert isinstance(disk.backing, FileBacking)
        path = posixpath.join(posixpath.dirname(disk.backing.path), f"{uuid}.snapshot")
        return kept_beside(disk, uuid, replace(disk.backing, path=path))


FILE = DirectoryKind(
    DiskTemplate.FILE,
    lambda cluster: cluster.file_storage_dir,
    option="--file-storage-dir",
    unusable="ENODEFILESTORAGEPATHUNUSABLE",
)
SHARED_FILE = DirectoryKind(
    DiskTemplate.SHAREDFILE,
    lambda cluster: cluster.shared_file_storage_dir,
    option="--shared-file-storage-dir",
    unusable="ENODESHAREDFILESTORAGEPATHUNUSABLE",
)
GLUSTER = DirectoryKind(
    DiskTemplate.GLUSTER,
    lambda cluster: cluster.gluster_storage_dir,
    option="--gluster-storage-dir",
    unusable="ENODEGLUSTERSTORAGEPATHUNUSABLE",
    backing=GlusterBacking,
)
