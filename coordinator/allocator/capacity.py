"""N+1: after a placement, every single node must still be one that could be emptied.

hail simulates emptying each node for each candidate. Here counting settles almost all of it:

- Mirrored instances have one place to go, so whether a node's all fit is arithmetic.
- Others go wherever the score sends them. But an instance can be stuck only when all targets
  are too full for it, and the node's instances together may not have the size for that: then
  all fit, whatever the order and the choices (``_Outlook.safe``). Or its largest instance
  fits nowhere even now: then it cannot be emptied (``_Outlook.lost``).

Only nodes between the two are simulated.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from common.model.disk import DiskTemplate
from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.evacuation import can_evacuate, is_mobile
from coordinator.allocator.ledger import NOWHERE, Ledger
from coordinator.allocator.picture import Demand
from coordinator.allocator.policy import check_policy
from coordinator.allocator.state import Resident, State, residents_of

_TARGETS = 32  # nodes of a group that are looked at for room; more are rarely needed
_NONE = -1


@dataclass(frozen=True, slots=True)
class _Freight:
    """What would have to leave each node.

    Attributes:
        memory: of all its running primaries.
        largest: memory of the largest one that is not mirrored; ``_NONE`` if there is none.
        disk, largest_disk: the same of those on its own disks.
        forbidden: whether one of those breaks its group's policy, so cannot be made anew.
        tied: whether migration tags restrict where its instances may go.
    """

    memory: Ints
    largest: Ints
    disk: Ints
    largest_disk: Ints
    forbidden: Bools
    tied: Bools


@dataclass(frozen=True, slots=True)
class _Outlook:
    safe: Bools
    lost: Bools


class Redundancy:
    """The N+1 rule for one instance that is to be placed.

    Attributes:
        culprit: a node that could not be emptied, once one was found; ``NOWHERE`` before.
    """

    def __init__(self, ledger: Ledger, scored: Ints, demand: Demand) -> None:
        self._ledger = ledger
        self._scored = scored
        self._demand = demand
        self._peers = ledger.peers
        self._freight = _freight_of(ledger)
        self._used = demand.used_memory
        self.culprit = NOWHERE

    @cached_property
    def is_hopeless(self) -> bool:
        """Whether some node cannot be emptied wherever the instance goes."""
        accounts, peers = self._ledger.accounts, self._peers
        stuck = (
            (accounts.memory[peers.secondary] <= peers.arriving)
            | (accounts.disk[peers.secondary] <= 0)
            | (~accounts.offline[peers.primary] & (accounts.disk[peers.primary] <= 0))
            | self._forbidden_failovers
        ) & np.isin(peers.primary, self._scored)
        outlook = self._outlook(accounts.memory, accounts.disk, self._freight)
        lost = np.concatenate((peers.primary[stuck], np.flatnonzero(outlook.lost)))
        if len(lost):
            self.culprit = int(lost.min())
        return bool(len(lost))

    @cached_property
    def is_assured(self) -> bool:
        """Whether counting shows that unmirrored instances find room wherever it goes."""
        accounts, freight, demand = self._ledger.accounts, self._freight, self._demand
        if demand.forthcoming:
            return bool(self._outlook(accounts.memory, accounts.disk, freight).safe.all())
        disk = demand.disk if demand.is_local else 0
        everywhere = np.arange(self._ledger.size)
        worst = self._outlook(
            accounts.memory - self._used, accounts.disk - disk, self._loaded(freight, everywhere)
        )
        return bool(worst.safe.all())

    def primaries(self, nodes: Ints) -> Bools:
        """Per node: whether, with the instance on it, it could still take its peers' instances."""
        memory = self._ledger.accounts.memory[nodes] - self._used
        ok: Bools = memory > self._arriving[nodes]
        return ok

    def pairs(self, primaries: Ints, secondaries: Ints) -> Bools:
        """Matrix: whether the instance could fail over, and its primary take its peers' ones.

        Args:
            primaries: rising node indices, the rows.
            secondaries: rising node indices, the columns.
        """
        ok = np.repeat(self.primaries(primaries)[:, None], len(secondaries), axis=1)
        if self._demand.forthcoming:
            return ok
        peers, memory = self._peers, self._ledger.accounts.memory
        ok &= memory[secondaries] > self._used
        here = np.isin(peers.primary, primaries) & np.isin(peers.secondary, secondaries)
        rows = np.searchsorted(primaries, peers.primary[here])
        columns = np.searchsorted(secondaries, peers.secondary[here])
        ok[rows, columns] &= memory[peers.secondary[here]] > peers.arriving[here] + self._used
        for row in np.flatnonzero(self._freight.tied[primaries]).tolist():
            ok[row] &= self._ledger.may_migrate(int(primaries[row]), secondaries.tolist())
        return ok

    def holds(self, nodes: tuple[int, ...]) -> bool:
        """Whether each node's unmirrored instances find room with the instance on ``nodes``."""
        if self.is_assured:
            return True
        accounts, demand = self._ledger.accounts, self._demand
        memory, disk, freight = accounts.memory.copy(), accounts.disk.copy(), self._freight
        if not demand.forthcoming:
            memory[nodes[0]] -= self._used
            if demand.is_local:
                disk[list(nodes)] -= demand.disk
            freight = self._loaded(freight, np.array(nodes[:1]))
        outlook = self._outlook(memory, disk, freight)
        for node in np.flatnonzero(~outlook.safe).tolist():
            if outlook.lost[node] or not self._simulate(node, nodes):
                self.culprit = node
                return False
        return True

    def _simulate(self, node: int, placed: tuple[int, ...]) -> bool:
        """Put the instance where it is to go, then empty ``node``."""
        state, demand = State(self._ledger), self._demand
        location = self._ledger.location_score(demand, *placed)
        state.put_primary(demand, placed[0], location)
        secondary = placed[1] if len(placed) > 1 else NOWHERE
        if secondary != NOWHERE:
            state.put_secondary(demand, secondary, placed[0])
        residents = residents_of(self._ledger, node)
        if node == placed[0] and not demand.forthcoming:
            residents = [Resident(demand, secondary, location), *residents]
        return can_evacuate(state, node, residents, self._scored)

    @cached_property
    def _arriving(self) -> Ints:
        """Per node: most memory that one peer's failure brings."""
        arriving = np.zeros(self._ledger.size, dtype=np.int64)
        ours = np.isin(self._peers.primary, self._scored)
        np.maximum.at(arriving, self._peers.secondary[ours], self._peers.arriving[ours])
        return arriving

    @cached_property
    def _forbidden_failovers(self) -> Bools:
        """Per pair of peers: whether migration tags forbid the way to the secondary."""
        forbidden = np.zeros(len(self._peers.key), dtype=np.bool_)
        for pair in np.flatnonzero(self._freight.tied[self._peers.primary]).tolist():
            primary, secondary = self._peers.primary[pair], self._peers.secondary[pair]
            forbidden[pair] = not self._ledger.may_migrate(int(primary), [int(secondary)])[0]
        return forbidden

    def _loaded(self, freight: _Freight, nodes: Ints) -> _Freight:
        """The freight with the new instance added on each of ``nodes``."""
        loaded = replace(
            freight,
            memory=freight.memory.copy(),
            largest=freight.largest.copy(),
            disk=freight.disk.copy(),
            largest_disk=freight.largest_disk.copy(),
        )
        loaded.memory[nodes] += self._used
        if self._demand.template is not DiskTemplate.DRBD:
            _load(loaded, nodes, self._demand)
        return loaded

    def _outlook(self, memory: Ints, disk: Ints, freight: _Freight) -> _Outlook:
        """Judge all scored nodes by counting; the others are safe."""
        safe = np.ones(self._ledger.size, dtype=np.bool_)
        lost = np.zeros(self._ledger.size, dtype=np.bool_)
        laden = self._scored[freight.largest[self._scored] > _NONE]
        for group in np.unique(self._ledger.group_of[laden]).tolist():
            nodes = laden[self._ledger.group_of[laden] == group]
            targets = np.flatnonzero(self._ledger.group_of == group)
            safe[nodes] = _surely_fits(nodes, _roomiest(targets, memory), memory, disk, freight)
            lost[nodes] = (
                freight.forbidden[nodes]
                | (_best_elsewhere(nodes, targets, memory) <= freight.largest[nodes])
                | (_best_elsewhere(nodes, targets, disk) <= freight.largest_disk[nodes])
            )
        return _Outlook(safe=safe & ~lost, lost=lost)


