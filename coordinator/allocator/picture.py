"""A frozen picture of the cluster: everything a placement depends on.

The order of groups, nodes and instances counts: it breaks ties, as in hail. Memory and
disk are in MiB.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from common.model.group import AllocationPolicy
from common.model.instance import AdminState
from common.model.policy import InstancePolicy
from common.model.template import DiskTemplate
from common.names import GroupName, InstanceName, MiB, NodeName
from coordinator.allocator.columns import InstanceColumns

LOCAL = frozenset({DiskTemplate.PLAIN, DiskTemplate.DRBD})
"""Templates that take space of the node's volume group."""

ON_SHARED_STORAGE = frozenset(
    {
        DiskTemplate.DISKLESS,
        DiskTemplate.SHAREDFILE,
        DiskTemplate.BLOCKDEV,
        DiskTemplate.RBD,
        DiskTemplate.EXT,
        DiskTemplate.GLUSTER,
    }
)
"""Templates whose instances can run on any node without copying a disk."""

_DRBD_METADATA = 128  # MiB per disk


def disk_space(template: DiskTemplate, sizes: tuple[MiB, ...]) -> MiB:
    """Space that disks take on each of their nodes (Ganeti's ``disk_space_total``), in MiB."""
    if template in {DiskTemplate.DISKLESS, DiskTemplate.BLOCKDEV}:
        return MiB(0)
    extra = _DRBD_METADATA * len(sizes) if template is DiskTemplate.DRBD else 0
    return MiB(sum(sizes) + extra)


@dataclass(frozen=True, slots=True)
class Load:
    """What an instance is expected to use, relative to other instances."""

    cpu: float = 1.0
    memory: float = 1.0
    disk: float = 1.0
    network: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What an instance asks of its nodes, wherever they are.

    Attributes:
        disk: space taken on each node, see ``disk_space``.
        disks: size of each disk as the operator gave it; only policies look at them.
        disk_spindles: taken on nodes with exclusive storage; None if not known.
        auto_balance: whether the secondary node keeps memory free for it.
        forthcoming: a reservation; counts in what will be, not in what is.
    """

    name: InstanceName
    template: DiskTemplate
    memory: MiB
    vcpus: int
    disk: MiB = MiB(0)
    disks: tuple[MiB, ...] = ()
    spindle_use: int = 1
    disk_spindles: int | None = 0
    state: AdminState = AdminState.UP
    tags: frozenset[str] = frozenset()
    auto_balance: bool = True
    forthcoming: bool = False
    load: Load = Load()

    @property
    def is_local(self) -> bool:
        return self.template in LOCAL

    @property
    def used_memory(self) -> int:
        """Memory taken from the primary node now."""
        return self.memory if self.state is AdminState.UP and not self.forthcoming else 0

    @property
    def used_vcpus(self) -> int:
        """Processors taken from the primary node; an instance that is down keeps its."""
        return 0 if self.state is AdminState.OFFLINE else self.vcpus

    @property
    def reserved_memory(self) -> int:
        """Memory its secondary node keeps free, also for an instance that is down."""
        return self.memory if self.auto_balance and self.state is not AdminState.OFFLINE else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePicture(Demand):
    primary: NodeName
    secondary: NodeName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePicture:
    """What a node reports. Of one that is offline or not VM-capable, only the name counts.

    Attributes:
        reserved_memory: used by the node itself. For KVM hail takes 4096 whatever the node
            reports; give that for the same placements.
        free_memory, free_disk: as measured.
        reserved_cpus: kept for the node itself.
        spindles: number of disks the volume group is spread over.
        exclusive_storage: whether a spindle belongs to one instance alone; only then do
            ``free_spindles`` count.
        cpu_speed: of its processors, relative to others of the group.
    """

    name: NodeName
    group: GroupName
    total_memory: float = 0
    reserved_memory: int = 0
    free_memory: int = 0
    total_disk: float = 0
    free_disk: int = 0
    total_cpus: float = 0
    reserved_cpus: int = 1
    spindles: int = 1
    free_spindles: int = 0
    exclusive_storage: bool = False
    cpu_speed: float = 1.0
    offline: bool = False
    drained: bool = False
    vm_capable: bool = True
    is_master: bool = False
    tags: frozenset[str] = frozenset()

    @property
    def is_live(self) -> bool:
        return self.vm_capable and not self.offline

    @property
    def is_usable(self) -> bool:
        """Whether new instances may come; a drained node is live but not usable."""
        return self.is_live and not self.drained


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPicture:
    """A group; ``networks`` holds the identities of those connected to it."""

    name: GroupName
    uuid: str = ""
    tags: frozenset[str] = frozenset()
    policy: InstancePolicy = InstancePolicy()
    alloc_policy: AllocationPolicy = AllocationPolicy.PREFERRED
    networks: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """The whole cluster at one moment; told apart by identity, not by content."""

    groups: tuple[GroupPicture, ...]
    nodes: Sequence[NodePicture]
    instances: Sequence[InstancePicture] = ()
    cluster_tags: tuple[str, ...] = ()

    @cached_property
    def node_index(self) -> Mapping[NodeName, int]:
        return {node.name: index for index, node in enumerate(self.nodes)}

    @cached_property
    def group_index(self) -> Mapping[GroupName, int]:
        return {group.name: index for index, group in enumerate(self.groups)}


_STATUS = {
    AdminState.UP: "running",
    AdminState.DOWN: "ADMIN_down",
    AdminState.OFFLINE: "ADMIN_offline",
}


def columns_of(demands: Sequence[Demand]) -> InstanceColumns:
    """Instances as columns, wherever they are: on no node."""
    nowhere = [-1] * len(demands)
    loads = [demand.load for demand in demands]
    return InstanceColumns(
        names=[demand.name for demand in demands],
        memory=[demand.memory for demand in demands],
        disk=[demand.disk for demand in demands],
        vcpus=[demand.vcpus for demand in demands],
        status=[_STATUS[demand.state] for demand in demands],
        primary=nowhere,
        secondary=nowhere,
        template=[demand.template for demand in demands],
        auto_balance=[demand.auto_balance for demand in demands],
        tags=[demand.tags for demand in demands],
        spindle_use=[demand.spindle_use for demand in demands],
        disk_spindles=[demand.disk_spindles for demand in demands],
        forthcoming=[demand.forthcoming for demand in demands],
        disks=[demand.disks for demand in demands],
        load=[(load.cpu, load.memory, load.disk, load.network) for load in loads],
        networks=[frozenset()] * len(demands),
    )
