"""Columns of figures, one per node and one per instance, for many moves side by side.

``Books`` say what nodes have and owe, ``Demands`` what instances ask; both are rows of equal
length that numpy combines, broadcasting where shapes differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.inventory import NOWHERE, Instance, Inventory
from coordinator.allocator.tags import TagRules

UNKNOWN = -1  # spindles of an instance whose disks do not tell


@dataclass(frozen=True, slots=True)
class Demands:
    """What instances ask of their nodes; a column each, memory and disk in MiB.

    Of a forthcoming instance the first block is 0: it counts only in what will be.

    Attributes:
        count: 1, or 0 if forthcoming.
        needed: memory that the secondary keeps free.
        disk_spindles: where storage is exclusive; ``UNKNOWN`` if the disks do not tell.
        load: shape (4, instances): processors, memory, disk, network.
    """

    count: Ints
    memory: Ints
    cpus: Ints
    disk: Ints
    spindles: Ints
    needed: Ints
    load: Floats

    local: Bools
    mirrored: Bools
    disk_spindles: Ints
    next_memory: Ints
    next_cpus: Ints
    next_disk: Ints
    next_spindles: Ints

    def at(self, some: Ints) -> "Demands":
        return Demands(*(getattr(self, field.name)[..., some] for field in fields(self)))


def demands_of(instances: Sequence[Instance]) -> Demands:
    def column(values: list[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    count = column([not i.forthcoming for i in instances])
    local = np.array([i.is_local for i in instances], dtype=np.bool_)
    cpus = column([i.used_vcpus for i in instances])
    disk = column([i.disk for i in instances]) * local
    spindles = column([i.spindle_use for i in instances]) * local
    load = np.array([i.load for i in instances], dtype=np.float64).reshape(-1, 4).T
    return Demands(
        count=count,
        memory=column([i.memory if i.uses_memory else 0 for i in instances]),
        cpus=cpus * count,
        disk=disk * count,
        spindles=spindles * count,
        needed=column([i.memory if i.reserves_memory else 0 for i in instances]),
        load=np.where(count > 0, load, 0.0),
        local=local,
        mirrored=np.array([i.template == "drbd" for i in instances], dtype=np.bool_),
        disk_spindles=column(
            [UNKNOWN if i.disk_spindles is None else i.disk_spindles for i in instances]
        ),
        next_memory=column([i.memory for i in instances]),
        next_cpus=cpus,
        next_disk=disk,
        next_spindles=spindles,
    )


@dataclass(frozen=True, slots=True)
class Books:
    """What nodes have, owe and hold; a column each.

    The upper block never changes. The ``next_`` fields count forthcoming instances too.

    Attributes:
        disk_unit: by what free disk is divided for the score: the total, or all spindles.
        least_disk: free disk that has to stay.
        memory: not allocated.
        reserved: kept free for the peer whose failure would bring most.
        fails_n1: whether ``reserved`` is more than there is.
        load: shape (4, nodes).
        conflicts: exclusion tags held more often than once, counted above one.
        location: location tags that primaries share with their secondary, and unmet wishes.
    """

    total_memory: Floats
    disk_unit: Floats
    total_cpus: Floats
    speed: Floats
    cpu_ratio: Floats
    spindle_limit: Floats
    least_disk: Ints
    exclusive: Bools
    offline: Bools

    memory: Ints
    reserved: Ints
    fails_n1: Bools
    disk: Ints
    cpus: Ints
    spindles: Ints
    free_spindles: Ints
    primaries: Ints
    secondaries: Ints
    load: Floats
    conflicts: Ints
    location: Ints
    next_memory: Ints
    next_disk: Ints
    next_cpus: Ints
    next_spindles: Ints
    next_free_spindles: Ints

    def at(self, nodes: Ints) -> "Books":
        """Copies of some columns."""
        return Books(*(getattr(self, field.name)[..., nodes] for field in fields(self)))

    def put(self, node: int, other: "Books") -> None:
        """Overwrite one column by the only one of ``other``."""
        for field in fields(self):
            getattr(self, field.name)[..., node] = getattr(other, field.name)[..., 0]

    def copy(self) -> "Books":
        return replace(self, **{f.name: getattr(self, f.name).copy() for f in fields(self)})


@dataclass(frozen=True, slots=True)
class Opening:
    """How things stand before the first move; node indices as in the inventory.

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

    inventory: Inventory
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