@lru_cache(maxsize=1)
def _freight_of(ledger: Ledger) -> _Freight:
    size, instances, on = ledger.size, ledger.picture.instances, ledger.primary_of
    policies = [ledger.picture.groups[group].policy for group in ledger.group_of.tolist()]
    freight = _Freight(
        memory=np.zeros(size, dtype=np.int64),
        largest=np.full(size, _NONE, dtype=np.int64),
        disk=np.zeros(size, dtype=np.int64),
        largest_disk=np.full(size, _NONE, dtype=np.int64),
        forbidden=np.zeros(size, dtype=np.bool_),
        tied=np.array(
            [bool(ledger.rules.migration_tags(n.tags)) for n in ledger.picture.nodes],
            dtype=np.bool_,
        ),
    )
    used = ledger.of_instances(lambda i: i.used_memory)
    np.add.at(freight.memory, on[ledger.real], used[ledger.real])
    for index in np.flatnonzero(ledger.real).tolist():
        demand, node = instances[index], int(on[index])
        if demand.template is not DiskTemplate.DRBD:
            _load(freight, node, demand)
            if not is_mobile(demand) and check_policy(policies[node], demand):
                freight.forbidden[node] = True
    return freight


def _load(freight: _Freight, nodes: int | Ints, demand: Demand) -> None:
    """Add an instance that is not mirrored to what has to leave ``nodes``, but for its memory."""
    freight.largest[nodes] = np.maximum(freight.largest[nodes], demand.used_memory)
    if demand.is_local:
        freight.disk[nodes] += demand.disk
        freight.largest_disk[nodes] = np.maximum(freight.largest_disk[nodes], demand.disk)


