"""The model of a whole cluster, as hail has it at the start, and who is where."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from common.model.template import TRAITS
from common.names import NodeName
from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.model.evacuation_load import EvacuationLoad
from coordinator.allocator.model.initial import InitialNodes
from coordinator.allocator.model.resources import UNKNOWN, Demands, NodeResources, demands_in
from coordinator.allocator.model.score import figures_of_row
from coordinator.allocator.policy import check_policy
from coordinator.allocator.snapshot import NOWHERE, Instance, Snapshot
from coordinator.allocator.tags import TagRules


@dataclass(frozen=True, slots=True)
class Peers:
    """Pairs of nodes that have mirrored instances in common; arrays of shape (pairs,), MiB.

    Attributes:
        primary, secondary: indices of the nodes.
        promised: memory the secondary keeps free for the primary's failure.
        arriving: memory that would really be taken there now; instances that are down
            are promised memory but use none.
        unknown: whether some instance does not say what spindles it takes.
        key: ``primary * nodes + secondary``, rising.
    """

    primary: Ints
    secondary: Ints
    promised: Ints
    arriving: Ints
    unknown: Bools
    key: Ints


@lru_cache(maxsize=1)
def model_of(snapshot: Snapshot) -> "ClusterModel":
    """The model of a snapshot; those of the last one are kept, as many requests may use it."""
    return ClusterModel(snapshot)


class ClusterModel:
    """The whole cluster's resources, and who is where. Nodes are known by their index.

    Attributes:
        demands: what the instances ask, as columns.
        primary_of, secondary_of: where they are.
        real: whether they are there already.
        tags: of each instance.
        arrivals: instances that have moved since, by index; the last one last.
        missing: memory of each node that nothing accounts for, in MiB.
    """

    def __init__(self, snapshot: Snapshot, *, least_disk: float = 0.0) -> None:
        """Build the model.

        Args:
            snapshot: the cluster.
            least_disk: share of a node's disk that has to stay free.
        """
        nodes, instances = snapshot.columns
        self.snapshot = snapshot
        self.rules = TagRules.of(snapshot.tags + snapshot.more_tags)
        self._nodes = nodes
        self.size = len(nodes.names)
        self.names = tuple(map(NodeName, nodes.names))
        self.group_of = np.array(nodes.group, dtype=np.int64)
        self.usable: Bools = np.array(nodes.usable, dtype=np.bool_)
        self.exclusive: Bools = np.array(nodes.exclusive, dtype=np.bool_)
        self.primary_of = np.array(instances.primary, dtype=np.int64)
        self.secondary_of = np.array(instances.secondary, dtype=np.int64)
        self.demands: Demands = demands_in(instances)
        self.real: Bools = self.demands.count > 0
        self.tags = instances.tags
        self.arrivals: tuple[int, ...] = ()
        policies = [group.policy for group in snapshot.groups]
        self._initial = InitialNodes(
            nodes,
            self.demands,
            self.primary_of,
            self.secondary_of,
            [(policy.vcpu_ratio, policy.spindle_ratio) for policy in policies],
            least_disk=least_disk,
        )
        self.missing: Ints = self._initial.missing

    @cached_property
    def evacuation_load(self) -> EvacuationLoad:
        """What would have to leave each node."""
        real = np.flatnonzero(self.real)
        is_picky = np.zeros(len(self.snapshot.groups), dtype=np.bool_)
        is_picky[self.group_of[self.exclusive]] = True
        return EvacuationLoad.of(
            self.demands.at(real),
            self.primary_of[real],
            forbidden=self._nodes_with_forbidden(is_picky),
            tied=self.tied | is_picky[self.group_of],
        )

    def _nodes_with_forbidden(self, is_picky: Bools) -> Bools:
        """Per node: whether one of its instances can only be made anew, and the policy forbids it.

        Args:
            is_picky: per group, whether it has exclusive storage.
        """
        forbidden = np.zeros(self.size, dtype=np.bool_)
        known: dict[object, bool] = {}
        columns = self.snapshot.columns[1]
        for one in np.flatnonzero(self.real & ~self.demands.mirrored).tolist():
            template, node = columns.template[one], int(self.primary_of[one])
            if TRAITS[template].leaves_as_it_is:
                continue
            group = int(self.group_of[node])
            size = (columns.memory[one], columns.vcpus[one], columns.spindle_use[one])
            spindles, disks = columns.disk_spindles[one], tuple(columns.disks[one])
            key = (group, template, size, spindles, disks)
            if key not in known:
                policy = self.snapshot.groups[group].policy
                demand = self.snapshot.instances[one]
                kinds = (False, True) if is_picky[group] else (False,)
                known[key] = all(check_policy(policy, demand, exclusive=kind) for kind in kinds)
            forbidden[node] |= known[key]
        return forbidden

    @cached_property
    def peers(self) -> Peers:
        """Pairs of nodes with mirrored instances, forthcoming ones left out."""
        mirrored = np.flatnonzero(self.real & (self.secondary_of >= 0))
        keys = (self.primary_of * self.size + self.secondary_of)[mirrored]
        key, where = unique(keys)
        promised, arriving = np.zeros_like(key), np.zeros_like(key)
        np.add.at(promised, where, self.demands.needed[mirrored])
        np.add.at(arriving, where, self.demands.memory[mirrored])
        unknown = np.zeros(len(key), dtype=np.bool_)
        unknown[where[self.demands.disk_spindles[mirrored] == UNKNOWN]] = True
        size = max(self.size, 1)
        return Peers(key // size, key % size, promised, arriving, unknown, key)

    @cached_property
    def resources(self) -> NodeResources:
        """The resources of all nodes at the start."""
        reserved = np.zeros(self.size, dtype=np.int64)
        np.maximum.at(reserved, self.peers.secondary, self.peers.promised)
        resources = self._initial.resources(
            reserved=reserved,
            conflicts=self._conflicts(),
            location=self._initial.per_node(
                self.location_scores * self.demands.count, self.primary_of
            ),
        )
        if self.snapshot.cpu_loads is not None:
            resources.load[0] = self.snapshot.cpu_loads
        return resources

    def row(self, node: int) -> NodeResources:
        """The resources of one node at the start, as Python's numbers."""
        if node not in self._rows:
            self._rows[node] = self.resources.row(node)
        return self._rows[node]

    def figures(self, node: int) -> tuple[float, ...]:
        """What one node contributes to each term of the score at the start."""
        if node not in self._figures:
            self._figures[node] = figures_of_row(self.row(node))
        return self._figures[node]

    @cached_property
    def _figures(self) -> dict[int, tuple[float, ...]]:
        return {}

    @cached_property
    def _rows(self) -> dict[int, NodeResources]:
        return {}

    @cached_property
    def holders(self) -> Mapping[str, Mapping[int, int]]:
        """Per exclusion tag: how many primaries with it each node has, forthcoming included."""
        found: dict[str, Counter[int]] = defaultdict(Counter)
        if self.rules.exclusion:
            for tags, node in zip(self.tags, self.primary_of.tolist(), strict=True):
                for tag in self.rules.exclusion_tags(tags):
                    found[tag][node] += 1
        return found

    def _conflicts(self) -> Ints:
        conflicts = np.zeros(self.size, dtype=np.int64)
        for counts in self.holders.values():
            for node, count in counts.items():
                conflicts[node] += count - 1
        return conflicts

    @cached_property
    def location_tags(self) -> tuple[frozenset[str], ...]:
        """Per node."""
        return tuple(self.rules.location_tags(tags) for tags in self._nodes.tags)

    @cached_property
    def has_locations(self) -> bool:
        return bool(self.rules.location) and any(self.location_tags)

    @cached_property
    def crowds(self) -> Mapping[int, Counter[tuple[str, str]]]:
        """Per node: primaries counted by (location tag of the node, exclusion tag)."""
        crowds: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
        if self.has_locations and self.rules.exclusion:
            for index in np.flatnonzero(self.real).tolist():
                node = int(self.primary_of[index])
                tags = self.rules.exclusion_tags(self.tags[index])
                for place in self.location_tags[node]:
                    crowds[node].update((place, tag) for tag in tags)
        return crowds

    @cached_property
    def location_scores(self) -> Ints:
        """Per instance: its part in the location score of its primary node, at the start."""
        if not self.has_locations and not self.rules.desired_location:
            return np.zeros(len(self.primary_of), dtype=np.int64)
        ends = zip(self.tags, self.primary_of.tolist(), self.secondary_of.tolist(), strict=True)
        return np.array(
            [self._location_score(tags, primary, secondary) for tags, primary, secondary in ends],
            dtype=np.int64,
        )

    def location_score(self, demand: Instance, primary: int, secondary: int = NOWHERE) -> int:
        """Location tags both nodes share, plus desired locations it does not have."""
        return self._location_score(demand.tags, primary, secondary)

    def _location_score(self, tags: Iterable[str], primary: int, secondary: int) -> int:
        if not self.has_locations and not self.rules.desired_location:
            return 0
        here = self.location_tags[primary]
        unmet = len(self.rules.desired_locations(tags) - here)
        return unmet + (len(here & self.location_tags[secondary]) if secondary >= 0 else 0)

    def unmet_locations(self, demand: Instance, nodes: Ints) -> Ints:
        """Per node as primary: how many desired locations it does not have."""
        desired = self.rules.desired_locations(demand.tags)
        if not desired:
            return np.zeros(len(nodes), dtype=np.int64)
        tags = self.location_tags
        return np.array([len(desired - tags[node]) for node in nodes.tolist()], dtype=np.int64)

    def shared_locations(self, nodes: Ints) -> Ints:
        """Matrix: how many location tags each two of the nodes share."""
        index = {tag: column for column, tag in enumerate(set().union(*self.location_tags))}
        table = np.zeros((len(nodes), len(index)), dtype=np.int64)
        for row, node in enumerate(nodes.tolist()):
            table[row, [index[tag] for tag in self.location_tags[node]]] = 1
        shared: Ints = table @ table.T
        return shared

    def forbidden(self, demand: Instance, nodes: Ints) -> Ints:
        """Per node: code of the ``Reason`` for which its group's policy forbids the instance."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        kinds = self.group_of[nodes] * 2 + self.exclusive[nodes]
        for kind in set(kinds.tolist()):
            policy = self.snapshot.groups[kind // 2].policy
            codes[kinds == kind] = check_policy(policy, demand, exclusive=bool(kind % 2))
        return codes

    def may_migrate(self, source: int, targets: Iterable[int]) -> Bools:
        """Per target: whether it accepts every migration tag of the source."""
        required = self.rules.migration_tags(self._nodes.tags[source])
        tags = self._nodes.tags
        return np.array(
            [
                not required or required <= self.rules.accepted_tags(tags[target])
                for target in targets
            ],
            dtype=np.bool_,
        )

    @cached_property
    def tied(self) -> Bools:
        """Per node: whether migration tags restrict where its instances may go."""
        if not self.rules.migration:
            return np.zeros(self.size, dtype=np.bool_)
        tags = map(self.rules.migration_tags, self._nodes.tags)
        return np.array([bool(some) for some in tags], dtype=np.bool_)


def unique(keys: Ints) -> tuple[Ints, Ints]:
    """Distinct keys, rising, and the place of each among them.

    As ``np.unique``, which imports numpy.ma to see whether that is used: 10 ms.
    """
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    is_first = np.ones(len(keys), dtype=np.bool_)
    is_first[1:] = ranked[1:] != ranked[:-1]
    where = np.empty(len(keys), dtype=np.int64)
    where[order] = np.cumsum(is_first) - 1
    return ranked[is_first], where
