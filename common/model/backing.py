"""Where the bytes of a disk are: its backing, as it is stored with it and as nodes are told."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from common.messages import Order
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.names import Few, MiB, NodeId, Port


class Place(Order, kw_only=True):
    """Base of what a disk can be; in no pool that nodes report, unless it says otherwise."""

    @property
    @abstractmethod
    def where(self) -> str:
        """Return what a disk is called by those who look for it."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Return what a disk is in the pools of a node that has it, as nodes list them."""
        return ()

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Return the pools that are known from the disk alone; a directory is the cluster's."""
        return ()

    @property
    def thin_pool(self) -> str:
        """Return the thin pool that it takes space of as it is written to; none: ""."""
        return ""

    @property
    def has_own_format(self) -> bool:
        """Tell whether what is read where it is kept is not the disk byte for byte."""
        return False

    @property
    def minors(self) -> Mapping[NodeId, Few]:
        """Return the numbers of DRBD's devices on the nodes that have it as one."""
        return {}

    @property
    def provider(self) -> str:
        """Return of which external storage nodes need a program to reach it; none: ""."""
        return ""

    def takes(self, size: MiB, pool: Pool) -> MiB:
        """Return how much a disk of ``size`` takes of a pool, on each node that has it."""
        return MiB(0)

    def children(self, size: MiB) -> "tuple[tuple[LvmBacking, MiB], ...]":
        """Return the volumes, with their sizes, of which each node's copy of a disk is made."""
        return ()

    @abstractmethod
    def logical_id(self, nodes: tuple[NodeId, ...]) -> list[Any]:
        """Return where a disk is that ``nodes`` have, as Ganeti writes it; no secret is told."""

    def device_path(self, node: NodeId) -> str:
        """Return under which name a node has a disk."""
        return self.where


class FileBacking(Place, kw_only=True, tag="file"):
    """A regular file; ``shared`` when every node sees the same one."""

    path: str
    shared: bool

    @property
    def where(self) -> str:
        return self.path

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def takes(self, size: MiB, pool: Pool) -> MiB:
        is_inside = pool.kind is PoolKind.DIRECTORY and self.path.startswith(f"{pool.name}/")
        return size if is_inside else MiB(0)

    def logical_id(self, nodes: tuple[NodeId, ...]) -> list[Any]:
        return ["loop", self.path]

    def device_path(self, node: NodeId) -> str:
        return self.path


class LvmBacking(Place, kw_only=True, tag="lvm"):
    """A logical volume; the group is one of the node's, or of each node that has the disk."""

    group: str
    name: str
    thin_pool: str = ""  # of the group, in which it takes space as it is written to

    @property
    def where(self) -> str:
        return f"{self.group}/{self.name}"

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.where,)

    @property
    def pools(self) -> tuple[Pool, ...]:
        name = f"{self.group}/{self.thin_pool}" if self.thin_pool else self.group
        return (Pool(kind=PoolKind.VOLUME_GROUP, name=name),)

    def takes(self, size: MiB, pool: Pool) -> MiB:
        return size if pool in self.pools else MiB(0)

    def logical_id(self, nodes: tuple[NodeId, ...]) -> list[Any]:
        return [self.group, self.name]

    def device_path(self, node: NodeId) -> str:
        return f"/dev/{self.where}"


META_SIZE = MiB(128)
"""Of the volume beside a mirrored disk that says which of its blocks differ; enough for 4 TiB."""


