"""What operations under way are going to take of nodes: counted as if it were taken already.

A place is chosen and promised without waiting for anything in between, so no two operations can
be given the same room. The promise stands until the operation has ended, well or badly. It is
kept in memory only: whoever goes on with a journalled job makes its promises anew from the plan,
before any other job looks for a place.
"""

from collections.abc import Iterable
from typing import NamedTuple

from common.model.disk import Disk
from common.model.instance import Instance, nodes_of
from common.model.nic import Nic
from common.model.pool import Pool
from common.names import DiskId, GroupId, InstanceId, MiB, NodeId
from coordinator.locks.names import Owner


class PlannedInstance(NamedTuple):
    """An instance as it will be, on the nodes where it will be."""

    instance: Instance
    disks: tuple[Disk, ...]
    nics: tuple[Nic, ...] = ()  # of one that is new
    group: GroupId | None = None  # the only one where it may go, whatever its policy says
    anew: frozenset[DiskId] = frozenset()  # that are made, as they are not where they should be

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """The nodes that have something of it, its primary one first."""
        return nodes_of(self.instance, self.disks)


class Promise(NamedTuple):
    """What one operation takes of one node.

    ``memory`` is that of a guest that will run there; it counts until the node reports it.
    What a ``planned`` has that is not in the configuration yet counts in everything else, too. The
    numbers of its devices, and of ``disks``, are given to no other disk, and nodes are asked about
    the pools that all of them name. What is ``beside`` those that there are takes space on ``node``
    as long as the promise stands. The addresses of ``nics`` are given to no other nic,
    and ``port`` to no other instance's display.
    """

    instance: InstanceId
    node: NodeId
    memory: MiB = MiB(0)
    planned: PlannedInstance | None = None
    disks: tuple[Disk, ...] = ()
    beside: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    port: int = 0

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The pools that its disks name."""
        planned = self.planned.disks if self.planned else ()
        named = (*planned, *self.disks, *self.beside)
        return tuple(pool for disk in named for pool in disk.pools)


def naming(planned: PlannedInstance) -> Promise:
    """Return a promise of the numbers of its devices alone, while nodes are asked what they have.

    It has them tell of the pools of new disks. What space is left goes to whoever has asked first.
    """
    return Promise(planned.instance.uuid, NodeId(""), disks=planned.disks)


class Promises:
    """All promises that stand, by who made them."""

    def __init__(self) -> None:
        self._of: dict[Owner, tuple[Promise, ...]] = {}

    def make(self, owner: Owner, promises: Iterable[Promise]) -> None:
        """Replace what ``owner`` promised before."""
        made = tuple(promises)
        if made:
            self._of[owner] = made
        else:
            self.release(owner)

    def release(self, owner: Owner) -> None:
        """Forget the promises of ``owner``, if it made any."""
        self._of.pop(owner, None)

    def standing(self, *, but: Owner | None = None) -> tuple[Promise, ...]:
        """Return all promises but those of one owner."""
        return tuple(
            promise for owner, made in self._of.items() if owner != but for promise in made
        )
