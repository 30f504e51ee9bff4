"""Whether what is on a node would find room elsewhere, by counting alone.

Instances without a mirror go wherever the score sends them, one after the other. Yet one can
be stuck only when all targets are too full for it, and the node's instances together may not
have the size for that: then all fit, whatever the order and the choices. Or the largest fits
nowhere even now: then the node cannot be emptied. Between the two, counting does not tell.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from common.model.template import TRAITS
from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.policy import check_policy
from coordinator.allocator.snapshot import Instance

if TYPE_CHECKING:
    from coordinator.allocator.books.ledger import Ledger

_TARGETS = 32  # nodes of a group that are looked at for room; more are rarely needed
_NONE = -1


@dataclass(frozen=True, slots=True)
class Freight:
    """What would have to leave each node.

    Attributes:
        memory: of all its running primaries.
        largest: memory of the largest one that is not mirrored; ``_NONE`` if there is none.
        disk, largest_disk: the same of those on its own disks.
        forbidden: whether one of those breaks its group's policy, so cannot be made anew.
        tied: whether migration tags or exclusive storage restrict where its instances may go.
    """

    memory: Ints
    largest: Ints
    disk: Ints
    largest_disk: Ints
    forbidden: Bools
    tied: Bools

    @classmethod
    def of(cls, ledger: "Ledger") -> "Freight":
        """What is on the nodes at the start."""
        size, on, demands = ledger.size, ledger.primary_of, ledger.demands
        picky = np.zeros(len(ledger.snapshot.groups), dtype=np.bool_)
        picky[ledger.group_of[ledger.exclusive]] = True
        freight = cls(
            memory=np.zeros(size, dtype=np.int64),
            largest=np.full(size, _NONE, dtype=np.int64),
            disk=np.zeros(size, dtype=np.int64),
            largest_disk=np.full(size, _NONE, dtype=np.int64),
            forbidden=np.zeros(size, dtype=np.bool_),
            tied=ledger.tied | picky[ledger.group_of],
        )
        np.add.at(freight.memory, on[ledger.real], demands.memory[ledger.real])
        others = np.flatnonzero(ledger.real & ~demands.mirrored)
        np.maximum.at(freight.largest, on[others], demands.memory[others])
        local = others[demands.local[others]]
        np.add.at(freight.disk, on[local], demands.disk[local])
        np.maximum.at(freight.largest_disk, on[local], demands.disk[local])
        freight._find_forbidden(ledger, others, picky)
        return freight

    def _find_forbidden(self, ledger: "Ledger", others: Ints, picky: Bools) -> None:
        known: dict[object, bool] = {}
        columns = ledger.instances
        for one in others.tolist():
            template, node = columns.template[one], int(ledger.primary_of[one])
            if TRAITS[template].leaves_as_it_is:
                continue
            group = int(ledger.group_of[node])
            size = (columns.memory[one], columns.vcpus[one], columns.spindle_use[one])
            spindles, disks = columns.disk_spindles[one], tuple(columns.disks[one])
            key = (group, template, size, spindles, disks)
            if key not in known:
                policy, demand = (
                    ledger.snapshot.groups[group].policy,
                    ledger.snapshot.instances[one],
                )
                kinds = (False, True) if picky[group] else (False,)
                known[key] = all(check_policy(policy, demand, exclusive=kind) for kind in kinds)
            if known[key]:
                self.forbidden[node] = True

    def with_instance(self, demand: Instance, nodes: Ints) -> "Freight":
        """The same with one more instance on each of ``nodes``."""
        loaded = replace(
            self,
            memory=self.memory.copy(),
            largest=self.largest.copy(),
            disk=self.disk.copy(),
            largest_disk=self.largest_disk.copy(),
        )
        loaded.memory[nodes] += demand.used_memory
        if not demand.is_mirrored:
            _load(loaded, nodes, demand)
        return loaded

    def judge(self, ledger: "Ledger", scored: Ints, memory: Ints, disk: Ints) -> "Outlook":
        """Judge the ``scored`` nodes by what is free on each node; the others are safe."""
        safe = np.ones(ledger.size, dtype=np.bool_)
        lost = np.zeros(ledger.size, dtype=np.bool_)
        laden = scored[self.largest[scored] > _NONE]
        for group in set(ledger.group_of[laden].tolist()):
            nodes = laden[ledger.group_of[laden] == group]
            targets = np.flatnonzero(ledger.group_of == group)
            safe[nodes] = _surely_fits(nodes, _roomiest(targets, memory), memory, disk, self)
            lost[nodes] = (
                self.forbidden[nodes]
                | (_best_elsewhere(nodes, targets, memory) <= self.largest[nodes])
                | (_best_elsewhere(nodes, targets, disk) <= self.largest_disk[nodes])
            )
        return Outlook(safe=safe & ~lost, lost=lost)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Per node: whether its instances find room for sure, or for sure do not."""

    safe: Bools
    lost: Bools


def _load(freight: Freight, nodes: int | Ints, demand: Instance) -> None:
    """Add an instance that is not mirrored to what has to leave ``nodes``, but for its memory."""
    freight.largest[nodes] = np.maximum(freight.largest[nodes], demand.used_memory)
    if demand.is_local:
        freight.disk[nodes] += demand.disk
        freight.largest_disk[nodes] = np.maximum(freight.largest_disk[nodes], demand.disk)


def _roomiest(targets: Ints, memory: Ints) -> Ints:
    """The targets with most memory; looking at these only errs on the careful side."""
    return targets[np.argsort(-memory[targets], kind="stable")[:_TARGETS]]


def _surely_fits(nodes: Ints, targets: Ints, memory: Ints, disk: Ints, freight: Freight) -> Bools:
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
