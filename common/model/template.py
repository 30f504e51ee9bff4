"""Disk templates: how an instance's disks are kept, and all that follows from it.

Whoever wants to know what can be done with a template asks for its traits, and never compares
its name. What is *done* with disks of a template is in ``coordinator/disks/``.
"""

from __future__ import annotations

from enum import StrEnum

from common.model.pool_kind import PoolKind
from common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from common.names import MiB
else:
    MiB = int  # what it is: the names' own bounds take long to import


class Traits(Record):
    """What disks of a template are like.

    Attributes:
        holders: how many nodes hold the data. 0: it is outside of them, and all reach it.
        space: what the data takes space of, on each holder or where all reach it; None: of
            nothing that a node reports.
        overhead: MiB per disk that it takes on each holder beside the data.
        has_disks: whether its instances have disks at all.
        is_adopted: whether its disks are there before and take no space that was free.
        is_balanced: whether balancing moves its instances, as that of Ganeti does.
        keeps_snapshots: whether what is on its disks can be kept as it is at a moment.
        rolls_back: whether its disks can become again what was kept.
        is_apart: whether it is allowed on nodes with exclusive storage, and keeps to that.
        has_providers: whether programs of the operator's on each node keep its disks.
    """

    holders: int
    space: PoolKind | None = None
    overhead: MiB = MiB(0)
    has_disks: bool = True
    is_adopted: bool = False
    is_balanced: bool = True
    keeps_snapshots: bool = False
    rolls_back: bool = False
    is_apart: bool = False
    has_providers: bool = False

    @property
    def is_external(self) -> bool:
        """Tell whether the instance can run on any node as it is: no node holds its data."""
        return self.holders == 0

    @property
    def nodes(self) -> int:
        """Return how many nodes an instance is placed on: where it runs, and where its data is."""
        return max(1, self.holders)

    @property
    def is_mirrored(self) -> bool:
        """Tell whether it has a secondary node, and can run only there but on its primary."""
        return self.holders > 1

    @property
    def is_in_volume_group(self) -> bool:
        """Tell whether the disks take space of the node's volume group."""
        return self.space is PoolKind.VOLUME_GROUP

    @property
    def leaves_as_it_is(self) -> bool:
        """Tell whether it leaves a node that is evacuated without being made anew elsewhere.

        What was adopted is made anew, with Ganeti's tools: they ask whether there is room.
        """
        return self.is_external and not self.is_adopted

    def disk_space(self, sizes: Sequence[MiB]) -> MiB:
        """Return what disks take on each holder (Ganeti's ``disk_space_total``), in MiB."""
        if not self.has_disks or self.is_adopted:
            return MiB(0)
        return MiB(sum(sizes) + self.overhead * len(sizes))


class DiskTemplate(StrEnum):
    """How an instance's disks are kept; names and order are Ganeti's."""

    DISKLESS = "diskless"
    FILE = "file"
    SHAREDFILE = "sharedfile"
    PLAIN = "plain"
    BLOCKDEV = "blockdev"
    DRBD = "drbd"
    RBD = "rbd"
    EXT = "ext"
    GLUSTER = "gluster"

    @property
    def traits(self) -> Traits:
        return TRAITS[self]


TRAITS: Mapping[str, Traits] = {
    DiskTemplate.DISKLESS: Traits(holders=0, has_disks=False, is_balanced=False),
    DiskTemplate.FILE: Traits(
        holders=1,
        space=PoolKind.DIRECTORY,
        is_balanced=False,
        keeps_snapshots=True,
        rolls_back=True,
    ),
    DiskTemplate.SHAREDFILE: Traits(
        holders=0, space=PoolKind.DIRECTORY, keeps_snapshots=True, rolls_back=True
    ),
    DiskTemplate.PLAIN: Traits(
        holders=1,
        space=PoolKind.VOLUME_GROUP,
        is_balanced=False,
        is_apart=True,
        keeps_snapshots=True,
        rolls_back=True,
    ),
    DiskTemplate.BLOCKDEV: Traits(holders=0, is_adopted=True),
    DiskTemplate.DRBD: Traits(
        holders=2,
        space=PoolKind.VOLUME_GROUP,
        overhead=MiB(128),
        keeps_snapshots=True,
        rolls_back=True,
    ),
    DiskTemplate.RBD: Traits(holders=0, keeps_snapshots=True, rolls_back=True),
    DiskTemplate.EXT: Traits(holders=0, keeps_snapshots=True, has_providers=True),
    DiskTemplate.GLUSTER: Traits(holders=0, space=PoolKind.DIRECTORY),
}
"""By template, or its name: a ``StrEnum`` is found by its text."""

MIRRORED = DiskTemplate.DRBD
"""What an instance becomes that is given a secondary node."""

ON_ONE_NODE = DiskTemplate.PLAIN
"""What has the data of an instance on one node, as a mirrored one has it on each of its nodes."""

ON_NO_NODE = DiskTemplate.EXT
"""What takes no space of nodes, and can run on any."""

ENABLED_AT_FIRST = (DiskTemplate.SHAREDFILE, DiskTemplate.FILE, DiskTemplate.DISKLESS)
"""What a new cluster has unless it is told: what needs nothing but a directory."""

WITHOUT_DISKS = DiskTemplate.DISKLESS
"""What is reserved while nobody has said how its disks are kept."""
