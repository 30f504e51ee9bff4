"""Disks that are files: ``file``, on one node, ``sharedfile`` and ``gluster``, seen by all."""

from collections.abc import Callable

from common.errors import InvalidRequest
from common.model.cluster import Cluster
from common.model.disk import FileBacking, GlusterBacking
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.template import DiskTemplate
from coordinator.disks.kind import DiskKind, NewDisk


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
