"""A cluster at one moment, in rows and columns: everything that is decided follows from it.

Nodes, groups and instances are known by their index. Their order counts: it breaks ties, as in
hail. Memory and disk are in MiB.
"""

from __future__ import annotations

from functools import cached_property

from common.model.allocation_policy import AllocationPolicy
from common.model.template import MIRRORED, TRAITS
from common.record import Record, fields_of
from coordinator.allocator.policy import InstancePolicy
from coordinator.allocator.rows import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any, Self

    from common.model.template import Traits

NOWHERE = -1

USES_MEMORY = frozenset(
    {"running", "ERROR_up", "ERROR_nodedown", "ERROR_nodeoffline", "ERROR_wrongnode"}
)
IS_RUNNING = frozenset({"running", "ERROR_up"})
STATUSES = USES_MEMORY | {"ADMIN_down", "ADMIN_offline", "ERROR_down", "USER_down"}

STATUS_OF = {"up": "running", "down": "ADMIN_down", "offline": "ADMIN_offline"}
"""Status of an instance of which only the state asked for is known."""

DEFAULT_POLICY = InstancePolicy()


class Group(Record):
    """A group; ``networks`` are those connected to it."""

    name: str
    uuid: str = ""
    alloc_policy: AllocationPolicy = AllocationPolicy.PREFERRED
    tags: tuple[str, ...] = ()
    networks: Collection[str] = ()
    policy: InstancePolicy = DEFAULT_POLICY


class Node(Record):
    """A node as it reports; one that is not live has no figures.

    Attributes:
        group: index of its group.
        own_memory, own_cpus: kept for the node itself.
        free_memory, free_disk: as measured.
        speed: of its processors, relative to others.
        spindles: number of disks that its volume group is spread over.
        exclusive: whether a spindle serves only one instance; only then do ``free_spindles``
            count.
    """

    name: str
    group: int = 0
    total_memory: float = 0
    own_memory: int = 0
    free_memory: int = 0
    total_disk: float = 0
    free_disk: int = 0
    total_cpus: float = 0
    own_cpus: int = 0
    speed: float = 1.0
    offline: bool = False
    drained: bool = False
    vm_capable: bool = True
    is_master: bool = False
    spindles: int = 1
    free_spindles: int = 0
    exclusive: bool = False
    tags: Collection[str] = ()

    @property
    def is_live(self) -> bool:
        return self.vm_capable and not self.offline

    @property
    def is_usable(self) -> bool:
        """Whether new instances may come; a drained node is live but not usable."""
        return self.is_live and not self.drained


class Instance(Record):
    """An instance, and where it is, if it is somewhere already.

    Attributes:
        disk: space taken on each of its nodes, see ``Traits.disk_space``.
        status: one of ``STATUSES``.
        primary, secondary: node indices, or ``NOWHERE``.
        auto_balance: whether its secondary keeps memory free for it.
        disk_spindles: what its disks take where storage is exclusive; None if unknown.
        forthcoming: a reservation; counts in what will be, not in what is.
        disks: size of each as the operator gave it; only policies look at them.
        load: expected use of processors, memory, disk, network, relative to other instances.
        networks: that its nics need.
    """

    name: str
    memory: int
    vcpus: int
    disk: int = 0
    status: str = "running"
    primary: int = NOWHERE
    secondary: int = NOWHERE
    template: str = MIRRORED
    auto_balance: bool = True
    tags: Collection[str] = ()
    spindle_use: int = 1
    disk_spindles: int | None = None
    forthcoming: bool = False
    disks: tuple[int, ...] = ()
    load: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    networks: frozenset[str] = frozenset()

    @property
    def uses_memory(self) -> bool:
        return self.status in USES_MEMORY and not self.forthcoming

    @property
    def used_memory(self) -> int:
        """Memory taken from the primary node now."""
        return self.memory if self.uses_memory else 0

    @property
    def reserved_memory(self) -> int:
        """Memory its secondary node keeps free, also for an instance that is down."""
        return self.memory if self.auto_balance and self.status != "ADMIN_offline" else 0

    @property
    def used_vcpus(self) -> int:
        """Processors taken from the primary node; an instance that is down keeps its."""
        return 0 if self.status == "ADMIN_offline" else self.vcpus

    @property
    def traits(self) -> Traits:
        return TRAITS[self.template]

    @property
    def is_local(self) -> bool:
        """Whether its disks take space of the volume group of each of its nodes."""
        return self.traits.is_in_volume_group

    @property
    def is_mirrored(self) -> bool:
        """Whether its disks are kept on two nodes."""
        return self.traits.is_mirrored

    @property
    def is_made_anew(self) -> bool:
        """Whether it can leave a node only by being made again elsewhere."""
        return not (self.is_mirrored or self.traits.leaves_as_it_is)

    @property
    def homes(self) -> tuple[int, ...]:
        return tuple(node for node in (self.primary, self.secondary) if node != NOWHERE)


