"""What a job may lock, and how it says what it wants.

Locks need no creating and no deleting: a lock is a name, and exists while somebody holds it or
waits for it. So an object may come or go while somebody holds the lock on all of its level.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, NewType, Self

from common.errors import Bug, NoCapacity

Owner = NewType("Owner", str)  # who holds or waits, as the operator knows it: "job 12"

ALL: Final = "[lockset]"  # Ganeti's word, kept in `gnt-debug locks`


class Level(enum.IntEnum):
    """Kinds of locks, in the order in which operators read them."""

    CLUSTER = 0
    INSTANCE = 1
    GROUP = 2
    NODE = 3
    NODE_RES = 4  # a node's disk space and bandwidth, without its place in the configuration
    NETWORK = 5

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = ("cluster", "instance", "nodegroup", "node", "node-res", "network")


class Mode(enum.Enum):
    SHARED = "shared"  # any number of owners
    EXCLUSIVE = "exclusive"  # one owner

    def covers(self, other: "Mode") -> bool:
        """Tell whether who holds this holds ``other`` as well."""
        return self is Mode.EXCLUSIVE or other is Mode.SHARED

    def conflicts_with(self, other: "Mode") -> bool:
        """Tell whether two owners can't hold these at the same time."""
        return self is Mode.EXCLUSIVE or other is Mode.EXCLUSIVE


class LockName(NamedTuple):
    """One lock or, with the name ``ALL``, a whole level, whatever will be in it."""

    level: Level
    name: str

    @property
    def is_all(self) -> bool:
        return self.name == ALL

    @property
    def whole_level(self) -> "LockName":
        return LockName(self.level, ALL)

    def __str__(self) -> str:
        return f"{self.level.label}/{self.name}"


BGL: Final = LockName(Level.CLUSTER, "BGL")  # shared by whoever takes other locks

# Of the cluster's own parameters, exclusive for who changes them.
PARAMETERS: Final = LockName(Level.CLUSTER, "parameters")


def lock_names(level: Level, names: Iterable[str]) -> tuple[LockName, ...]:
    """Name one lock for each object."""
    return tuple(LockName(level, name) for name in names)


@dataclass(frozen=True, slots=True)
class Some:
    """Any of ``names``, as many as are free, at least ``at_least``.

    For placing an instance: lock the nodes nobody works on, and choose among them.

    Raises:
        NoCapacity: there are fewer names than wanted.
    """

    names: frozenset[LockName]
    mode: Mode = Mode.EXCLUSIVE
    at_least: int = 1

    def __post_init__(self) -> None:
        if self.at_least > len(self.names):
            raise NoCapacity(
                f"{self.at_least} locks are needed, but there are only {len(self.names)} to "
                "choose from."
            )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Everything a job needs, asked for at once and granted at once."""

    locks: Mapping[LockName, Mode]
    some: Some | None = None

    def __post_init__(self) -> None:
        if self.some and not self.some.names.isdisjoint(self.locks):
            raise Bug("A lock is wanted for certain and left to choice at the same time.")

    @classmethod
    def of(
        cls,
        *,
        exclusive: Iterable[LockName] = (),
        shared: Iterable[LockName] = (),
        some: Some | None = None,
    ) -> Self:
        """Collect locks; what is wanted both ways is wanted exclusively."""
        locks = dict.fromkeys(shared, Mode.SHARED) | dict.fromkeys(exclusive, Mode.EXCLUSIVE)
        return cls(locks, some)

    def __or__(self, other: "Wanted") -> "Wanted":
        """Both together, the stronger mode of each lock.

        Raises:
            Bug: both leave a choice.
        """
        if self.some and other.some:
            raise Bug("An operation asked for two choices of locks at once.")
        locks = dict(self.locks)
        for lock, mode in other.locks.items():
            if lock not in locks or mode.covers(locks[lock]):
                locks[lock] = mode
        return Wanted(locks, self.some or other.some)
