"""What a job may lock, and how it says what it wants.

Locks need no creating and no deleting: a lock is a name, and exists while somebody holds it or
waits for it. So an object may come or go while somebody holds the lock on all of its level.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, NewType

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


@dataclass(frozen=True, slots=True)
class Wanted:
    """Everything a job needs, asked for at once and granted at once."""

    locks: Mapping[LockName, Mode]
