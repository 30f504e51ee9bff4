"""What nodes have and instances ask, as figures of one of them or as columns for all.

``NodeResources`` say what nodes have and keep free, ``Demands`` what instances ask. Either may hold
Python's numbers, of one node or instance (a *row*), or arrays of equal length, which combine,
broadcasting where shapes differ. Nothing needs NumPy but what makes arrays.
"""

from __future__ import annotations

from functools import lru_cache

from common.model.template import TRAITS
from coordinator.allocator.snapshot import USES_MEMORY, InstanceColumns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    from coordinator.allocator.snapshot import Instance

    # A number of Python's, a list of such, or an array.
    Whole = Any
    Real = Any
    Flag = Any
UNKNOWN = -1  # spindles of an instance whose disks do not tell
_DTYPES = {"Whole": "int64", "Real": "float64", "Flag": "bool"}  # by annotation


class Loads(tuple[float, float, float, float]):
    """The load of one node or instance: what an array of shape (4,) would be."""

    __slots__ = ()

    def __add__(self, other: Any) -> Loads:  # as of arrays, not of tuples
        a, b, c, d = self
        e, f, g, h = other
        return Loads((a + e, b + f, c + g, d + h))

    def __sub__(self, other: Any) -> Loads:
        a, b, c, d = self
        e, f, g, h = other
        return Loads((a - e, b - f, c - g, d - h))


NO_LOAD, EVEN_LOAD = Loads((0.0, 0.0, 0.0, 0.0)), Loads((1.0, 1.0, 1.0, 1.0))


class _Figures:
    """Figures of one or many, in the order of ``names``: that in which they are annotated."""

    names: tuple[str, ...]

    def __init_subclass__(cls) -> None:
        cls.names = tuple(cls.__annotations__)

    def __init__(self, *figures: Any) -> None:
        vars(self).update(zip(self.names, figures, strict=True))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.figures == other.figures

    __hash__ = None  # type: ignore[assignment] # numbers are compared, arrays are not

    @property
    def figures(self) -> list[Any]:
        return [*vars(self).values()]

    def at(self, some: Any) -> Self:
        """Of arrays, some of their elements: copies, or views of a slice."""
        return type(self)(*[column[..., some] for column in self.figures])

    def copy(self) -> Self:
        """The same with arrays of its own."""
        return type(self)(*[column.copy() for column in self.figures])

    def row(self, one: int) -> Self:
        """Of arrays or lists, the figures of one as Python's numbers."""
        return type(self)(*[_number(column, one) for column in self.figures])


def _number(column: Any, at: int) -> Any:
    if not hasattr(column, "dtype"):
        return column[at]
    return column[at].item() if column.ndim == 1 else Loads(column[:, at].tolist())


class Demands(_Figures):
    """What instances ask of their nodes, memory and disk in MiB; arrays of shape (instances,).

    Of a forthcoming instance the first block is 0: it counts only in what will be.

    Attributes:
        count: 1, or 0 if forthcoming.
        needed: memory that the secondary keeps free.
        anew: whether it can leave a node only by being made again elsewhere.
        disk_spindles: where storage is exclusive; ``UNKNOWN`` if the disks do not tell.
        load: processors, memory, disk, network: ``Loads``, or of shape (4, instances).
    """

    count: Whole
    memory: Whole
    cpus: Whole
    disk: Whole
    spindles: Whole
    needed: Whole
    load: Real

    local: Flag
    mirrored: Flag
    anew: Flag
    disk_spindles: Whole
    next_memory: Whole
    next_cpus: Whole
    next_disk: Whole
    next_spindles: Whole


