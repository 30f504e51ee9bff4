"""Whether what is on a node would find room elsewhere, by counting alone.

Instances without a mirror go wherever the score sends them, one after the other. Yet one can
be stuck only when all targets are too full for it, and the node's instances together may not
have the size for that: then all fit, whatever the order and the choices. Or the largest fits
nowhere even now: then the node cannot be emptied. Between the two, counting does not tell.
"""

from dataclasses import dataclass, replace

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints
from coordinator.allocator.model.resources import Demands
from coordinator.allocator.snapshot import Instance

_TARGETS = 32  # nodes of a group that are looked at for room; more are rarely needed
_NONE = -1


@dataclass(frozen=True, slots=True)
class EvacuationLoad:
    """What would have to leave each node; arrays of shape (nodes,), in MiB.

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
    def of(
        cls, demands: Demands, primary: Ints, *, forbidden: Bools, tied: Bools
    ) -> "EvacuationLoad":
        """What instances make of it.

        Args:
            demands: of the instances that are there, not forthcoming.
            primary: the node of each, of shape (instances,).
            forbidden: as of the class.
            tied: likewise.
        """
        size = len(tied)
        found = cls(
            memory=np.zeros(size, dtype=np.int64),
            largest=np.full(size, _NONE, dtype=np.int64),
            disk=np.zeros(size, dtype=np.int64),
            largest_disk=np.full(size, _NONE, dtype=np.int64),
            forbidden=forbidden,
            tied=tied,
        )
        np.add.at(found.memory, primary, demands.memory)
        others = np.flatnonzero(~demands.mirrored)
        np.maximum.at(found.largest, primary[others], demands.memory[others])
        local = others[demands.local[others]]
        np.add.at(found.disk, primary[local], demands.disk[local])
        np.maximum.at(found.largest_disk, primary[local], demands.disk[local])
        return found

    def with_instance(self, demand: Instance, nodes: Ints) -> "EvacuationLoad":
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

    def judge(self, group_of: Ints, scored: Ints, memory: Ints, disk: Ints) -> "Outlook":
        """Judge the ``scored`` nodes by what is free on each node; the others are safe.

        Args:
            group_of: the group of each node.
            scored: rising node indices.
            memory: what is free on each node.
            disk: likewise.
        """
        safe = np.ones(len(group_of), dtype=np.bool_)
        lost = np.zeros(len(group_of), dtype=np.bool_)
        laden = scored[self.largest[scored] > _NONE]
        for group in set(group_of[laden].tolist()):
            nodes = laden[group_of[laden] == group]
            targets = np.flatnonzero(group_of == group)
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


def _load(evacuation_load: EvacuationLoad, nodes: int | Ints, demand: Instance) -> None:
    """Add an instance that is not mirrored to what has to leave ``nodes``, but for its memory."""
    evacuation_load.largest[nodes] = np.maximum(evacuation_load.largest[nodes], demand.used_memory)
    if demand.is_local:
        evacuation_load.disk[nodes] += demand.disk
        evacuation_load.largest_disk[nodes] = np.maximum(
            evacuation_load.largest_disk[nodes], demand.disk
        )


def _roomiest(targets: Ints, memory: Ints) -> Ints:
    """The targets with most memory; looking at these only errs on the careful side."""
    return targets[np.argsort(-memory[targets], kind="stable")[:_TARGETS]]


def _surely_fits(
    nodes: Ints, targets: Ints, memory: Ints, disk: Ints, evacuation_load: EvacuationLoad
) -> Bools:
    """Per node: whether what leaves it is too small to block all targets for its largest piece.

    Blocking a target for memory takes at least its room less the largest piece, as a part of
    all the memory that moves; likewise for disk. The parts spent on all targets add up to at
    most 1 for memory and 1 for disk.
    """
    parts = _parts(
        memory[targets] - evacuation_load.largest[nodes, None], evacuation_load.memory[nodes]
    )
    budget = np.ones(len(nodes))
    on_disk = evacuation_load.largest_disk[nodes] > _NONE
    if on_disk.any():
        disk_parts = _parts(
            disk[targets] - evacuation_load.largest_disk[nodes, None], evacuation_load.disk[nodes]
        )
        parts = np.where(on_disk[:, None], np.minimum(parts, disk_parts), parts)
        budget += on_disk
    parts[nodes[:, None] == targets] = 0
    fits: Bools = parts.sum(axis=1) > budget * (1 + 1e-9)
    return fits & ~evacuation_load.tied[nodes]


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
