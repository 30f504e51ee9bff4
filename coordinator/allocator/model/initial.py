"""The resources of nodes at the start: sums over what is on each node."""

from collections.abc import Sequence

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.columns import NodeColumns
from coordinator.allocator.model.resources import UNKNOWN, Demands, NodeResources
from coordinator.allocator.snapshot import NOWHERE


class InitialNodes:
    """Sums over what is on each node.

    Attributes:
        measured: free memory as reported.
        missing: memory that nothing accounts for.
    """

    def __init__(
        self,
        nodes: NodeColumns,
        demands: Demands,
        primary: Ints,
        secondary: Ints,
        ratios: Sequence[tuple[float, float]],
        *,
        least_disk: float = 0.0,
    ) -> None:
        """Read the columns.

        Args:
            nodes: the nodes.
            demands: what instances ask.
            primary: where they are.
            secondary: the other node, or ``NOWHERE``.
            ratios: per group: virtual processors to real ones, spindle use to spindles.
            least_disk: share of a node's disk that has to stay free.
        """
        self._nodes, self._demands, self._ratios = nodes, demands, ratios
        self._primary, self._secondary, self._least_disk = primary, secondary, least_disk
        self.measured: Ints = np.array(nodes.free_memory, dtype=np.int64)
        total = np.array([int(amount) for amount in nodes.total_memory], dtype=np.int64)
        own = np.array(nodes.own_memory, dtype=np.int64)
        self._recorded: Ints = total - own - self.per_node(demands.memory, primary)
        self.missing: Ints = self._recorded - self.measured

    def per_node(self, amounts: Ints, *homes: Ints) -> Ints:
        """Sum amounts of instances by node."""
        sums = np.zeros(len(self._nodes.names), dtype=np.int64)
        for home in homes:
            there = home != NOWHERE
            np.add.at(sums, home[there], amounts[there])
        return sums

    def resources(self, *, reserved: Ints, conflicts: Ints, location: Ints) -> "NodeResources":
        """The resources, with what depends on who is whose peer, and on tags."""
        nodes, demands, ratios = self._nodes, self._demands, np.array(self._ratios, dtype=float)
        primary, secondary, per_node = self._primary, self._secondary, self.per_node

        def ints(values: Sequence[int]) -> Ints:
            return np.array(values, dtype=np.int64)

        def floats(values: Sequence[float]) -> Floats:
            return np.array(values, dtype=np.float64)

        exclusive = np.array(nodes.exclusive, dtype=np.bool_)
        total_disk, all_spindles = floats(nodes.total_disk), floats(nodes.spindles)
        disk, own_cpus = ints(nodes.free_disk), ints(nodes.own_cpus)
        free_spindles = np.where(exclusive, ints(nodes.free_spindles), 0)
        ratio_of = ratios.reshape(-1, 2)[ints(nodes.group)]
        coming = demands.next_disk - demands.disk
        down = demands.next_memory - demands.memory
        return NodeResources(
            total_memory=floats(nodes.total_memory),
            disk_unit=np.where(exclusive, all_spindles, total_disk),
            total_cpus=floats(nodes.total_cpus),
            speed=floats(nodes.speed),
            cpu_ratio=ratio_of[:, 0].copy(),
            spindle_limit=ratio_of[:, 1] * all_spindles,
            least_disk=np.floor(self._least_disk * total_disk).astype(np.int64),
            exclusive=exclusive,
            offline=~np.array(nodes.usable, dtype=np.bool_),
            memory=np.minimum(self._recorded, self.measured),
            reserved=reserved,
            fails_n1=self.measured < reserved,
            disk=disk,
            cpus=own_cpus + per_node(demands.cpus, primary),
            spindles=np.where(exclusive, 0, per_node(demands.spindles, primary, secondary)),
            free_spindles=free_spindles,
            primaries=per_node(demands.count, primary),
            secondaries=per_node(demands.count, secondary),
            load=self._loads(),
            conflicts=conflicts,
            location=location,
            next_memory=self.measured - per_node(down, primary),
            next_disk=disk - per_node(coming, primary, secondary),
            next_cpus=own_cpus + per_node(demands.next_cpus, primary),
            next_spindles=np.where(
                exclusive, 0, per_node(demands.next_spindles, primary, secondary)
            ),
            next_free_spindles=self._coming_spindles(free_spindles, exclusive),
        )

    def _coming_spindles(self, free: Ints, exclusive: Bools) -> Ints:
        """Free spindles with forthcoming instances; one that does not tell leaves ``UNKNOWN``."""
        left = free.copy()
        for one in np.flatnonzero(self._demands.count == 0).tolist():
            known = self._demands.disk_spindles[one]
            for node in (self._primary[one], self._secondary[one]):
                if node != NOWHERE and exclusive[node]:
                    left[node] = UNKNOWN if known == UNKNOWN else left[node] - known
        return left

    def _loads(self) -> Floats:
        """Loads added in the order of the instances; a secondary has disk load only."""
        primary, load = self._primary, self._demands.load
        sums = np.zeros((4, len(self._nodes.names)))
        for kind in (0, 1, 3):
            np.add.at(sums[kind], primary, load[kind])
        both = np.stack((primary, self._secondary), axis=1).ravel()
        amounts = np.repeat(load[2], 2)
        np.add.at(sums[2], both[both != NOWHERE], amounts[both != NOWHERE])
        return sums