class DrbdBacking(Place, kw_only=True, tag="drbd"):
    """A volume on each of two nodes, which DRBD keeps equal; all nodes have it under one name."""

    data: LvmBacking
    meta: LvmBacking  # what DRBD notes about the data
    port: Port  # TCP, on which the two talk about this disk alone
    minors: dict[NodeId, Few]  # the number of the device on each of the two
    secret: str  # by which one end proves to the other that it has this disk

    @property
    def where(self) -> str:
        return self.data.where

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.data.paths, *self.meta.paths)

    @property
    def pools(self) -> tuple[Pool, ...]:
        return tuple(dict.fromkeys((*self.data.pools, *self.meta.pools)))

    @property
    def thin_pool(self) -> str:
        return self.data.thin_pool

    def takes(self, size: MiB, pool: Pool) -> MiB:
        return MiB(self.data.takes(size, pool) + self.meta.takes(META_SIZE, pool))

    def children(self, size: MiB) -> tuple[tuple[LvmBacking, MiB], ...]:
        return (self.data, size), (self.meta, META_SIZE)

    def logical_id(self, nodes: tuple[NodeId, ...]) -> list[Any]:
        return [*nodes, self.port, *(self.minors[node] for node in nodes), None]

    def device_path(self, node: NodeId) -> str:
        return f"/dev/drbd{self.minors[node]}"

    def __repr__(self) -> str:
        """Leave the secret out: what is shown of a disk ends up in logs."""
        return (
            f"DrbdBacking(data={self.data!r}, meta={self.meta!r}, port={self.port}, "
            f"minors={self.minors}, secret=…)"
        )


class GlusterBacking(FileBacking, kw_only=True, tag="gluster"):
    """A file on a Gluster volume, which every node has mounted."""

    shared: bool = True


class Qcow2Backing(FileBacking, kw_only=True, tag="qcow2"):
    """A file in QEMU's own format: it takes space as it is written to, and keeps snapshots inside.

    Attributes:
        snapshot: what the image calls what it has kept; empty for what is on the disk now.
    """

    snapshot: str = ""

    @property
    def where(self) -> str:
        return f"{self.path}@{self.snapshot}" if self.snapshot else self.path

    @property
    def has_own_format(self) -> bool:
        return True


class Elsewhere(Place, kw_only=True):
    """Base of what no node keeps and all nodes reach."""


class BlockBacking(Elsewhere, kw_only=True, tag="block"):
    """A block device that was there before."""

    device: str

    @property
    def where(self) -> str:
        return self.device

    def logical_id(self, nodes: tuple[NodeId, ...]) -> list[Any]:
        return ["manual", self.device]


class RbdBacking(Elsewhere, kw_only=True, tag="rbd"):
    """An image of a Ceph cluster."""

    pool: str
    image: str
    user: str = ""  # none: as Ceph's configuration says

    @property
    def where(self) -> str:
        return f"{self.pool}/{self.image}"

    def logical_id(self, nodes: tuple[NodeId, ...]) -> list[Any]:
        return ["rbd", self.image]

    def device_path(self, node: NodeId) -> str:
        return f"/dev/rbd/{self.where}"


class ExtBacking(Elsewhere, kw_only=True, tag="ext"):
    """A volume that a provider of external storage keeps."""

    provider: str
    name: str
    parameters: dict[str, str] = {}  # what the provider is told of it

    @property
    def where(self) -> str:
        return f"{self.provider}/{self.name}"

    def logical_id(self, nodes: tuple[NodeId, ...]) -> list[Any]:
        return [self.provider, self.name]

    def device_path(self, node: NodeId) -> str:
        return self.name  # as the provider calls it


class DumpBacking(Place, kw_only=True, tag="dump"):
    """What was on a disk once, as part of an export; it is no instance's.

    Attributes:
        export: its name.
        name: of the file in it.
        is_finished: whether it can be made use of; one that is being made is elsewhere.
    """

    export: str
    name: str
    is_finished: bool = False

    @property
    def where(self) -> str:
        return f"{self.export}/{self.name}"

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.where,)

    def logical_id(self, nodes: tuple[NodeId, ...]) -> list[Any]:
        return [self.export, self.name]

    def device_path(self, node: NodeId) -> str:
        return self.name


class StreamBacking(Place, kw_only=True, tag="stream"):
    """What a script of an operating system writes, or reads, once; it takes the place of a disk.

    Attributes:
        run: the script's, on the node.
    """

    run: str

    @property
    def where(self) -> str:
        return f"the stream of the script {self.run}"

    def logical_id(self, nodes: tuple[NodeId, ...]) -> list[Any]:
        return [self.run]


Backing = (
    FileBacking
    | LvmBacking
    | DrbdBacking
    | GlusterBacking
    | Qcow2Backing
    | ExtBacking
    | RbdBacking
    | BlockBacking
    | DumpBacking
    | StreamBacking
)
"""Their tags tell them apart."""
