"""What the coordinator knows of disks of one template.

A kind decides and does nothing: where disks are, what space they take, what their nodes are asked
for. Steps of operations, checks and queries act on that, and never ask which template it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.model.backing import Backing
from common.model.cluster import Cluster
from common.model.disk import Disk, Mode, Snapshot
from common.model.group import Group
from common.model.instance import Instance
from common.model.node import NodeRef
from common.model.parameters import Layer
from common.model.pool import Pool
from common.model.template import DiskTemplate, Traits
from common.names import DiskId, InstanceId, MiB, NodeId
from common.noderpc.disks import DiskSpec
from common.noderpc.snapshots import SnapshotSpec
from coordinator.disks.devices import Devices
from coordinator.disks.holding import Handover, none, shared, sole
from coordinator.disks.parameters import disk_parameters, group_of
from coordinator.disks.wish import DiskWish
from coordinator.state.config import Config


class NewDisk(NamedTuple):
    """A disk of which is not decided yet where its bytes will be.

    Attributes:
        instance: whose it is going to be.
        disk: which.
        nodes: that will hold the data, as far as they have been chosen.
        devices: what numbers are free on them.
        wish: what is asked of it.
        parameters: those of its template in its instance's group, as far as that is known.
    """

    instance: InstanceId
    disk: DiskId
    nodes: tuple[NodeId, ...]
    devices: Devices
    wish: DiskWish = DiskWish()
    parameters: Layer = {}


class DiskKind(ABC):
    """Disks of one template."""

    unusable = ""
    """The code of what verify says of a node whose pool cannot be used."""

    heeds: frozenset[str] = frozenset()
    """Which wishes for a new disk mean something here, by the names of ``DiskWish``."""

    def __init__(self, template: DiskTemplate) -> None:
        self.template = template

    @property
    def traits(self) -> Traits:
        return self.template.traits

    def pool(self, cluster: Cluster) -> Pool | None:  # noqa: ARG002 -- of those that are in one
        """Return what new disks take space of, on each node that holds them or reaches them.

        None if that is nothing that nodes report, or the cluster has not set it up.
        """
        return None

    def pools(self, config: Config) -> tuple[Pool, ...]:
        """Return what new disks may take space of if nothing else is asked for."""
        pool = self.pool(config.cluster)
        return () if pool is None else (pool,)

    @abstractmethod
    def new_backing(self, cluster: Cluster, new: NewDisk) -> Backing:
        """Decide where a new disk's bytes will be.

        Raises:
            InvalidRequest: the cluster has no place for them.
        """

    def around(self, cluster: Cluster, present: Backing, new: NewDisk) -> Backing | None:  # noqa: ARG002
        """Decide how a disk becomes one of these whose data stays; None: it has to be copied.

        Raises:
            InvalidRequest: as ``new_backing``.
        """
        return None

    def can_be_bad(self, backing: Backing) -> bool:  # noqa: ARG002
        """Tell whether a node that reads a disk can find it damaged, other than by its data."""
        return False

    def is_thin(self, backing: Backing) -> bool:  # noqa: ARG002
        """Tell whether a disk may take less space than its size; its node tells how much."""
        return False

    def check_number(self, disks: Sequence[object]) -> None:
        """Refuse an instance with disks where there are none, or without where there have to be.

        Raises:
            InvalidRequest: says what to give.
        """
        if disks and not self.traits.has_disks:
            raise InvalidRequest(f"An instance with the template {self.template} has no disks.")
        if self.traits.has_disks and not disks:
            raise InvalidRequest("Say what disks it gets, as in --disk 0:size=10G.")

    def check_wish(self, wish: DiskWish) -> None:
        """Refuse a wish that would not be heeded.

        Raises:
            InvalidRequest: names it.
        """
        for name in wish.given():
            if name not in self.heeds:
                raise InvalidRequest(
                    f"Disks of the template {self.template} take no “{name.replace('_', ' ')}”."
                )

    def wish_of(self, cluster: Cluster, backing: Backing) -> DiskWish:  # noqa: ARG002 -- most have nothing to keep
        """Return what is asked of a disk that is made anew, elsewhere, to be of the same sort."""
        return DiskWish()

    def may_move_to(self, nodes: Sequence[NodeId]) -> tuple[NodeId, ...] | None:
        """Return the nodes on which an instance of ``nodes`` can run instead; None: on any.

        That is without its disks being copied first.
        """
        return None if self.traits.is_external else tuple(nodes[1:])

    def holders(self, nodes: Sequence[NodeId]) -> tuple[NodeId, ...]:
        """Return which of an instance's nodes, the primary one first, hold the data."""
        return tuple(nodes[: self.traits.holders])

    def reserved_on(
        self,
        disk: Disk,
        nodes: tuple[NodeId, ...],
        devices: Devices,  # noqa: ARG002 -- for those that have numbers of their own
    ) -> Disk:
        """Return a disk of which nothing is made yet as it will be on other nodes."""
        return replace(disk, nodes=nodes)

    def spec(self, config: Config, instance: Instance, disk: Disk) -> DiskSpec:
        """Return a disk as its nodes are told of it: the same for all of them.

        Neither instance nor disk need be in ``config`` yet; nodes and parameters are found there.
        """
        return self._spec(config, instance.uuid, group_of(config, instance.primary_node), disk)

    def detached_spec(self, config: Config, disk: Disk) -> DiskSpec:
        """Return the same of a disk that belongs to no instance: it is its own."""
        group = group_of(config, next(iter(disk.nodes), None))
        return self._spec(config, InstanceId(disk.uuid), group, disk)

    def _spec(self, config: Config, owner: InstanceId, group: Group | None, disk: Disk) -> DiskSpec:
        return DiskSpec(
            id=disk.uuid,
            instance=owner,
            size=disk.size,
            backing=disk.backing,
            mode=disk.mode,
            parameters=disk_parameters(config, group, self.template),
        )

    def kept_in(self, disk: DiskSpec, uuid: DiskId, room: MiB) -> SnapshotSpec | None:  # noqa: ARG002
        """Return what keeps a disk as it is at a moment; None if nothing can.

        Args:
            disk: as its nodes are told of it.
            uuid: of the new snapshot.
            room: for what changes since, where space is set aside for that.
        """
        return None

    def is_kept_in(self, disk: DiskSpec, snapshot: Snapshot) -> SnapshotSpec:
        """Return a snapshot as nodes are told of it."""
        kept = replace(
            disk,
            id=snapshot.uuid,
            size=snapshot.size,
            backing=snapshot.backing,
            mode=Mode.READ_ONLY,
            parameters={},
        )
        return SnapshotSpec(of=disk, kept=kept, room=snapshot.room)

    # What nodes are asked before and after something happens to a guest; if it has no disks, they
    # are not asked.

    def before_start(self, nodes: Sequence[NodeRef]) -> Handover:
        """Have the disks ready for a guest on the first of ``nodes``.

        If one of its nodes is not among them, the copy of that one falls behind.
        """
        return Handover(do=sole(nodes[0]), undo=none(nodes[0]))

    def before_start_apart(self, nodes: Sequence[NodeRef]) -> Handover:
        """Have them ready likewise, though the other nodes may not be reached from the first one.

        They have been asked before to look for each other.
        """
        return self.before_start(nodes)

    def after_stop(self, nodes: Sequence[NodeRef], *, was_running: bool = False) -> Handover:
        """Let go of the disks on all ``nodes``; undone, a guest can run on the first again."""
        return Handover(do=none(*nodes), undo=sole(nodes[0]) if was_running else ())

    def before_failover(self, nodes: Sequence[NodeRef], *, was_running: bool = False) -> Handover:
        """Let go of the disks on the first of ``nodes``, for a guest to be started on another."""
        return self.after_stop(nodes[:1], was_running=was_running)

    def after_failover(self, nodes: Sequence[NodeRef]) -> Handover:
        """Have the disks ready for a guest on the first of ``nodes``, which was on another."""
        return self.before_start(nodes)

    def before_move(self, source: NodeRef, target: NodeRef) -> Handover:
        """Let another node have the disks as well, for the time of a move."""
        return Handover(do=shared(source, target), undo=(*none(target), *sole(source)))

    def after_move(self, home: NodeRef, others: Sequence[NodeRef]) -> Handover:
        """Leave the disks to the node where the guest is now; there is no way back."""
        return Handover(do=(*none(*others), *sole(home)))


def kept_beside(disk: DiskSpec, uuid: DiskId, backing: Backing) -> SnapshotSpec:
    """Return what keeps a disk where no room has to be set aside for that."""
    kept = replace(disk, id=uuid, backing=backing, mode=Mode.READ_ONLY)
    return SnapshotSpec(of=disk, kept=kept, room=MiB(0))
