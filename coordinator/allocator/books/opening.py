"""The books as they are opened: sums over what is on each node, and what tags say, as tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.books.books import UNKNOWN, Books, Demands, demands_in
from coordinator.allocator.columns import NodeColumns
from coordinator.allocator.snapshot import NOWHERE, Snapshot
from coordinator.allocator.tags import TagRules


@dataclass(frozen=True, slots=True)
class Opening:
    """How things stand before the first move; node indices as in the snapshot.

    Attributes:
        promised: row by secondary, column by primary: memory kept free for it.
        measured: free memory as reported.
        missing: memory that nothing accounts for.
        holders: row by exclusion tag, column by node: primaries with it.
        tagged: row by instance, column by exclusion tag.
        places: row by node, column by location tag.
        unmet: row by instance, column by node: wishes for a location it does not meet.
        own_location: per instance, its part in its primary's location score.
        may_migrate: row by source, column by target.
    """

    snapshot: Snapshot
    rules: TagRules
    books: Books
    demands: Demands
    primary: Ints
    secondary: Ints
    promised: Ints
    measured: Ints
    missing: Ints
    holders: Ints
    tagged: Ints
    places: Ints
    unmet: Ints
    own_location: Ints
    may_migrate: Bools


def open_books(snapshot: Snapshot, *, least_disk: float = 0.0) -> Opening:
    """Open the books as Ganeti's tools do.

    Args:
        snapshot: the cluster.
        least_disk: share of a node's disk that has to stay free.
    """
    nodes, instances = snapshot.columns
    demands = demands_in(instances)
    primary, secondary = np.array((instances.primary, instances.secondary), dtype=np.int64)
    size = len(nodes.names)
    promised = np.zeros((size, size), dtype=np.int64)
    pairs = (demands.count > 0) & (secondary != NOWHERE)
    np.add.at(promised, (secondary[pairs], primary[pairs]), demands.needed[pairs])
    rules = TagRules.of(snapshot.tags + snapshot.more_tags)
    tagging = _Tagging(snapshot, rules, primary, secondary)
    ratios = [(group.policy.vcpu_ratio, group.policy.spindle_ratio) for group in snapshot.groups]
    opened = OpenedNodes(nodes, demands, primary, secondary, ratios, least_disk=least_disk)
    books = opened.books(
        reserved=promised.max(axis=1, initial=0),
        conflicts=np.maximum(tagging.holders - 1, 0).sum(axis=0),
        location=opened.per_node(tagging.own_location * demands.count, primary),
    )
    if snapshot.cpu_loads is not None:
        books.load[0] = snapshot.cpu_loads
    return Opening(
        snapshot, rules, books, demands, primary, secondary, promised, opened.measured,
        opened.missing, tagging.holders, tagging.tagged, tagging.places, tagging.unmet,
        tagging.own_location, tagging.may_migrate,
    )  # fmt: skip


class OpenedNodes:
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

    def books(self, *, reserved: Ints, conflicts: Ints, location: Ints) -> "Books":
        """The books, with the columns that depend on who is whose peer, and on tags."""
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
        return Books(
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


class _Tagging:
    """What tags say, as tables."""

    def __init__(self, snapshot: Snapshot, rules: TagRules, primary: Ints, secondary: Ints) -> None:
        nodes, instances = snapshot.nodes, snapshot.instances
        excluding = [rules.exclusion_tags(i.tags) for i in instances]
        self.tagged = _table(excluding)
        self.holders = np.zeros((self.tagged.shape[1], len(nodes)), dtype=np.int64)
        np.add.at(self.holders.T, primary, self.tagged)
        places = [rules.location_tags(node.tags) for node in nodes]
        self.places = _table(places)
        wishes = [rules.desired_locations(i.tags) for i in instances]
        self.unmet = np.zeros((len(instances), len(nodes)), dtype=np.int64)
        for index, wish in enumerate(wishes):
            if wish:
                self.unmet[index] = [len(wish - place) for place in places]
        shared = (self.places @ self.places.T)[primary, secondary] * (secondary != NOWHERE)
        self.own_location = shared + self.unmet[np.arange(len(instances)), primary]
        required = [rules.migration_tags(node.tags) for node in nodes]
        accepted = [rules.accepted_tags(node.tags) for node in nodes]
        self.may_migrate = np.ones((len(nodes), len(nodes)), dtype=np.bool_)
        for index, tags in enumerate(required):
            if tags:
                self.may_migrate[index] = [tags <= other for other in accepted]


def _table(rows: list[frozenset[str]]) -> Ints:
    """1 where the row has the tag; a column per tag."""
    tags = {tag: column for column, tag in enumerate(sorted(set[str]().union(*rows)))}
    table = np.zeros((len(rows), len(tags)), dtype=np.int64)
    for row, some in enumerate(rows):
        table[row, [tags[tag] for tag in some]] = 1
    return table
