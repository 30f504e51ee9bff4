"""Columns of figures, one per node and one per instance, for many moves side by side.

``NodeResources`` say what nodes have and keep free, ``Demands`` what instances ask; both are
columns of equal length that numpy combines, broadcasting where shapes differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.model.template import TRAITS
from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.columns import InstanceColumns
from coordinator.allocator.snapshot import USES_MEMORY, Instance, instance_columns

UNKNOWN = -1  # spindles of an instance whose disks do not tell


@dataclass(frozen=True, slots=True)
class Demands:
    """What instances ask of their nodes; arrays of shape (instances,), memory and disk in MiB.

    Of a forthcoming instance the first block is 0: it counts only in what will be.

    Attributes:
        count: 1, or 0 if forthcoming.
        needed: memory that the secondary keeps free.
        disk_spindles: where storage is exclusive; ``UNKNOWN`` if the disks do not tell.
        load: shape (4, instances): processors, memory, disk, network.
    """

    count: Ints
    memory: Ints
    cpus: Ints
    disk: Ints
    spindles: Ints
    needed: Ints
    load: Floats

    local: Bools
    mirrored: Bools
    disk_spindles: Ints
    next_memory: Ints
    next_cpus: Ints
    next_disk: Ints
    next_spindles: Ints

    def at(self, some: Ints) -> "Demands":
        return Demands(*(getattr(self, name)[..., some] for name in Demands.__slots__))

    def row(self, one: int) -> "Demands":
        """One instance as Python's numbers, which all of ``shift`` takes as well."""
        return Demands(*[_number(getattr(self, name), one) for name in Demands.__slots__])

    def followed_by(self, others: "Demands") -> "Demands":
        """These and others after them."""
        return Demands(
            *(
                np.concatenate((getattr(self, name), getattr(others, name)), axis=-1)
                for name in Demands.__slots__
            )
        )


class Loads(tuple[float, ...]):
    """The load of one node or instance: what an array of shape (4,) would be."""

    __slots__ = ()

    def __add__(self, other: tuple[float, ...]) -> "Loads":  # type: ignore[override] # as of arrays
        return Loads(one + two for one, two in zip(self, other, strict=True))

    def __sub__(self, other: tuple[float, ...]) -> "Loads":
        return Loads(one - two for one, two in zip(self, other, strict=True))


def _number(column: Ints | Floats | Bools, at: int) -> Any:
    return column[at].item() if column.ndim == 1 else Loads(column[:, at].tolist())


def demands_of(instances: Sequence[Instance]) -> Demands:
    """What these instances ask."""
    return demands_in(instance_columns(instances))


def demands_in(instances: InstanceColumns) -> Demands:
    """What the instances of these columns ask."""

    def ints(values: Sequence[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    count = 1 - ints(instances.forthcoming)
    memory = ints(instances.memory)
    runs = ints([status in USES_MEMORY for status in instances.status])
    is_kept = ints([status != "ADMIN_offline" for status in instances.status])
    traits = [TRAITS[template] for template in instances.template]
    local = np.array([one.is_in_volume_group for one in traits], dtype=np.bool_)
    cpus = ints(instances.vcpus) * is_kept
    disk = ints(instances.disk) * local
    spindles = ints(instances.spindle_use) * local
    load = np.ones((4, len(count)))
    if instances.load is not None:
        load = np.array(instances.load, dtype=np.float64).reshape(-1, 4).T
    return Demands(
        count=count,
        memory=memory * runs * count,
        cpus=cpus * count,
        disk=disk * count,
        spindles=spindles * count,
        needed=memory * is_kept * ints(instances.auto_balance),
        load=np.where(count > 0, load, 0.0),
        local=local,
        mirrored=np.array([one.is_mirrored for one in traits], dtype=np.bool_),
        disk_spindles=ints([UNKNOWN if s is None else s for s in instances.disk_spindles]),
        next_memory=memory,
        next_cpus=cpus,
        next_disk=disk,
        next_spindles=spindles,
    )


@dataclass(frozen=True, slots=True)
class NodeResources:
    """What nodes have, keep free and hold; an element each, of shape (nodes,), in MiB.

    The upper block never changes. The ``next_`` fields count forthcoming instances too.

    Attributes:
        disk_unit: by what free disk is divided for the score: the total, or all spindles.
        least_disk: free disk that has to stay.
        memory: not allocated.
        reserved: kept free for the peer whose failure would bring most.
        fails_n1: whether ``reserved`` is more than there is.
        load: shape (4, nodes).
        conflicts: exclusion tags held more often than once, counted above one.
        location: location tags that primaries share with their secondary, and desired
            locations not met.
    """

    total_memory: Floats
    disk_unit: Floats
    total_cpus: Floats
    speed: Floats
    cpu_ratio: Floats
    spindle_limit: Floats
    least_disk: Ints
    exclusive: Bools
    offline: Bools

    memory: Ints
    reserved: Ints
    fails_n1: Bools
    disk: Ints
    cpus: Ints
    spindles: Ints
    free_spindles: Ints
    primaries: Ints
    secondaries: Ints
    load: Floats
    conflicts: Ints
    location: Ints
    next_memory: Ints
    next_disk: Ints
    next_cpus: Ints
    next_spindles: Ints
    next_free_spindles: Ints

    def at(self, nodes: Ints | slice) -> "NodeResources":
        """Some of the nodes: copies, or views of a slice."""
        return NodeResources(*[getattr(self, name)[..., nodes] for name in NodeResources.__slots__])

    def changed(self, **columns: Ints | Floats | Bools) -> "NodeResources":
        """The same with other columns here and there; ``replace`` takes four times as long."""
        names = NodeResources.__slots__
        return NodeResources(*[columns[n] if n in columns else getattr(self, n) for n in names])  # type: ignore[arg-type]

    def put(self, node: int, other: "NodeResources") -> None:
        """Overwrite one column by the only one of ``other``."""
        for name in NodeResources.__slots__:
            getattr(self, name)[..., node] = getattr(other, name)[..., 0]

    def row(self, node: int) -> "NodeResources":
        """One node as Python's numbers, which all of ``shift`` takes as well."""
        return NodeResources(*[_number(getattr(self, n), node) for n in NodeResources.__slots__])

    def put_row(self, node: int, row: "NodeResources") -> None:
        """Overwrite one column by a row."""
        for name in NodeResources.__slots__:
            getattr(self, name)[..., node] = getattr(row, name)

    def copy(self) -> "NodeResources":
        return NodeResources(*[getattr(self, name).copy() for name in NodeResources.__slots__])
