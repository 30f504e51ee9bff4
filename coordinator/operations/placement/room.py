"""What nodes have left when all is there that should be, and all that is promised."""

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

from msgspec.structs import replace

from common.model.disk import Disk
from common.model.node import Node
from common.model.pool import Pool
from common.names import MiB, NodeId
from common.noderpc.facts import NodeFacts, StorageReport
from coordinator.disks.exclusive import free_space, is_exclusive, spindles_taken
from coordinator.disks.kinds import enabled_kinds
from coordinator.disks.space import taken_by
from coordinator.operations.placement.demands import Demands
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import backend
from coordinator.state.config import Config

if TYPE_CHECKING:
    from coordinator.nodes.reports import Live


class SpindlesIn(NamedTuple):
    """The physical volumes of a pool that disks have for themselves, where storage is exclusive."""

    pool: Pool


Unit = Pool | SpindlesIn
"""What disks take: MiB of a pool, or so many physical volumes of it."""

_Coming = defaultdict[NodeId | None, Counter[Unit]]


@dataclass(frozen=True, eq=False)
class Room:
    """What nodes have left, and why: configuration, reports and promises of one moment."""

    config: Config
    live: "Live"
    promised: tuple[Promise, ...] = ()
    demands: Demands = field(default_factory=Demands)
    pool: Pool | None = None  # that new disks take space of, unless told by ``about``

    @cached_property
    def planned(self) -> tuple[PlannedInstance, ...]:
        """Instances that are promised a place which the configuration does not show yet.

        They are new, or get another node. One whose node has been removed meanwhile takes no
        room: its job will look for another.
        """
        nodes = self.config.nodes
        found = (promise.planned for promise in self.promised)
        return tuple(
            one
            for one in found
            if one and all(node in nodes for node in one.nodes) and not self._has_come(one)
        )

    def with_promise(self, promise: Promise) -> Self:
        """Return the same with one promise more, without looking at all others again."""
        after = dataclasses.replace(self, promised=(*self.promised, promise))
        one = promise.planned
        if one is None or promise.beside or self._has_come(one):
            return after
        coming = defaultdict(Counter, {node: Counter(of) for node, of in self._coming.items()})
        self._add(coming, one)
        vars(after).update(planned=(*self.planned, one), pools=self.pools, _coming=coming)
        vars(after).update(_reserved=self._reserved)
        return after

    def _has_come(self, one: PlannedInstance) -> bool:
        """Tell whether an instance is on all its nodes, with its disks as large as planned."""
        present = self._configured(one)
        if present is None or one.anew or not set(one.nodes) <= set(present.nodes):
            return False
        sizes = {disk.uuid: disk.size for disk in present.disks}
        return all(disk.size <= sizes.get(disk.uuid, -1) for disk in one.disks)

    def _configured(self, one: PlannedInstance) -> PlannedInstance | None:
        instance = self.config.instances.get(one.instance.uuid)
        return PlannedInstance(instance, self.config.disks_of(instance)) if instance else None

    @cached_property
    def has_several_usable(self) -> bool:
        """Tell whether instances could move at all: more than one node takes any."""
        usable = (
            node
            for node in self.config.nodes.values()
            if node.vm_capable and not (node.offline or node.drained) and self.facts(node)
        )
        return sum(1 for _ in usable) > 1

    def facts(self, node: Node) -> NodeFacts | None:
        """Return what a node reports; None if it is offline or does not answer."""
        facts = self.live.get(node.uuid)
        return facts if isinstance(facts, NodeFacts) else None

    def free_memory(self, node: Node, facts: NodeFacts, *, but: str = "") -> MiB:
        """Return what is left when all guests run that shall, or are promised to; may be below 0.

        A node reports what is free beside the guests it has. Those of instances that should
        run there and do not, yet or any more, are taken off.

        ``but`` is the UUID of an instance that is not counted.
        """
        present = (facts.guests or {}).keys() | {but}
        coming = {
            promise.instance: promise.memory
            for promise in self.promised
            if promise.node == node.uuid and promise.instance not in present
        }
        if facts.guests is not None:
            for instance in self.config.instances_on(node.uuid):
                is_absent = instance.uuid not in present and instance.uuid not in coming
                if is_absent and instance.takes_memory:
                    coming[instance.uuid] = backend(self.config, instance).maxmem
        return MiB(facts.memory_free - sum(coming.values()))

    def report_of(self, node: Node, pool: Pool) -> StorageReport | None:
        """Return what a node says of a pool; None if it says nothing."""
        facts = self.facts(node)
        reports = facts.storage if facts else ()
        return next((each for each in reports if each.pool == pool), None)

    def free_space(self, node: Node, pool: Pool) -> MiB | None:
        """Return the space of a pool that is left after what is promised; None if not known.

        Where storage is exclusive that is all of the physical volumes that are left.
        """
        report = self.report_of(node, pool)
        if report is None:
            return None
        if is_exclusive(self.config, node.uuid) and report.spindles is not None:
            left = self.free_spindles(node, pool) or 0
            spindles = replace(report.spindles, free=max(0, left))
            return free_space(replace(report, spindles=spindles), exclusive=True)
        return MiB(report.free - self._promised(node)[pool])

    def free_spindles(self, node: Node, pool: Pool) -> int | None:
        """Return how many physical volumes are left likewise; None if the node does not tell."""
        report = self.report_of(node, pool)
        if report is None or report.spindles is None:
            return None
        return report.spindles.free - self._promised(node)[SpindlesIn(pool)]

    def _promised(self, node: Node) -> Counter[Unit]:
        """Return what is promised of a node, and kept free on it."""
        taken = self._coming[node.uuid] + self._coming[None]
        return taken + self._reserved[node.uuid] + self._reserved[None]

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """All pools that nodes report."""
        every = (facts.storage for facts in self.live.values() if isinstance(facts, NodeFacts))
        return tuple(dict.fromkeys(report.pool for reports in every for report in reports))

    def tells_of(self, pools: Iterable[Pool]) -> bool:
        """Tell whether all nodes that have answered were asked about these pools."""
        wanted = {*pools}
        answers = (facts for facts in self.live.values() if isinstance(facts, NodeFacts))
        return all(wanted <= {report.pool for report in facts.storage} for facts in answers)

    def pool_of(self, disks: Sequence[Disk]) -> Pool | None:
        """Return the pool that disks take most of; if there is none, that of new disks."""
        taken = {pool: size for pool, size in self.taken(disks).items() if isinstance(pool, Pool)}
        if taken:
            return max(taken, key=taken.__getitem__)
        kinds = enabled_kinds(self.config.cluster)
        usual = (kind.pool(self.config.cluster) for kind in kinds)
        return next((pool for pool in usual if pool in self.pools), None)

    @cached_property
    def _coming(self) -> Mapping[NodeId | None, Counter[Unit]]:
        """What is promised and not taken yet, by node; None: wherever the pool is reached."""
        coming: _Coming = defaultdict(Counter)
        for one in self.planned:
            self._add(coming, one)
        for promise in self.promised:
            coming[promise.node] += self.taken(promise.beside)
        return coming

    @cached_property
    def _reserved(self) -> Mapping[NodeId | None, Counter[Unit]]:
        """What disks will take that are only reserved, by node, as ``_coming``.

        While one is being made it counts twice: nodes do not tell whose space is taken already.
        """
        reserved: _Coming = defaultdict(Counter)
        for instance in self.config.reservations:
            disks = self.config.disks_of(instance)
            is_everywhere = instance.disk_template.traits.is_external
            for node in (None,) if is_everywhere else self.config.nodes_of(instance):
                reserved[node] += self.taken(disks)
        return reserved

    def _add(self, coming: "_Coming", one: PlannedInstance) -> None:
        is_everywhere = one.instance.disk_template.traits.is_external
        for node in (None,) if is_everywhere else one.nodes:
            coming[node] += self.needs(one, node)

    def needs(self, one: PlannedInstance, node: NodeId | None) -> Counter[Unit]:
        """Return what an instance is going to take of a node's pools beside what it takes already.

        None stands for all nodes, where they share the pool. Disks that are to be others take
        their space while the new ones take theirs, unless they are only reserved; those that are
        made anew take none.
        """
        present = self._configured(one)
        if present is None or not (node is None or node in present.nodes):
            return self.taken(one.disks)
        kept = {disk.uuid for disk in one.disks} - one.anew
        is_reserved = present.instance.forthcoming
        taken = [disk for disk in present.disks if is_reserved or disk.uuid in kept]
        return self.taken(one.disks) - self.taken(taken)

    def taken(self, disks: Sequence[Disk]) -> Counter[Unit]:
        """Return what disks take of each pool, on each node that has them.

        Physical volumes count where storage is exclusive, and MiB elsewhere.
        """
        taken = Counter[Unit]({pool: taken_by(disks, pool) for pool in self.pools})
        if any(disk.spindles for disk in disks):
            taken.update({SpindlesIn(pool): spindles_taken(disks, pool) for pool in self.pools})
        return +taken
