"""N+1: after a placement, every single node must still be one that could be emptied.

hail simulates emptying each node for each candidate. Here it is found as in ``emptying``, of all
candidates at once as far as possible.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain

from coordinator.allocator.allocation.emptying import lost_nodes, most_arriving, outlook_of
from coordinator.allocator.allocation.evacuation import can_evacuate
from coordinator.allocator.model.assignment import Assignment, residents_of
from coordinator.allocator.model.resources import UNKNOWN, asked
from coordinator.allocator.model.state import State
from coordinator.allocator.snapshot import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.snapshot import Instance


class Redundancy:
    """The N+1 rule for one instance that is to be placed.

    Args:
        model: the cluster.
        scored: nodes whose score decides where instances go while a node is emptied.
        demand: the instance.
        resides: its number, if it is there already.
        emptied: nodes that have to stay such that they could be emptied; None for the scored.

    Attributes:
        culprit: a node that could not be emptied, once one was found; ``NOWHERE`` before.
    """

    def __init__(
        self,
        model: ClusterModel,
        scored: Sequence[int],
        demand: Instance,
        resides: int | None = None,
        *,
        emptied: Sequence[int] | None = None,
    ) -> None:
        self._resides = resides
        self._model = model
        self._scored = scored
        self._emptied = scored if emptied is None else emptied
        self._demand = demand
        self._evacuation_load = model.evacuation_load
        self._used = demand.used_memory
        self._memory: list[int] = [row.memory for row in model.rows]
        self._disk: list[int] = [row.disk for row in model.rows]
        self.culprit = NOWHERE

    @cached_property
    def is_hopeless(self) -> bool:
        """Whether some node cannot be emptied wherever the instance goes."""
        lost = lost_nodes(self._model, self._emptied, outlook_of(self._model, self._emptied))
        if lost:
            self.culprit = min(lost)
        return bool(lost)

    @cached_property
    def is_assured(self) -> bool:
        """Whether counting shows that unmirrored instances find room wherever it goes."""
        everyone = range(self._model.size)
        return not any(self._outlook(everyone, everyone))

    def _outlook(
        self, primaries: Sequence[int], nodes: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Nodes that are lost, or in doubt, with the instance on each of these at once."""
        memory, disk, load = self._memory, self._disk, self._evacuation_load
        if not self._demand.forthcoming:
            memory, disk = [*memory], [*disk]
            for node in primaries:
                memory[node] -= self._used
            for node in nodes if self._demand.is_local else ():
                disk[node] -= self._demand.disk
            load = load.with_instance(asked(self._demand), primaries)
        outlook = load.judge(self._model.groups, self._emptied, memory, disk)
        return outlook.lost, outlook.doubtful

    def may_run_on(self, node: int) -> bool:
        """Whether, with the instance on it, a node could still take its peers' instances."""
        is_able = self._memory[node] - self._used > self._arriving[node]
        return is_able and node not in self._without_spindles

    def may_have_copy(self, node: int) -> bool:
        """Whether the instance could fail over to a node that has no peer among its primaries."""
        return not self._fails_over or self._memory[node] > self._used

    @property
    def _fails_over(self) -> bool:
        """Whether it would; what is there already does between its old nodes, and could."""
        return not self._demand.forthcoming and self._resides is None

    @cached_property
    def forbidden_pairs(self) -> set[tuple[int, int]]:
        """Primary and secondary between which it could not fail over, though each might do."""
        if not self._fails_over:
            return set()
        model = self._model
        arriving = model.peers.arriving.items()
        forbidden = {pair for pair, mib in arriving if self._memory[pair[1]] <= mib + self._used}
        everyone = range(model.size)
        for node in everyone:
            if self._evacuation_load.tied[node]:
                allowed = zip(everyone, model.may_migrate(node, everyone), strict=True)
                forbidden.update((node, other) for other, may_migrate in allowed if not may_migrate)
        return forbidden

    def holds(self, nodes: tuple[int, ...]) -> bool:
        """Whether each node's unmirrored instances find room with the instance on ``nodes``."""
        if self.is_assured:
            return True
        lost, doubtful = self._outlook(nodes[:1], nodes)
        if lost:
            self.culprit = lost[0]
            return False
        # Where one place leaves a node stuck, the next one mostly does the same: it is tried first.
        for node in sorted(doubtful, key=lambda node: node != self.culprit):
            if not self._simulate(node, nodes):
                self.culprit = node
                return False
        return True

    def remains(self, nodes: tuple[int, ...]) -> bool:
        """Whether every node could be emptied with the instance on ``nodes``, primary first."""
        if self.is_hopeless:
            return False
        is_pair = len(nodes) > 1
        return (
            self.may_run_on(nodes[0])
            and not (is_pair and not self.may_have_copy(nodes[1]))
            and not (is_pair and nodes in self.forbidden_pairs)
            and self.holds(nodes)
        )

    def stays(self, state: State, nodes: tuple[int, ...]) -> bool:
        """Whether every node could be emptied with the instance on ``nodes``, one by one.

        ``state`` is the cluster as it stands, from which an instance that is there already was
        taken.
        """
        after = state.copy()
        after.put(self._demand, nodes)
        return all(
            can_evacuate(
                after.copy(), node, residents_of(self._model, node, self._resides), self._scored
            )
            for node in self._emptied
        )

    def _simulate(self, node: int, placed: tuple[int, ...]) -> bool:
        """Put the instance where it is to go, then empty ``node``; see ``can_evacuate``."""
        state = State(self._model)
        state.put(self._demand, placed)
        residents = residents_of(self._model, node)
        if node == placed[0] and not self._demand.forthcoming:
            residents = [self._resident(placed), *residents]
        return can_evacuate(state, node, residents, self._scored)

    def _resident(self, nodes: tuple[int, ...]) -> Assignment:
        model, demand, index = self._model, self._demand, self._resides
        primary, secondary, *_ = *nodes, NOWHERE
        if index is not None:
            primary, secondary = model.primary_of[index], model.secondary_of[index]
        location = model.location_score(demand, primary, secondary)
        return Assignment(demand, primary, secondary, location)

    @cached_property
    def _without_spindles(self) -> set[int]:
        """Nodes whose mirrored instances could not fail over if it took spindles there.

        What has no disks of its own takes some, too, without being refused for lack of them.
        """
        model, demand, wanted = self._model, self._demand, asked(self._demand).disk_spindles
        if demand.forthcoming or demand.is_local or not any(model.exclusive):
            return set()
        emptied = frozenset(self._emptied)
        ends = chain.from_iterable(pair for pair in model.peers.arriving if pair[0] in emptied)
        return {
            node
            for node in ends
            if model.exclusive[node]
            and (wanted == UNKNOWN or model.rows[node].free_spindles < wanted)
        }

    @cached_property
    def _arriving(self) -> list[int]:
        return most_arriving(self._model, self._emptied)