class _Columns:
    """Rows as columns: a sequence per field of theirs, with an element per row.

    Attributes:
        names: of the rows.
        fields: the names of all other columns.
    """

    fields: tuple[str, ...]
    names: Sequence[str]

    def __init__(self, **columns: Any) -> None:
        if columns.keys() != {"names", *self.fields}:
            raise TypeError(f"{type(self).__name__} is not made of {', '.join(columns)}")
        vars(self).update(columns)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    @classmethod
    def of(cls, rows: Sequence[Any]) -> Self:
        """The columns of rows."""
        columns = {name: [getattr(row, name) for row in rows] for name in cls.fields}
        return cls(names=[row.name for row in rows], **columns)

    def row(self, at: int) -> dict[str, Any]:
        """The values of a row by its fields; without those of a column that is None."""
        columns = {name: getattr(self, name) for name in self.fields}
        found = {name: column[at] for name, column in columns.items() if column is not None}
        return {"name": self.names[at], **found}


class NodeColumns(_Columns):
    """Nodes; which of them is the master is not said."""

    fields = tuple(name for name in fields_of(Node) if name not in {"name", "is_master"})

    @property
    def usable(self) -> list[bool]:
        """Whether instances may come to each node."""
        states = zip(self.vm_capable, self.offline, self.drained, strict=True)
        return [capable and not (offline or drained) for capable, offline, drained in states]


class InstanceColumns(_Columns):
    """Instances; ``load`` is None if all count alike."""

    fields = tuple(name for name in fields_of(Instance) if name != "name")


class Snapshot(Record):
    """A cluster; ``tags`` are those of the cluster, ``policy`` its own.

    Compared by identity, not by content.

    Attributes:
        more_tags: heeded as if the cluster had them, too; neither shown nor saved.
        cpu_loads: per node, as measured; None if instances make up all of it.
    """

    groups: tuple[Group, ...]
    nodes: Sequence[Node]
    instances: Sequence[Instance] = ()
    tags: tuple[str, ...] = ()
    more_tags: tuple[str, ...] = ()
    policy: InstancePolicy = DEFAULT_POLICY
    cpu_loads: tuple[float, ...] | None = None

    __eq__, __hash__ = object.__eq__, object.__hash__

    @cached_property
    def columns(self) -> tuple[NodeColumns, InstanceColumns]:
        """The same as columns."""
        return NodeColumns.of(self.nodes), InstanceColumns.of(self.instances)


def snapshot_of(
    groups: tuple[Group, ...],
    nodes: NodeColumns,
    instances: InstanceColumns,
    tags: tuple[str, ...],
) -> Snapshot:
    """A cluster whose rows are made from columns as they are looked at."""
    snapshot = Snapshot(
        groups=groups,
        nodes=Rows(len(nodes.names), lambda at: Node(**nodes.row(at))),
        instances=Rows(len(instances.names), lambda at: instance_of(instances, at)),
        tags=tags,
    )
    vars(snapshot)["columns"] = nodes, instances  # as cached_property does it
    return snapshot


def instance_of(columns: InstanceColumns, at: int) -> Instance:
    """A row of columns."""
    values = columns.row(at)
    return Instance(**values | {name: tuple(values[name]) for name in ("tags", "disks")})
