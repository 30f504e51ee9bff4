"""The whole cluster as data that moves and fills work on: rows of groups, nodes, instances.

A ``Picture`` is what the coordinator knows before it places one instance; an inventory is what
the commands read (text, LUXI), with everything that Ganeti's text format can say. Nodes and
groups are known by their index. Memory and disk are in MiB.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from common.model.group import AllocationPolicy
from common.model.policy import Bounds, InstancePolicy, Spec
from common.names import MiB
from coordinator.allocator.columns import (
    InstanceColumns,
    NodeColumns,
    instance_columns,
    node_columns,
)
from coordinator.allocator.rows import Rows

NOWHERE = -1

TEMPLATES = (
    "diskless", "file", "sharedfile", "plain", "blockdev", "drbd", "rbd", "ext", "gluster",
)  # fmt: skip
"""Disk templates in Ganeti's order."""

LOCAL = frozenset({"plain", "drbd"})
EXTERNAL = frozenset({"diskless", "sharedfile", "blockdev", "rbd", "ext", "gluster"})
MOVABLE = frozenset({"drbd"}) | EXTERNAL - {"diskless"}
"""Templates whose instances a balancing moves; a diskless one stays, as with Debian's hbal."""

USES_MEMORY = frozenset({"running", "ERROR_up", "ERROR_nodedown", "ERROR_nodeoffline",
                         "ERROR_wrongnode"})  # fmt: skip
IS_RUNNING = frozenset({"running", "ERROR_up"})
STATUSES = USES_MEMORY | {"ADMIN_down", "ADMIN_offline", "ERROR_down", "USER_down"}

_SMALLEST = Spec(
    memory_size=MiB(128), cpu_count=1, disk_size=MiB(1024), disk_count=1, nic_count=1,
    spindle_use=1,
)  # fmt: skip

DEFAULT_POLICY = InstancePolicy(
    minmax=(
        Bounds(
            min=_SMALLEST,
            max=Spec(
                memory_size=MiB(32768), cpu_count=8, disk_size=MiB(1048576), disk_count=16,
                nic_count=8, spindle_use=12,
            ),
        ),
    ),
    std=_SMALLEST,
    disk_templates=TEMPLATES,
)  # fmt: skip
"""Ganeti's default; the bounds of ours are wider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    name: str
    uuid: str
    alloc_policy: AllocationPolicy = AllocationPolicy.PREFERRED
    tags: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    policy: InstancePolicy = DEFAULT_POLICY


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as it reports.

    Attributes:
        group: index of its group.
        own_memory, own_cpus: kept for the node itself.
        offline: whether it takes no instances, for whatever reason.
        speed: of its processors, relative to others.
        exclusive: whether a spindle serves only one instance.
    """

    name: str
    group: int
    total_memory: float = 0
    own_memory: int = 0
    free_memory: int = 0
    total_disk: float = 0
    free_disk: int = 0
    total_cpus: float = 0
    own_cpus: int = 0
    speed: float = 1.0
    offline: bool = False
    is_master: bool = False
    spindles: int = 1
    free_spindles: int = 0
    exclusive: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance and where it is.

    Attributes:
        status: one of ``STATUSES``.
        primary, secondary: node indices; the secondary may be ``NOWHERE``.
        disk: space taken on each of its nodes.
        disk_spindles: what its disks take where storage is exclusive; None if unknown.
        load: expected use of processors, memory, disk, network.
    """

    name: str
    memory: int
    disk: int
    vcpus: int
    status: str
    primary: int
    secondary: int = NOWHERE
    template: str = "drbd"
    auto_balance: bool = True
    tags: tuple[str, ...] = ()
    spindle_use: int = 1
    disk_spindles: int | None = None
    forthcoming: bool = False
    disks: tuple[int, ...] = ()
    load: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    networks: frozenset[str] = frozenset()  # that its nics need

    @property
    def uses_memory(self) -> bool:
        return self.status in USES_MEMORY and not self.forthcoming

    @property
    def reserves_memory(self) -> bool:
        """Whether its secondary keeps memory free for it."""
        return self.auto_balance and self.status != "ADMIN_offline"

    @property
    def used_vcpus(self) -> int:
        return 0 if self.status == "ADMIN_offline" else self.vcpus

    @property
    def is_local(self) -> bool:
        return self.template in LOCAL

    @property
    def homes(self) -> tuple[int, ...]:
        return tuple(node for node in (self.primary, self.secondary) if node != NOWHERE)


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """A cluster; ``tags`` are those of the cluster, ``policy`` its own.

    Attributes:
        more_tags: heeded as if the cluster had them, too; neither shown nor saved.
        cpu_loads: per node, as measured; None if instances make up all of it.
    """

    groups: tuple[Group, ...]
    nodes: Sequence[Node]
    instances: Sequence[Instance] = ()
    tags: tuple[str, ...] = ()
    more_tags: tuple[str, ...] = ()
    policy: InstancePolicy = field(default=DEFAULT_POLICY)
    cpu_loads: tuple[float, ...] | None = None

    @cached_property
    def columns(self) -> tuple[NodeColumns, InstanceColumns]:
        """The same as columns."""
        return node_columns(self.nodes), instance_columns(self.instances)


def inventory_of(
    groups: tuple[Group, ...],
    nodes: NodeColumns,
    instances: InstanceColumns,
    tags: tuple[str, ...],
) -> Inventory:
    """A cluster whose rows are made from columns as they are looked at."""

    def node(at: int) -> Node:
        return Node(
            name=nodes.names[at],
            **{name: getattr(nodes, name)[at] for name in NodeColumns.__slots__ if name != "names"},
        )

    def instance(at: int) -> Instance:
        values = {
            name: getattr(instances, name)[at]
            for name in InstanceColumns.__slots__
            if name not in ("names", "load")
        }
        values["tags"], values["disks"] = tuple(values["tags"]), tuple(values["disks"])
        if instances.load is not None:
            values["load"] = instances.load[at]
        return Instance(name=instances.names[at], **values)

    inventory = Inventory(
        groups=groups,
        nodes=Rows(len(nodes.names), node),
        instances=Rows(len(instances.names), instance),
        tags=tags,
    )
    vars(inventory)["columns"] = nodes, instances  # as cached_property does it
    return inventory
