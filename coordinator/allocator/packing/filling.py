"""A cluster that is being filled with new instances, and the rules of that."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.next_model import with_instances
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.score import Score
from coordinator.allocator.model.state import State
from coordinator.allocator.packing.codes import Refusals
from coordinator.allocator.refusal import Failure
from coordinator.allocator.snapshot import Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a filling heeds besides what every placement does.

    Attributes:
        closed: groups, by index, that take nothing.
        emptied: indices of the nodes that have to stay such that they could be emptied; None
            for no check. As with hspace it holds back mirrored instances only when they shrink.
    """

    closed: frozenset[int] = frozenset()
    emptied: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """One instance and the indices of its nodes, primary first."""

    demand: Instance
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """What came of filling.

    Attributes:
        filling: the state reached.
        failures: how many nodes, or pairs of nodes, refused the instance that was tried last.
    """

    filling: "Filling"
    failures: Mapping[Failure, int]


class Filling:
    """A cluster that has been filled so far; never changed, only followed by another.

    Attributes:
        resources: of all nodes.
        promised: row by secondary, column by primary: memory kept free for it, in MiB.
        placed: what came, in order.
        touched: per node, whether anything came.
        crowding: count of crowded locations.
        candidates: indices of the nodes to try, rising.
    """

    def __init__(self, model: ClusterModel, rules: Rules) -> None:
        self.start, self.rules = model, rules
        self.resources = model.resources
        self.promised = np.zeros((model.size, model.size), dtype=np.int64)
        for (primary, secondary), memory in model.peers.promised.items():
            self.promised[secondary, primary] = memory
        self.placed: tuple[Placed, ...] = ()
        self.touched: Bools = np.zeros(model.size, dtype=np.bool_)
        crowds = State(model).crowds_of(range(model.size))
        self.crowding = crowds.total() - len(crowds)
        self.candidates: Ints = np.array(
            [
                node
                for node in range(model.size)
                if model.usable[node] and model.group_of[node] not in rules.closed
            ],
            dtype=np.int64,
        )
        self._initial = model, 0
        self._refusals: Refusals | None = None

    def has_candidates(self, *, pair: bool) -> bool:
        """Whether there are nodes to try at all."""
        sizes = np.bincount([self.start.group_of[node] for node in self.candidates.tolist()])
        return bool((sizes > int(pair)).any())

    def score(self) -> float:
        """Of the whole cluster."""
        return Score(self.resources, self.crowding).value

    @property
    def refusals(self) -> Refusals:
        """Why candidates refuse instances as things stand."""
        if self._refusals is None:
            self._refusals = Refusals(self.start, self.resources, self.promised, self.candidates)
        return self._refusals

    def model(self) -> ClusterModel:
        """The model with what was placed, for the next request."""
        model, count = self._initial
        if count < len(self.placed):
            more = [(one.demand, one.nodes) for one in self.placed[count:]]
            model = with_instances(model, more, resources=self.resources)
            self._initial = model, len(self.placed)
        return model

    def after(self, demand: Instance, nodes: list[tuple[int, ...]]) -> "Filling":
        """With more instances; ``nodes`` are those of each, primary first."""
        if not nodes:
            return self
        size = self.start.size
        location, promised = np.zeros(size, dtype=np.int64), self.promised
        homes = np.array(nodes, dtype=np.int64).T
        if len(homes) > 1:
            promised = promised.copy()
            np.add.at(promised, (homes[1], homes[0]), demand.reserved_memory)
            np.add.at(location, homes[0], [self.start.shared_locations(*pair) for pair in nodes])
        firsts = np.bincount(homes[0], minlength=size)
        seconds = np.bincount(homes[1:].ravel(), minlength=size)
        other = copy(self)
        other.resources = _with(self.resources, demand, firsts, seconds, promised, location)
        other.promised = promised
        other.placed = (*self.placed, *(Placed(demand, one) for one in nodes))
        other.touched = self.touched | (firsts + seconds > 0)
        other._refusals = None  # noqa: SLF001 -- one of our own
        return other


def _with(
    a: NodeResources, demand: Instance, firsts: Ints, seconds: Ints, promised: Ints, location: Ints
) -> NodeResources:
    both = firsts + seconds
    disk = both * (demand.disk if demand.is_local else 0)
    use = np.where(a.exclusive, 0, both * (demand.spindle_use if demand.is_local else 0))
    spindles = np.where(a.exclusive, both * (demand.disk_spindles or 0), 0)
    cpus = firsts * demand.used_vcpus
    memory = a.memory - firsts * demand.used_memory
    reserved = np.maximum(a.reserved, promised.max(axis=1, initial=0))
    loads = (firsts, firsts, both, firsts)
    return a.changed(
        memory=memory,
        reserved=reserved,
        fails_n1=np.where(both > 0, memory <= reserved, a.fails_n1),
        disk=a.disk - disk,
        cpus=a.cpus + cpus,
        spindles=a.spindles + use,
        free_spindles=a.free_spindles - spindles,
        primaries=a.primaries + firsts,
        secondaries=a.secondaries + seconds,
        load=a.load + np.stack([n * x for n, x in zip(loads, demand.load, strict=True)]),
        location=a.location + location,
        next_memory=a.next_memory - firsts * demand.memory,
        next_disk=a.next_disk - disk,
        next_cpus=a.next_cpus + cpus,
        next_spindles=a.next_spindles + use,
        next_free_spindles=a.next_free_spindles - spindles,
    )