def open_books(inventory: Inventory, *, least_disk: float = 0.0) -> Opening:
    """Open the books as Ganeti's tools do.

    Args:
        inventory: the cluster.
        least_disk: share of a node's disk that has to stay free.
    """
    nodes, instances = inventory.nodes, inventory.instances
    size = len(nodes)
    demands = demands_of(instances)
    primary = np.array([i.primary for i in instances], dtype=np.int64)
    secondary = np.array([i.secondary for i in instances], dtype=np.int64)
    real = demands.count > 0

    def ints(values: list[int]) -> Ints:
        return np.array(values, dtype=np.int64)

    def floats(values: list[float]) -> Floats:
        return np.array(values, dtype=np.float64)

    def per_node(amounts: Ints, *homes: Ints) -> Ints:
        sums = np.zeros(size, dtype=np.int64)
        for home in homes:
            there = home != NOWHERE
            np.add.at(sums, home[there], amounts[there])
        return sums

    promised = np.zeros((size, size), dtype=np.int64)
    pairs = real & (secondary != NOWHERE)
    np.add.at(promised, (secondary[pairs], primary[pairs]), demands.needed[pairs])
    measured = ints([node.free_memory for node in nodes])
    recorded = ints([int(node.total_memory) - node.own_memory for node in nodes]) - per_node(
        demands.memory, primary
    )
    missing = recorded - measured
    reserved = promised.max(axis=1, initial=0)
    exclusive = np.array([node.exclusive for node in nodes], dtype=np.bool_)
    policies = [inventory.groups[node.group].policy for node in nodes]
    total_disk = floats([node.total_disk for node in nodes])
    all_spindles = floats([node.spindles for node in nodes])
    disk = ints([node.free_disk for node in nodes])
    free_spindles = ints([node.free_spindles if node.exclusive else 0 for node in nodes])
    coming = demands.next_disk - demands.disk
    own_cpus = ints([node.own_cpus for node in nodes])
    rules = TagRules.of(inventory.tags)
    tagging = _Tagging(inventory, rules, primary, secondary)
    books = Books(
        total_memory=floats([node.total_memory for node in nodes]),
        disk_unit=np.where(exclusive, all_spindles, total_disk),
        total_cpus=floats([node.total_cpus for node in nodes]),
        speed=floats([node.speed for node in nodes]),
        cpu_ratio=floats([policy.vcpu_ratio for policy in policies]),
        spindle_limit=floats([policy.spindle_ratio for policy in policies]) * all_spindles,
        least_disk=np.floor(least_disk * total_disk).astype(np.int64),
        exclusive=exclusive,
        offline=np.array([node.offline for node in nodes], dtype=np.bool_),
        memory=recorded - np.maximum(0, missing),
        reserved=reserved,
        fails_n1=measured < reserved,
        disk=disk,
        cpus=own_cpus + per_node(demands.cpus, primary),
        spindles=np.where(exclusive, 0, per_node(demands.spindles, primary, secondary)),
        free_spindles=free_spindles,
        primaries=per_node(demands.count, primary),
        secondaries=per_node(demands.count, secondary),
        load=_loads(size, demands, primary, secondary),
        conflicts=np.maximum(tagging.holders - 1, 0).sum(axis=0),
        location=per_node(tagging.own_location * real, primary),
        next_memory=measured - per_node(demands.next_memory - demands.memory, primary),
        next_disk=disk - per_node(coming, primary, secondary),
        next_cpus=own_cpus + per_node(demands.next_cpus, primary),
        next_spindles=np.where(exclusive, 0, per_node(demands.next_spindles, primary, secondary)),
        next_free_spindles=_coming_spindles(inventory, free_spindles),
    )
    return Opening(
        inventory, rules, books, demands, primary, secondary, promised, measured, missing,
        tagging.holders, tagging.tagged, tagging.places, tagging.unmet, tagging.own_location,
        tagging.may_migrate,
    )  # fmt: skip


def _coming_spindles(inventory: Inventory, free: Ints) -> Ints:
    """Free spindles with forthcoming instances; one that does not tell leaves ``UNKNOWN``."""
    left = free.copy()
    for instance in inventory.instances:
        if instance.forthcoming:
            for node in instance.homes:
                if inventory.nodes[node].exclusive:
                    known = instance.disk_spindles
                    left[node] = UNKNOWN if known is None else left[node] - known
    return left


def _loads(size: int, demands: Demands, primary: Ints, secondary: Ints) -> Floats:
    """Loads added in the order of the instances; a secondary has disk load only."""
    sums = np.zeros((4, size))
    for kind in (0, 1, 3):
        np.add.at(sums[kind], primary, demands.load[kind])
    both = np.stack((primary, secondary), axis=1).ravel()
    amounts = np.repeat(demands.load[2], 2)
    np.add.at(sums[2], both[both != NOWHERE], amounts[both != NOWHERE])
    return sums


class _Tagging:
    """What tags say, as tables."""

    def __init__(
        self, inventory: Inventory, rules: TagRules, primary: Ints, secondary: Ints
    ) -> None:
        nodes, instances = inventory.nodes, inventory.instances
        excluding = [rules.exclusion_tags(frozenset(i.tags)) for i in instances]
        self.tagged = _table(excluding)
        self.holders = np.zeros((self.tagged.shape[1], len(nodes)), dtype=np.int64)
        np.add.at(self.holders.T, primary, self.tagged)
        places = [rules.location_tags(frozenset(node.tags)) for node in nodes]
        self.places = _table(places)
        wishes = [rules.desired_locations(frozenset(i.tags)) for i in instances]
        self.unmet = np.zeros((len(instances), len(nodes)), dtype=np.int64)
        for index, wish in enumerate(wishes):
            if wish:
                self.unmet[index] = [len(wish - place) for place in places]
        shared = (self.places @ self.places.T)[primary, secondary] * (secondary != NOWHERE)
        self.own_location = shared + self.unmet[np.arange(len(instances)), primary]
        required = [rules.migration_tags(frozenset(node.tags)) for node in nodes]
        accepted = [rules.accepted_tags(frozenset(node.tags)) for node in nodes]
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
