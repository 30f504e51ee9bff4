"""One look at the cluster: its configuration, what nodes report, and what jobs have promised.

Everything a choice of nodes depends on is in it. The snapshot for the allocator is made from it,
and so is the message for allocator programs, so that all of them see the same.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from common.errors import GntError, NoCapacity
from common.model.disk import Disk
from common.noderpc.facts import NodeFacts
from coordinator.locks.names import Owner
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.room import Room
from coordinator.state.config import Config

if TYPE_CHECKING:
    from coordinator.allocator.snapshot import Snapshot
    from coordinator.operations.placement.shared import Placing

MAX_AGE_S = 1.0
"""How old reports may be that a choice begins with. The node chosen is asked again."""


class Look(Room):
    """The cluster at one moment."""

    def about(self, disks: Sequence[Disk]) -> "Look":
        """Return the same look, with the space of the pool that these disks take most of."""
        return dataclasses.replace(self, pool=self.pool_of(disks))

    @cached_property
    def snapshot(self) -> "Snapshot":
        """What the allocator sees; it knows one disk a node, which is ``pool``."""
        from coordinator.operations.placement.snapshot import take_snapshot

        return take_snapshot(self, self.pool or self.pool_of(()))


async def take_look(
    placing: "Placing",
    config: Callable[[], Config],
    *,
    but: Owner | None = None,
    max_age_s: float = MAX_AGE_S,
) -> Look:
    """Look at the cluster; for whoever wants to know what could be placed where.

    ``config`` gives the newest configuration, once the nodes have answered; ``but`` is whose
    promises are left out, ``max_age_s`` how old the nodes' reports may be.

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


async def look_about(cluster: Cluster, disks: Sequence[Disk], max_age_s: float = MAX_AGE_S) -> Look:
    """Look at the cluster and the pools that disks name; who does not answer is told in the log."""
    look = await look_for(cluster, max_age_s=max_age_s)
    if not look.tells_of(pool for disk in disks for pool in disk.backing.pools):
        look = await look_for(cluster, max_age_s=0.0)  # asked before anybody named them
    for uuid, facts in look.live.items():
        if isinstance(facts, GntError) and uuid in look.config.nodes:
            cluster.log(f"{look.config.nodes[uuid].name} is left out: {facts}")
    return look.about(disks)
