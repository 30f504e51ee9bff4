"""The score as one would write it first: loops over nodes and instances, nothing clever."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

from coordinator.allocator.snapshot import Instance, Node, Snapshot
from coordinator.allocator.tags import TagRules

WEIGHTS = [0.5, 0.5, 1, 1, 4, 16, 0.5, 1, 1, 1, 1, 2, 0.5, 0.5, 0.5, 0.5, 0.5, 1, 1, 0.25]


@dataclass
class SimpleNode:
    node: Node
    spindle_limit: float
    memory: int = 0
    disk: int = 0
    cpus: int = 0
    spindles: int = 0
    primaries: int = 0
    secondaries: int = 0
    fails_n1: bool = False
    location: int = 0
    load: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    peers: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    crowd: Counter[tuple[str, str]] = field(default_factory=Counter)
    next_memory: int = 0
    next_disk: int = 0
    next_cpus: int = 0
    next_spindles: int = 0

    @property
    def reserved(self) -> int:
        return max(self.peers.values(), default=0)

    @property
    def offline(self) -> bool:
        return not self.node.is_usable

    def figures(self) -> list[float]:
        total = self.node
        here = self.primaries + self.secondaries
        return [
            self.memory / total.total_memory,
            self.disk / total.total_disk if total.total_disk else 1.0,
            here if self.fails_n1 else 0,
            self.reserved / total.total_memory,
            0,
            0,
            self.cpus / total.total_cpus,
            *self.load,
            sum(self.tags.values()) - len(self.tags),
            self.spindles / self.spindle_limit,
            self.next_memory / total.total_memory,
            self.next_disk / total.total_disk if total.total_disk else 1.0,
            self.next_cpus / total.total_cpus,
            self.next_spindles / self.spindle_limit,
            self.location,
            0,
            self.reserved / total.total_memory,
        ]


class SimpleCluster:
    """A cluster that is built up instance by instance."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.rules = TagRules.of(snapshot.tags)
        self._names = [node.name for node in snapshot.nodes]
        self.nodes: dict[str, SimpleNode] = {}
        for node in snapshot.nodes:
            ratio = snapshot.groups[node.group].policy.spindle_ratio
            limit = ratio * (node.spindles if node.is_live else 0)
            self.nodes[node.name] = SimpleNode(node, limit)
        used: Counter[str] = Counter()
        for instance in snapshot.instances:
            used[self._names[instance.primary]] += instance.used_memory
            self._load(instance)
        for node in snapshot.nodes:
            simple = self.nodes[node.name]
            live = node.is_live
            capacity = int(node.total_memory) - node.own_memory if live else 0
            recorded = capacity - used[node.name]
            measured = node.free_memory if live else 0
            simple.memory = min(recorded, measured)
            simple.fails_n1 = measured < simple.reserved
            simple.next_memory += measured
            simple.disk += node.free_disk if live else 0
            simple.next_disk += node.free_disk if live else 0
            simple.cpus += node.own_cpus if live else 0
            simple.next_cpus += node.own_cpus if live else 0

    def _load(self, instance: Instance) -> None:
        """Count an instance that is there already, whose disk and memory are in use."""
        memory = instance.used_memory
        disk = instance.disk if instance.is_local and not instance.forthcoming else 0
        homes = [self._names[home] for home in instance.homes]
        self.add(instance, *homes)
        primary = self.nodes[homes[0]]
        primary.memory += memory
        primary.next_memory += memory
        for name in homes:
            self.nodes[name].disk += disk
            self.nodes[name].next_disk += disk

    def add(self, demand: Instance, primary: str, secondary: str | None = None) -> None:
        """Place an instance."""
        first = self.nodes[primary]
        second = self.nodes[secondary] if secondary else None
        disk = demand.disk if demand.is_local else 0
        spindles = demand.spindle_use if demand.is_local else 0
        tags = self.rules.exclusion_tags(demand.tags)
        first.next_memory -= demand.memory
        first.next_cpus += demand.used_vcpus
        first.tags.update(tags)
        for node in filter(None, (first, second)):
            node.next_disk -= disk
            node.next_spindles += spindles
        if demand.forthcoming:
            return
        first.memory -= demand.used_memory
        first.cpus += demand.used_vcpus
        first.primaries += 1
        here = self.rules.location_tags(first.node.tags)
        there = self.rules.location_tags(second.node.tags) if second else frozenset[str]()
        desired = self.rules.desired_locations(demand.tags)
        first.location += len(here & there) + len(desired - here)
        first.crowd.update((place, tag) for place in here for tag in tags)
        first.load = [old + new for old, new in zip(first.load, demand.load, strict=True)]
        for node in filter(None, (first, second)):
            node.disk -= disk
            node.spindles += spindles
        first.fails_n1 = first.memory <= first.reserved
        if second:
            second.secondaries += 1
            second.load[2] += demand.load[2]
            second.peers[primary] += demand.reserved_memory
            second.fails_n1 = second.memory <= second.reserved

    def score(self, names: Sequence[str]) -> float:
        """Of the nodes with these names, in this order."""
        nodes = [self.nodes[name] for name in names]
        online = [node for node in nodes if not node.offline]
        if not online:
            return 0.0
        figures = [node.figures() for node in online]
        crowd: Counter[tuple[str, str]] = Counter()
        for node in online:
            crowd.update(node.crowd)
        total = 0.0
        for term, weight in enumerate(WEIGHTS):
            column = [row[term] for row in figures]
            if term == 4:
                value: float = sum(n.primaries + n.secondaries for n in nodes if n.offline)
            elif term == 5:
                value = sum(n.primaries for n in nodes if n.offline)
            elif term == 18:
                value = sum(crowd.values()) - len(crowd)
            else:
                value = (_total if term in {2, 11, 17, 19} else _spread)(column)
            total += weight * value
        return total


def _total(column: Sequence[float]) -> float:
    total = 0.0
    for value in column:
        total += value
    return total


def _spread(column: Sequence[float]) -> float:
    mean = _total(column) / len(column)
    return sqrt(_total([(value - mean) * (value - mean) for value in column]) / len(column))
