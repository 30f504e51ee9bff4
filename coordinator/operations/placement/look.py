"""One look at the cluster: its configuration, what nodes report, and what jobs have promised.

Everything a choice of nodes depends on is in it. The snapshot for the allocator is made from it,
and so is the message for allocator programs, so that all of them see the same.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from common.errors import NoCapacity
from common.model.instance import AdminState, nodes_of
from common.model.node import Node
from common.model.pool import Pool
from common.names import MiB
from common.noderpc.facts import NodeFacts
from coordinator.disks.space import taken_by
from coordinator.locks.names import Owner
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.demands import Demands
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import backend
from coordinator.state.config import Config

if TYPE_CHECKING:
    from coordinator.allocator.snapshot import Snapshot
    from coordinator.nodes.reports import Live
    from coordinator.operations.placement.shared import Placing

MAX_AGE_S = 1.0
"""How old reports may be that a choice begins with. The node chosen is asked again."""


@dataclass(frozen=True, eq=False)
class Look:
    """The cluster at one moment."""

    config: Config
    live: "Live"
    promised: tuple[Promise, ...] = ()
    demands: Demands = field(default_factory=Demands)

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
            if one and all(node in nodes for node in nodes_of(*one)) and not self._has_come(one)
        )

    def _has_come(self, one: PlannedInstance) -> bool:
        """Tell whether an instance is on all its nodes, and its disks are as large as planned."""
        present = self._configured(one)
        if present is None:
            return False
        sizes, wanted = (sum(disk.size for disk in each.disks) for each in (present, one))
        return set(nodes_of(*one)) <= set(nodes_of(*present)) and wanted <= sizes

    def _configured(self, one: PlannedInstance) -> PlannedInstance | None:
        instance = self.config.instances.get(one.instance.uuid)
        return PlannedInstance(instance, self.config.disks_of(instance)) if instance else None

    @cached_property
    def snapshot(self) -> "Snapshot":
        from coordinator.operations.placement.snapshot import take_snapshot

        return take_snapshot(self)

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

        Args:
            node: of the configuration.
            facts: what it reports.
            but: UUID of an instance that is not counted.
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
                if is_absent and instance.admin_state is AdminState.UP:
                    coming[instance.uuid] = backend(self.config, instance).maxmem
        return MiB(facts.memory_free - sum(coming.values()))

    def free_space(self, node: Node, facts: NodeFacts, pool: Pool | None) -> MiB | None:
        """Return the space of a pool that is left after what is promised; None if not known."""
        report = next((each for each in facts.storage if each.pool == pool), None)
        if report is None:
            return None
        coming = sum(self._yet_to_come(one, node, report.pool) for one in self.planned)
        return MiB(report.free - coming)

    def _yet_to_come(self, one: PlannedInstance, node: Node, pool: Pool) -> MiB:
        """Return what an instance is going to take of a pool beside what it takes already."""
        present = self._configured(one)
        wanted, taken = (
            taken_by(each.disks, pool) if each and _reaches(each, node) else 0
            for each in (one, present)
        )
        return MiB(max(0, wanted - taken))


def _reaches(one: PlannedInstance, node: Node) -> bool:
    """Tell whether an instance's disks take space as the node sees it."""
    return one.instance.disk_template.traits.is_external or node.uuid in nodes_of(*one)


async def take_look(
    placing: "Placing",
    config: Callable[[], Config],
    *,
    but: Owner | None = None,
    max_age_s: float = MAX_AGE_S,
) -> Look:
    """Look at the cluster; for whoever wants to know what could be placed where.

    Args:
        placing: what all placements share.
        config: gives the newest configuration, once the nodes have answered.
        but: whose promises are left out.
        max_age_s: how old the nodes' reports may be.

    Raises:
        NoCapacity: no node answers.
    """
    nodes = [node for node in config().sorted_nodes() if node.vm_capable]
    live = await placing.reports.of(nodes, max_age_s=max_age_s)
    if not any(isinstance(facts, NodeFacts) for facts in live.values()):
        raise NoCapacity("No node answers, so none can be chosen.")
    return Look(config(), live, placing.promises.standing(but=but), placing.demands)


async def look_for(cluster: Cluster, *, max_age_s: float = MAX_AGE_S) -> Look:
    """Look at the cluster for a job; its own promises do not count."""
    return await take_look(
        cluster.placing, lambda: cluster.config, but=cluster.owner, max_age_s=max_age_s
    )
