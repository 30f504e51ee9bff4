"""From the picture to arrays: the books of all nodes, as hail opens them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from common.errors import InvalidRequest
from common.names import NodeName
from coordinator.allocator.accounts import Accounts
from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.picture import Demand, InstancePicture, NodePicture, Picture
from coordinator.allocator.policy import check_policy
from coordinator.allocator.tags import TagRules

NOWHERE = -1  # node index of an absent secondary


@dataclass(frozen=True, slots=True)
class Peers:
    """Pairs of nodes that have mirrored instances in common, sorted by ``key``.

    Attributes:
        primary, secondary: indices of the nodes.
        promised: memory the secondary keeps free for the primary's failure.
        arriving: memory that would really be taken there now; instances that are down
            are promised memory but use none.
        key: ``primary * nodes + secondary``.
    """

    primary: Ints
    secondary: Ints
    promised: Ints
    arriving: Ints
    key: Ints


@lru_cache(maxsize=1)
def ledger_of(picture: Picture) -> "Ledger":
    """The books of a picture; those of the last one are kept, as many requests may use it."""
    return Ledger(picture)


class Ledger:
    """The whole cluster's books, and who is where. Nodes are known by their index."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.rules = TagRules.of(picture.cluster_tags)
        self.size = len(picture.nodes)
        self.names = tuple(node.name for node in picture.nodes)
        self.group_of = np.array([self._group(node) for node in picture.nodes], dtype=np.int64)
        self.usable: Bools = np.array([node.is_usable for node in picture.nodes], dtype=np.bool_)
        instances = picture.instances
        self.primary_of = np.array([self._node(i, i.primary) for i in instances], dtype=np.int64)
        self.secondary_of = np.array(
            [NOWHERE if i.secondary is None else self._node(i, i.secondary) for i in instances],
            dtype=np.int64,
        )
        self.real: Bools = np.array([not i.forthcoming for i in instances], dtype=np.bool_)

    def _group(self, node: NodePicture) -> int:
        index = self.picture.group_index.get(node.group)
        if index is None:
            raise InvalidRequest(f"Node {node.name} is in an unknown group {node.group}.")
        return index

    def _node(self, instance: InstancePicture, name: NodeName) -> int:
        index = self.picture.node_index.get(name)
        if index is None:
            raise InvalidRequest(f"Instance {instance.name} is on an unknown node {name}.")
        return index

    def of_instances(self, value: Callable[[InstancePicture], int]) -> Ints:
        """A figure of each instance."""
        return np.array([value(i) for i in self.picture.instances], dtype=np.int64)

    def _per_node(self, nodes: Ints, amounts: Ints) -> Ints:
        """Sum amounts by node; ``NOWHERE`` is left out."""
        there = nodes >= 0
        sums = np.zeros(self.size, dtype=np.int64)
        np.add.at(sums, nodes[there], amounts[there])
        return sums

    def of_live_nodes(self, value: Callable[[NodePicture], int]) -> Ints:
        """What nodes report; 0 for those that are not live."""
        return np.array(
            [value(node) if node.is_live else 0 for node in self.picture.nodes], dtype=np.int64
        )

    def amounts_of_live_nodes(self, value: Callable[[NodePicture], float]) -> Floats:
        """The same for what need not be whole."""
        return np.array(
            [value(node) if node.is_live else 0.0 for node in self.picture.nodes], dtype=np.float64
        )

    @cached_property
    def exclusive(self) -> Bools:
        """Per node: whether it has exclusive storage."""
        return np.array([node.exclusive_storage for node in self.picture.nodes], dtype=np.bool_)

    @cached_property
    def peers(self) -> Peers:
        """Pairs of nodes with mirrored instances, forthcoming ones left out."""
        mirrored = self.real & (self.secondary_of >= 0)
        keys = (self.primary_of * self.size + self.secondary_of)[mirrored]
        key, where = np.unique(keys, return_inverse=True)
        promised, arriving = np.zeros_like(key), np.zeros_like(key)
        np.add.at(promised, where, self.of_instances(lambda i: i.reserved_memory)[mirrored])
        np.add.at(arriving, where, self.of_instances(lambda i: i.used_memory)[mirrored])
        size = max(self.size, 1)
        return Peers(key // size, key % size, promised, arriving, key)

    @cached_property
    def accounts(self) -> Accounts:
        """The books of all nodes at the start."""
        primary, secondary = self.primary_of, self.secondary_of
        real_primary = np.where(self.real, primary, NOWHERE)
        real_secondary = np.where(self.real, secondary, NOWHERE)
        live = self.of_live_nodes
        policies = [group.policy for group in self.picture.groups]

        memory = self.of_instances(lambda i: i.memory)
        used_memory = self.of_instances(lambda i: i.used_memory)
        used_vcpus = self.of_instances(lambda i: i.used_vcpus)
        local_disk = self.of_instances(lambda i: i.disk if i.is_local else 0)
        spindles = self.of_instances(lambda i: i.spindle_use if i.is_local else 0)

        recorded = (
            live(lambda n: int(n.total_memory))
            - live(lambda n: n.reserved_memory)
            - self._per_node(real_primary, used_memory)
        )
        measured = live(lambda n: n.free_memory)
        reserved = np.zeros(self.size, dtype=np.int64)
        np.maximum.at(reserved, self.peers.secondary, self.peers.promised)
        coming_disk = np.where(self.real, 0, local_disk)
        own_cpus = live(lambda n: n.reserved_cpus)
        ones = np.ones(len(primary), dtype=np.int64)
        ratios = np.array([policy.vcpu_ratio for policy in policies])
        spindle_ratios = np.array([policy.spindle_ratio for policy in policies])
        disk = live(lambda n: n.free_disk)
        free_spindles = live(lambda n: n.free_spindles)
        shared_spindles = ~self.exclusive
        loads = self._loads(real_primary, real_secondary)
        return Accounts(
            total_memory=self.amounts_of_live_nodes(lambda n: n.total_memory),
            total_disk=self.amounts_of_live_nodes(lambda n: n.total_disk),
            total_cpus=self.amounts_of_live_nodes(lambda n: n.total_cpus),
            cpu_ratio=ratios[self.group_of],
            spindle_limit=spindle_ratios[self.group_of] * live(lambda n: n.spindles),
            total_spindles=live(lambda n: n.spindles).astype(np.float64),
            cpu_speed=np.array([node.cpu_speed for node in self.picture.nodes], dtype=np.float64),
            exclusive=self.exclusive,
            offline=~self.usable,
            memory=recorded - np.maximum(0, recorded - measured),
            reserved=reserved,
            fails_n1=measured < reserved,
            disk=disk,
            cpus=own_cpus + self._per_node(real_primary, used_vcpus),
            spindles=shared_spindles
            * (self._per_node(real_primary, spindles) + self._per_node(real_secondary, spindles)),
            free_spindles=free_spindles,
            primaries=self._per_node(real_primary, ones),
            secondaries=self._per_node(real_secondary, ones),
            load_cpu=loads[0],
            load_memory=loads[1],
            load_disk=loads[2],
            load_network=loads[3],
            conflicts=self._conflicts(),
            location=self._per_node(real_primary, self._location_scores()),
            next_memory=measured - self._per_node(primary, memory - used_memory),
            next_disk=disk
            - self._per_node(primary, coming_disk)
            - self._per_node(secondary, coming_disk),
            next_cpus=own_cpus + self._per_node(primary, used_vcpus),
            next_spindles=shared_spindles
            * (self._per_node(primary, spindles) + self._per_node(secondary, spindles)),
            next_free_spindles=self._spindles_left(free_spindles),
        )

    def _spindles_left(self, free: Ints) -> Ints:
        """Free spindles once what is forthcoming is there; less than 0 where one may need any."""
        left = free.copy()
        for index in np.flatnonzero(~self.real).tolist():
            spindles = self.picture.instances[index].disk_spindles
            for node in (int(self.primary_of[index]), int(self.secondary_of[index])):
                if node != NOWHERE:
                    left[node] = -1 if spindles is None else left[node] - spindles
        return left

    def _loads(self, primary: Ints, secondary: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """Loads per node, added in the order of the instances; a secondary has disk load only."""
        loads = [instance.load for instance in self.picture.instances]
        table = np.array([(x.cpu, x.memory, x.disk, x.network) for x in loads]).reshape(-1, 4)
        sums = np.zeros((4, self.size))
        placed = primary >= 0
        for kind in (0, 1, 3):
            np.add.at(sums[kind], primary[placed], table[placed, kind])
        both = np.stack((primary, secondary), axis=1).ravel()
        np.add.at(sums[2], both[both >= 0], np.repeat(table[:, 2], 2)[both >= 0])
        return sums[0], sums[1], sums[2], sums[3]

    @cached_property
    def holders(self) -> Mapping[str, Mapping[int, int]]:
        """Per exclusion tag: how many primaries with it each node has, forthcoming included."""
        found: dict[str, Counter[int]] = defaultdict(Counter)
        if self.rules.exclusion:
            for instance, node in zip(
                self.picture.instances, self.primary_of.tolist(), strict=True
            ):
                for tag in self.rules.exclusion_tags(instance.tags):
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
        return tuple(self.rules.location_tags(node.tags) for node in self.picture.nodes)

    @cached_property
    def has_locations(self) -> bool:
        return any(self.location_tags)

    @cached_property
    def crowds(self) -> Mapping[int, Counter[tuple[str, str]]]:
        """Per node: primaries counted by (location tag of the node, exclusion tag)."""
        crowds: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
        if self.has_locations and self.rules.exclusion:
            for index in np.flatnonzero(self.real).tolist():
                node = int(self.primary_of[index])
                tags = self.rules.exclusion_tags(self.picture.instances[index].tags)
                for place in self.location_tags[node]:
                    crowds[node].update((place, tag) for tag in tags)
        return crowds

    def _location_scores(self) -> Ints:
        """Per instance."""
        if not self.has_locations and not self.rules.desired_location:
            return np.zeros(len(self.picture.instances), dtype=np.int64)
        ends = zip(self.primary_of.tolist(), self.secondary_of.tolist(), strict=True)
        return np.array(
            [
                self.location_score(instance, primary, secondary)
                for instance, (primary, secondary) in zip(self.picture.instances, ends, strict=True)
            ],
            dtype=np.int64,
        )

    def location_score(self, demand: Demand, primary: int, secondary: int = NOWHERE) -> int:
        """Location tags both nodes share, plus wishes for a location that are not met."""
        here = self.location_tags[primary]
        unmet = len(self.rules.desired_locations(demand.tags) - here)
        return unmet + (len(here & self.location_tags[secondary]) if secondary >= 0 else 0)

    def unmet_locations(self, demand: Demand, nodes: Ints) -> Ints:
        """Per node as primary: how many wishes for a location are not met."""
        wishes = self.rules.desired_locations(demand.tags)
        if not wishes:
            return np.zeros(len(nodes), dtype=np.int64)
        tags = self.location_tags
        return np.array([len(wishes - tags[node]) for node in nodes.tolist()], dtype=np.int64)

    def shared_locations(self, nodes: Ints) -> Ints:
        """Matrix: how many location tags each two of the nodes share."""
        index = {tag: column for column, tag in enumerate(set().union(*self.location_tags))}
        table = np.zeros((len(nodes), len(index)), dtype=np.int64)
        for row, node in enumerate(nodes.tolist()):
            table[row, [index[tag] for tag in self.location_tags[node]]] = 1
        shared: Ints = table @ table.T
        return shared

    def forbidden(self, demand: Demand, nodes: Ints) -> Ints:
        """Per node: code of the ``Reason`` for which its group's policy forbids the instance."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        kinds = self.group_of[nodes] * 2 + self.exclusive[nodes]
        for kind in np.unique(kinds).tolist():
            policy = self.picture.groups[kind // 2].policy
            codes[kinds == kind] = check_policy(policy, demand, exclusive=bool(kind % 2))
        return codes

    def may_migrate(self, source: int, targets: Iterable[int]) -> Bools:
        """Per target: whether it accepts every migration tag of the source."""
        nodes = self.picture.nodes
        required = self.rules.migration_tags(nodes[source].tags)
        return np.array(
            [
                not required or required <= self.rules.accepted_tags(nodes[target].tags)
                for target in targets
            ],
            dtype=np.bool_,
        )
