"""A cluster as columns: a list per property, an element per node or instance.

It is what a model is made of. Memory and disk are in MiB; nodes and groups are known by
index. Importing this costs nothing, since a small request is answered in the time of a few imports.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Load = tuple[float, float, float, float]


class _Columns:
    """Columns of equal length, given by name; those of a class are what it annotates.

    Attributes:
        fields: the names of all columns but ``names``: what each row has besides its own.
    """

    fields: tuple[str, ...]
    names: Sequence[str]

    def __init_subclass__(cls) -> None:
        cls.fields = tuple(cls.__annotations__)

    def __init__(self, **columns: Any) -> None:
        if columns.keys() != {"names", *self.fields}:
            raise TypeError(f"{type(self).__name__} is not made of {', '.join(columns)}")
        vars(self).update(columns)


class NodeColumns(_Columns):
    """Nodes; ``snapshot.Node`` tells what each column says."""

    group: Sequence[int]
    total_memory: Sequence[float]
    own_memory: Sequence[int]
    free_memory: Sequence[int]
    total_disk: Sequence[float]
    free_disk: Sequence[int]
    total_cpus: Sequence[float]
    own_cpus: Sequence[int]
    speed: Sequence[float]
    offline: Sequence[bool]
    drained: Sequence[bool]
    vm_capable: Sequence[bool]
    spindles: Sequence[int]
    free_spindles: Sequence[int]
    exclusive: Sequence[bool]
    tags: Sequence[Iterable[str]]

    @property
    def usable(self) -> list[bool]:
        """Whether instances may come to each node."""
        return [
            is_capable and not (offline or drained)
            for offline, drained, is_capable in zip(
                self.offline, self.drained, self.vm_capable, strict=True
            )
        ]


class InstanceColumns(_Columns):
    """Instances; ``snapshot.Instance`` tells what each column says.

    Attributes:
        load: None if all count alike.
    """

    memory: Sequence[int]
    disk: Sequence[int]
    vcpus: Sequence[int]
    status: Sequence[str]
    primary: Sequence[int]
    secondary: Sequence[int]
    template: Sequence[str]
    auto_balance: Sequence[bool]
    tags: Sequence[Iterable[str]]
    spindle_use: Sequence[int]
    disk_spindles: Sequence[int | None]
    forthcoming: Sequence[bool]
    disks: Sequence[Sequence[int]]
    load: Sequence[Load] | None
    networks: Sequence[frozenset[str]]
