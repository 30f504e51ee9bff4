"""A disk of an instance, and what is kept of it."""

from enum import StrEnum

from common.model.backing import Backing
from common.model.entity import Entity
from common.model.pool import Pool
from common.model.stored import Part
from common.model.template import DiskTemplate
from common.names import DiskId, Few, MiB, NodeId


class Mode(StrEnum):
    READ_WRITE = "rw"
    READ_ONLY = "ro"


class Snapshot(Part, kw_only=True):
    """What was on a disk at a moment; where it is kept, it is a disk that is only read.

    Attributes:
        uuid: of what keeps it.
        name: given by the operator; those of one name are of one moment.
        taken_at: seconds since 1970.
        size: of the disk.
        room: what is set aside for what changes since; 0 if it is taken as it is needed.
        node: which of the disk's nodes has it, if the disk has copies on several.
    """

    uuid: DiskId
    name: str
    taken_at: float
    size: MiB
    room: MiB
    backing: Backing
    node: NodeId | None = None


class Disk(Entity, kw_only=True):
    uuid: DiskId
    name: str = ""  # given by the operator, may be empty
    size: MiB
    mode: Mode = Mode.READ_WRITE
    backing: Backing
    nodes: tuple[NodeId, ...] = ()  # that hold the data; empty when it is shared
    # Those of them whose copy is known to be older than the others: noted before a guest writes
    # to the others alone, and taken back when the node has said that it is up to date again.
    behind: tuple[NodeId, ...] = ()
    # Of two that are mirrored, the node that is number 0 to DRBD 9, for as long as it has a copy:
    # its metadata say so. None, or none of them: the one whose UUID is the lowest.
    first: NodeId | None = None
    # How many physical volumes it has for itself on nodes with exclusive storage, as was said of
    # it; None: it was never said. On other nodes it means nothing.
    spindles: Few | None = None
    template: DiskTemplate | None = None  # of one that belongs to no instance; else the instance's
    snapshots: tuple[Snapshot, ...] = ()  # the oldest first

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Return the pools that are known from the disk alone, those of its snapshots too."""
        backings = (self.backing, *(each.backing for each in self.snapshots))
        return tuple(dict.fromkeys(pool for backing in backings for pool in backing.pools))

    @property
    def paths(self) -> tuple[str, ...]:
        """Return what it is in the pools of a node that has it, its snapshots included."""
        kept = (path for each in self.snapshots for path in each.backing.paths)
        return (*self.backing.paths, *kept)

    def takes(self, pool: Pool) -> MiB:
        """Return how much it takes of a pool, with its snapshots, on each node that has it.

        A snapshot that one of several nodes has counts on all of them: those who place instances
        know one size of a disk.
        """
        kept = (each.backing.takes(each.room, pool) for each in self.snapshots)
        return MiB(self.backing.takes(self.size, pool) + sum(kept))