def _roomiest(targets: Ints, memory: Ints) -> Ints:
    """The targets with most memory; looking at these only errs on the careful side."""
    return targets[np.argsort(-memory[targets], kind="stable")[:_TARGETS]]


def _surely_fits(nodes: Ints, targets: Ints, memory: Ints, disk: Ints, freight: _Freight) -> Bools:
    """Per node: whether its freight is too small to block all targets for its largest piece.

    Blocking a target for memory takes at least its room less the largest piece, as a part of
    all the memory that moves; likewise for disk. The parts spent on all targets add up to at
    most 1 for memory and 1 for disk.
    """
    parts = _parts(memory[targets] - freight.largest[nodes, None], freight.memory[nodes])
    budget = np.ones(len(nodes))
    on_disk = freight.largest_disk[nodes] > _NONE
    if on_disk.any():
        disk_parts = _parts(disk[targets] - freight.largest_disk[nodes, None], freight.disk[nodes])
        parts = np.where(on_disk[:, None], np.minimum(parts, disk_parts), parts)
        budget += on_disk
    parts[nodes[:, None] == targets] = 0
    fits: Bools = parts.sum(axis=1) > budget * (1 + 1e-9)
    return fits & ~freight.tied[nodes]


def _parts(room: Ints, total: Ints) -> Floats:
    """``room / total`` where there is room, else 0; of nothing, any room is infinitely much."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(room > 0, room / total[:, None], 0.0)


def _best_elsewhere(nodes: Ints, targets: Ints, amounts: Ints) -> Ints:
    """Per node: the largest amount on a target other than itself; very small without one."""
    ranked = targets[np.argsort(-amounts[targets], kind="stable")]
    nothing = np.iinfo(np.int64).min
    first = amounts[ranked[0]]
    second = amounts[ranked[1]] if len(ranked) > 1 else nothing
    best: Ints = np.where(nodes == ranked[0], second, first)
    return best
