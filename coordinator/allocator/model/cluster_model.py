"""The model of a whole cluster, as hail has it at the start, and who is where."""

from __future__ import annotations

from collections import Counter, defaultdict
from copy import copy
from functools import cached_property, lru_cache

from coordinator.allocator.model.evacuation_load import EvacuationLoad
from coordinator.allocator.model.figures import figures_of_row
from coordinator.allocator.model.initial import initial_rows, missing_memory
from coordinator.allocator.model.peers import Peers
from coordinator.allocator.model.resources import arrays_of, demand_columns, rows_of
from coordinator.allocator.policy import check_policy
from coordinator.allocator.snapshot import NOWHERE
from coordinator.allocator.tags import TagRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from common.names import NodeName
    from coordinator.allocator.model.resources import Demands, NodeResources
    from coordinator.allocator.policy import InstancePolicy
    from coordinator.allocator.snapshot import Instance, Snapshot


@lru_cache(maxsize=1)
def model_of(snapshot: Snapshot) -> ClusterModel:
    """The model of a snapshot; those of the last one are kept, as many requests may use it."""
    return ClusterModel(snapshot)


class ClusterModel:
    """The whole cluster's resources, and who is where. Nodes are known by their index.

    All is held in Python's numbers and lists; ``resources`` makes arrays for those who reckon with
    many nodes at once.

    Attributes:
        demands: what the instances ask, as lists.
        primary_of, secondary_of: where they are.
        real: whether they are there already.
        nodes, least_disk: the columns of nodes, and the share of their disk that has to stay free.
        tags: of each instance.
        names, index: of nodes, and which node has a name.
        arrivals: instances that have moved since, by index; the last one last.
        missing: memory of each node that nothing accounts for, in MiB.
    """

    def __init__(self, snapshot: Snapshot, *, least_disk: float = 0.0) -> None:
        """Build the model.

        ``least_disk`` is the share of a node's disk that has to stay free.
        """
        nodes, instances = snapshot.columns
        self.snapshot = snapshot
        self.rules = TagRules.of(snapshot.tags + snapshot.more_tags)
        self.nodes, self.least_disk = nodes, least_disk
        self.size = len(nodes.names)
        self.names: Sequence[NodeName] = nodes.names  # type: ignore[assignment] # as read
        self.index = {name: node for node, name in enumerate(self.names)}
        self.group_of = nodes.group
        self.usable = nodes.usable
        self.exclusive = nodes.exclusive
        self.primary_of = instances.primary
        self.secondary_of = instances.secondary
        self.demands: Demands = demand_columns(instances)
        self.tags = instances.tags
        self.arrivals: tuple[int, ...] = ()
        self.missing = missing_memory(nodes, self.demands, self.primary_of)

    @property
    def real(self) -> Sequence[int]:
        """Per instance: 1 if it is there already."""
        count: Sequence[int] = self.demands.count
        return count

    @cached_property
    def groups(self) -> Mapping[int, list[int]]:
        """The nodes of each group that has some, rising."""
        found: dict[int, list[int]] = {group: [] for group in sorted({*self.group_of})}
        for node, group in enumerate(self.group_of):
            found[group].append(node)
        return found

    @cached_property
    def residents(self) -> list[list[int]]:
        """The instances that have their primary on each node, rising, forthcoming ones left out."""
        found: list[list[int]] = [[] for _ in range(self.size)]
        for index, (node, is_real) in enumerate(zip(self.primary_of, self.real, strict=True)):
            if is_real:
                found[node].append(index)
        return found

    @cached_property
    def evacuation_load(self) -> EvacuationLoad:
        """What would have to leave each node."""
        is_picky = {self.group_of[node] for node in range(self.size) if self.exclusive[node]}
        empty = EvacuationLoad(
            forbidden=self._nodes_with_forbidden(is_picky),
            tied=self.tied,
            picky=[group in is_picky for group in self.group_of],
        )
        columns = self.primary_of, *EvacuationLoad.counted(self.demands)
        return empty.followed_by(zip(*columns, strict=True))

    def _nodes_with_forbidden(self, is_picky: set[int]) -> list[bool]:
        """Per node: whether one of its instances has to be made anew, and the policy forbids it."""
        forbidden = [False] * self.size
        known: dict[object, bool] = {}
        columns = self.snapshot.columns[1]
        for one, template in enumerate(columns.template):
            if not (self.real[one] and self.demands.anew[one]):
                continue
            node = self.primary_of[one]
            group = self.group_of[node]
            size = (columns.memory[one], columns.vcpus[one], columns.spindle_use[one])
            spindles, disks = columns.disk_spindles[one], tuple(columns.disks[one])
            key = (group, template, size, spindles, disks)
            if key not in known:
                policy = self.snapshot.groups[group].policy
                demand = self.snapshot.instances[one]
                kinds = (False, True) if group in is_picky else (False,)
                known[key] = all(check_policy(policy, demand, exclusive=kind) for kind in kinds)
            forbidden[node] |= known[key]
        return forbidden

    @cached_property
    def peers(self) -> Peers:
        """Pairs of nodes with mirrored instances, forthcoming ones left out."""
        columns = self.primary_of, self.secondary_of, *Peers.counted(self.demands)
        return Peers(self.size).followed_by(zip(*columns, strict=True))

    @cached_property
    def rows(self) -> list[NodeResources]:
        """The resources of each node at the start, as Python's numbers."""
        if "resources" in vars(self):
            return rows_of(self.resources)
        return initial_rows(self)

    @cached_property
    def resources(self) -> NodeResources:
        """The resources of all nodes at the start, as arrays."""
        return arrays_of(self.rows)

    def changed(self, **attributes: object) -> ClusterModel:
        """The model with other instances, or these elsewhere; what is not given is derived anew."""
        after = copy(self)
        for derived in _DERIVED:
            vars(after).pop(derived, None)
        vars(after).update(attributes)
        return after

    def failing(self, nodes: Iterable[int]) -> list[int]:
        """Those of some nodes that are online and fail N+1 at the start."""
        return [node for node in nodes if self.usable[node] and self.rows[node].fails_n1]

    def figures(self, node: int) -> tuple[float, ...]:
        """What one node contributes to each term of the score at the start."""
        if node not in self._figures:
            self._figures[node] = figures_of_row(self.rows[node])
        return self._figures[node]

    @cached_property
    def _figures(self) -> dict[int, tuple[float, ...]]:
        return {}

    @cached_property
    def holders(self) -> Mapping[str, Mapping[int, int]]:
        """Per exclusion tag: how many primaries with it each node has, forthcoming included."""
        found: dict[str, Counter[int]] = defaultdict(Counter)
        if self.rules.exclusion:
            for tags, node in zip(self.tags, self.primary_of, strict=True):
                for tag in self.rules.exclusion_tags(tags):
                    found[tag][node] += 1
        return found

    @property
    def conflicts(self) -> list[int]:
        """Per node: exclusion tags held more often than once, counted above one."""
        conflicts = [0] * self.size
        for counts in self.holders.values():
            for node, count in counts.items():
                conflicts[node] += count - 1
        return conflicts

    @cached_property
    def location_tags(self) -> tuple[frozenset[str], ...]:
        """Per node."""
        return tuple(self.rules.location_tags(tags) for tags in self.nodes.tags)

    @cached_property
    def has_locations(self) -> bool:
        return bool(self.rules.location) and any(self.location_tags)

    @cached_property
    def crowds(self) -> Mapping[int, Counter[tuple[str, str]]]:
        """Per node: primaries counted by (location tag of the node, exclusion tag)."""
        crowds: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
        if self.has_locations and self.rules.exclusion:
            for index, count in enumerate(self.real):
                node = self.primary_of[index]
                tags = self.rules.exclusion_tags(self.tags[index]) if count else ()
                for place in self.location_tags[node]:
                    crowds[node].update((place, tag) for tag in tags)
        return crowds

    @cached_property
    def location_scores(self) -> list[int]:
        """Per instance: its part in the location score of its primary node, at the start."""
        if not self.has_locations and not self.rules.desired_location:
            return [0] * len(self.primary_of)
        ends = zip(self.tags, self.primary_of, self.secondary_of, strict=True)
        return [self._location_score(tags, primary, secondary) for tags, primary, secondary in ends]

    def location_score(self, demand: Instance, primary: int, secondary: int = NOWHERE) -> int:
        """Location tags both nodes share, plus desired locations it does not have."""
        return self._location_score(demand.tags, primary, secondary)

    def _location_score(self, tags: Iterable[str], primary: int, secondary: int) -> int:
        if not self.has_locations and not self.rules.desired_location:
            return 0
        here = self.location_tags[primary]
        unmet = len(self.rules.desired_locations(tags) - here)
        return unmet + (self.shared_locations(primary, secondary) if secondary >= 0 else 0)

    def unmet_locations(self, demand: Instance, nodes: Sequence[int]) -> list[int]:
        """Per node as primary: how many desired locations it does not have."""
        desired = self.rules.desired_locations(demand.tags)
        return [len(desired - self.location_tags[node]) if desired else 0 for node in nodes]

    def shared_locations(self, node: int, other: int) -> int:
        """How many location tags two nodes share."""
        return len(self.location_tags[node] & self.location_tags[other])

    def forbidden(self, demand: Instance, nodes: Iterable[int]) -> list[int]:
        """Per node: code of the ``Reason`` for which its group's policy forbids the instance."""
        kinds = [self.kinds[node] for node in nodes]
        codes = {
            (at, exclusive): check_policy(self._policies[at], demand, exclusive=exclusive)
            for at, exclusive in set(kinds)
        }
        return [codes[kind] for kind in kinds]

    @cached_property
    def kinds(self) -> list[tuple[int, bool]]:
        """Per node: the first of the groups of the same policy, and whether storage is exclusive.

        Policies treat nodes of a kind alike.
        """
        same = [self._policies.index(policy) for policy in self._policies]
        pairs = zip(self.group_of, self.exclusive, strict=True)
        return [(same[group], exclusive) for group, exclusive in pairs]

    @cached_property
    def _policies(self) -> list[InstancePolicy]:
        return [group.policy for group in self.snapshot.groups]

    def may_migrate(self, source: int, targets: Iterable[int]) -> list[bool]:
        """Per target: whether it accepts every migration tag of the source."""
        tags = self.nodes.tags
        required = self.rules.migration_tags(tags[source])
        return [
            not required or required <= self.rules.accepted_tags(tags[target]) for target in targets
        ]

    @cached_property
    def tied(self) -> list[bool]:
        """Per node: whether migration tags restrict where its instances may go."""
        if not self.rules.migration:
            return [False] * self.size
        return [bool(self.rules.migration_tags(tags)) for tags in self.nodes.tags]


_DERIVED = (
    "peers", "evacuation_load", "rows", "resources", "_figures", "holders", "crowds",
    "location_scores", "residents",
)  # fmt: skip