def demand_columns(instances: InstanceColumns) -> Demands:
    """What instances ask, as lists, of which ``row`` makes those of one."""
    templates = instances.template
    in_group = {each: TRAITS[each].is_in_volume_group for each in set(templates)}
    has_mirror = {each: TRAITS[each].is_mirrored for each in set(templates)}
    stays = {each: not (TRAITS[each].leaves_as_it_is or has_mirror[each]) for each in has_mirror}
    local = [in_group[each] for each in templates]
    count = [1 - coming for coming in instances.forthcoming]
    memory, is_kept = instances.memory, [each != "ADMIN_offline" for each in instances.status]
    cpus = _times(instances.vcpus, is_kept)
    disk, spindles = _times(instances.disk, local), _times(instances.spindle_use, local)
    loads = instances.load or [EVEN_LOAD] * len(local)
    loads = [EVEN_LOAD if load == EVEN_LOAD else Loads(load) for load in loads]
    return Demands(
        count,
        _times(_times(memory, [each in USES_MEMORY for each in instances.status]), count),
        _times(cpus, count),
        _times(disk, count),
        _times(spindles, count),
        _times(_times(memory, is_kept), instances.auto_balance),
        [load if real else NO_LOAD for load, real in zip(loads, count, strict=True)],
        local,
        [has_mirror[each] for each in templates],
        [stays[each] for each in templates],
        [UNKNOWN if each is None else each for each in instances.disk_spindles],
        memory,
        cpus,
        disk,
        spindles,
    )


def _times(amounts: Sequence[int], flags: Sequence[int]) -> Sequence[int]:
    return amounts if all(flags) else [a * f for a, f in zip(amounts, flags, strict=True)]


@lru_cache(maxsize=256)
def asked(demand: Instance) -> Demands:
    """What one instance asks, as a row."""
    return demand_columns(InstanceColumns.of([demand])).row(0)


@lru_cache(maxsize=256)
def asked_arrays(demand: Instance) -> Demands:
    """The same as arrays of length 1."""
    return demand_arrays(demand_columns(InstanceColumns.of([demand])))


class NodeResources(_Figures):
    """What nodes have, keep free and hold, in MiB; arrays of shape (nodes,).

    The upper block never changes. The ``next_`` fields count forthcoming instances too.

    Attributes:
        disk_unit: by what free disk is divided for the score: the total, or all spindles.
        least_disk: free disk that has to stay.
        memory: not allocated.
        reserved: kept free for the peer whose failure would bring most.
        fails_n1: whether ``reserved`` is more than there is.
        load: ``Loads``, or of shape (4, nodes).
        conflicts: exclusion tags held more often than once, counted above one.
        location: location tags that primaries share with their secondary, and desired
            locations not met.
    """

    total_memory: Real
    disk_unit: Real
    total_cpus: Real
    speed: Real
    cpu_ratio: Real
    spindle_limit: Real
    least_disk: Whole
    exclusive: Flag
    offline: Flag

    memory: Whole
    reserved: Whole
    fails_n1: Flag
    disk: Whole
    cpus: Whole
    spindles: Whole
    free_spindles: Whole
    primaries: Whole
    secondaries: Whole
    load: Real
    conflicts: Whole
    location: Whole
    next_memory: Whole
    next_disk: Whole
    next_cpus: Whole
    next_spindles: Whole
    next_free_spindles: Whole

    def changed(self, **columns: Any) -> NodeResources:
        """The same with other figures here and there."""
        other = NodeResources.__new__(NodeResources)
        vars(other).update(vars(self))
        vars(other).update(columns)
        return other

    def put(self, nodes: Any, others: NodeResources) -> None:
        """Overwrite one element of the arrays by a row, or some by those of others."""
        for name in NodeResources.names:
            getattr(self, name)[..., nodes] = getattr(others, name)


def demand_arrays(columns: Demands) -> Demands:
    """The same as arrays."""
    return Demands(*map(_array, Demands.__annotations__.items(), columns.figures))


def arrays_of(rows: Sequence[NodeResources]) -> NodeResources:
    """The arrays whose elements are these rows."""
    named = NodeResources.__annotations__.items()
    return NodeResources(*[_array(one, [getattr(row, one[0]) for row in rows]) for one in named])


def _array(named: tuple[str, str], values: Sequence[Any]) -> Any:
    import numpy as np

    name, kind = named
    if name == "load":
        return np.array(values, dtype=np.float64).reshape(-1, 4).T.copy()
    return np.array(values, dtype=_DTYPES[kind])


def rows_of(arrays: NodeResources) -> list[NodeResources]:
    """The elements of arrays as rows."""
    columns = [
        list(map(Loads, column.T.tolist())) if column.ndim > 1 else column.tolist()
        for column in arrays.figures
    ]
    return [NodeResources(*row) for row in zip(*columns, strict=True)]
