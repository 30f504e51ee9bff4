"""N+1: after a placement, every single node must still be one that could be emptied.

hail simulates emptying each node for each candidate. Here it is told as in ``emptying``, of all
candidates at once as far as possible.
"""

from functools import cached_property

import numpy as np

from coordinator.allocator.allocation.emptying import lost_nodes
from coordinator.allocator.allocation.evacuation import can_evacuate
from coordinator.allocator.arrays import Bools, Ints, among
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import Resident, State, residents_of
from coordinator.allocator.snapshot import NOWHERE, Instance


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
        scored: Ints,
        demand: Instance,
        resides: int | None = None,
        *,
        emptied: Ints | None = None,
    ) -> None:
        self._resides = resides
        self._model = model
        self._scored = scored
        self._emptied = scored if emptied is None else emptied
        self._demand = demand
        self._peers = model.peers
        self._evacuation_load = model.evacuation_load
        self._used = demand.used_memory
        self.culprit = NOWHERE

    @cached_property
    def is_hopeless(self) -> bool:
        """Whether some node cannot be emptied wherever the instance goes."""
        lost = lost_nodes(self._model, self._emptied)
        if len(lost):
            self.culprit = int(lost.min())
        return bool(len(lost))

    @cached_property
    def is_assured(self) -> bool:
        """Whether counting shows that unmirrored instances find room wherever it goes."""
        resources, evacuation_load, demand = (
            self._model.resources,
            self._evacuation_load,
            self._demand,
        )
        memory, disk = resources.memory, resources.disk
        if not demand.forthcoming:
            memory = memory - self._used
            disk = disk - (demand.disk if demand.is_local else 0)
            evacuation_load = evacuation_load.with_instance(demand, np.arange(self._model.size))
        return bool(
            evacuation_load.judge(self._model.group_of, self._emptied, memory, disk).safe.all()
        )

    def primaries(self, nodes: Ints) -> Bools:
        """Per node: whether, with the instance on it, it could still take its peers' instances."""
        memory = self._model.resources.memory[nodes] - self._used
        ok: Bools = memory > self._arriving[nodes]
        return ok

    def pairs(self, primaries: Ints, secondaries: Ints) -> Bools:
        """Matrix: whether the instance could fail over, and its primary take its peers' ones.

        Args:
            primaries: rising node indices, the rows.
            secondaries: rising node indices, the columns.
        """
        ok = np.repeat(self.primaries(primaries)[:, None], len(secondaries), axis=1)
        if self._demand.forthcoming or self._resides is not None:
            return ok  # what is there already fails over between its old nodes, and could
        peers, memory = self._peers, self._model.resources.memory
        ok &= memory[secondaries] > self._used
        size = self._model.size
        here = among(peers.primary, primaries, size) & among(peers.secondary, secondaries, size)
        rows = np.searchsorted(primaries, peers.primary[here])
        columns = np.searchsorted(secondaries, peers.secondary[here])
        ok[rows, columns] &= memory[peers.secondary[here]] > peers.arriving[here] + self._used
        for row in np.flatnonzero(self._evacuation_load.tied[primaries]).tolist():
            ok[row] &= self._model.may_migrate(int(primaries[row]), secondaries.tolist())
        return ok

    def holds(self, nodes: tuple[int, ...]) -> bool:
        """Whether each node's unmirrored instances find room with the instance on ``nodes``."""
        if self.is_assured:
            return True
        resources, demand = self._model.resources, self._demand
        memory, disk, evacuation_load = (
            resources.memory.copy(),
            resources.disk.copy(),
            self._evacuation_load,
        )
        if not demand.forthcoming:
            memory[nodes[0]] -= self._used
            if demand.is_local:
                disk[list(nodes)] -= demand.disk
            evacuation_load = evacuation_load.with_instance(demand, np.array(nodes[:1]))
        outlook = evacuation_load.judge(self._model.group_of, self._emptied, memory, disk)
        lost = np.flatnonzero(outlook.lost).tolist()
        if lost:
            self.culprit = lost[0]
            return False
        # Where one place leaves a node stuck, the next one mostly does the same: it is tried first.
        doubtful = np.flatnonzero(~outlook.safe).tolist()
        for node in sorted(doubtful, key=lambda node: node != self.culprit):
            if not self._simulate(node, nodes):
                self.culprit = node
                return False
        return True

    def remains(self, nodes: tuple[int, ...]) -> bool:
        """Whether every node could be emptied with the instance on ``nodes``, primary first."""
        if self.is_hopeless:
            return False
        first, others = np.array(nodes[:1]), np.array(nodes[1:])
        if len(others):
            mirrored = bool(self.pairs(first, others)[0, 0])
        else:
            mirrored = bool(self.primaries(first)[0])
        return mirrored and self.holds(nodes)

    def stays(self, state: State, nodes: tuple[int, ...]) -> bool:
        """Whether every node could be emptied with the instance on ``nodes``, one by one.

        Args:
            state: the cluster as it stands, from which an instance that is there already was taken.
            nodes: primary, secondary.
        """
        demand = self._demand
        after = state.copy()
        after.put_primary(demand, nodes[0], self._model.location_score(demand, *nodes))
        after.put_secondary(demand, nodes[1], nodes[0])
        return all(
            can_evacuate(
                after.copy(), node, residents_of(self._model, node, self._resides), self._scored
            )
            for node in self._emptied.tolist()
        )

    def _simulate(self, node: int, placed: tuple[int, ...]) -> bool:
        """Put the instance where it is to go, then empty ``node``."""
        state, demand = State(self._model), self._demand
        location = self._model.location_score(demand, *placed)
        state.put_primary(demand, placed[0], location)
        secondary = placed[1] if len(placed) > 1 else NOWHERE
        if secondary != NOWHERE:
            state.put_secondary(demand, secondary, placed[0])
        residents = residents_of(self._model, node)
        if node == placed[0] and not demand.forthcoming:
            residents = [self._placed(placed, location), *residents]
        return can_evacuate(state, node, residents, self._scored)

    def _placed(self, nodes: tuple[int, ...], location: int) -> Resident:
        if self._resides is None:
            secondary = nodes[1] if len(nodes) > 1 else NOWHERE
            return Resident(self._demand, nodes[0], secondary, location)
        primary = int(self._model.primary_of[self._resides])
        secondary = int(self._model.secondary_of[self._resides])
        location = self._model.location_score(self._demand, primary, secondary)
        return Resident(self._demand, primary, secondary, location)

    @cached_property
    def _arriving(self) -> Ints:
        """Per node: most memory that one peer's failure brings."""
        arriving = np.zeros(self._model.size, dtype=np.int64)
        ours = among(self._peers.primary, self._emptied, self._model.size)
        np.maximum.at(arriving, self._peers.secondary[ours], self._peers.arriving[ours])
        return arriving
