"""Why nodes and pairs of nodes refuse an instance, found once for all sizes that they treat alike.

What a node has divides the amounts that an instance may ask into ranges: within one of them all
checks come out the same. So of the thousands of sizes that a shrinking instance goes through,
only a few are put to the nodes.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from coordinator.allocator.arrays import Bools, Ints, ints
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import NodeResources, asked_arrays
from coordinator.allocator.model.shift import add_primary, add_secondary
from coordinator.allocator.refusal import Failure, Reason
from coordinator.allocator.snapshot import Instance

Size = tuple[object, ...]
"""What is equal for instances that all nodes treat alike."""


_LABELS = ("", *Failure)
_OF_REASON = np.array([_LABELS.index(reason.hail_name) for reason in Reason], dtype=np.int64)
_NO_PAIR = len(_LABELS)

Count = Mapping[Failure | None, int]
"""How many nodes, or pairs of nodes, refuse a size, by failure; None: how many let it in."""


class Refusals:
    """Candidates that are asked, as they stand."""

    def __init__(
        self, model: ClusterModel, resources: NodeResources, promised: Ints, nodes: Ints
    ) -> None:
        """Prepare.

        Args:
            model: the cluster.
            resources: of all nodes, as they stand.
            promised: row by secondary, column by primary: memory kept free for it, in MiB.
            nodes: indices of the candidates.
        """
        self._model, self._nodes = model, nodes
        # The same nodes: columns are primaries, (candidates,), rows secondaries, (candidates, 1).
        self._firsts, self._seconds = resources.at(nodes), resources.at(nodes[:, None])
        self._promised = promised[np.ix_(nodes, nodes)]
        group = ints(model.group_of)[nodes]
        self._are_pair: Bools = (group[:, None] == group) & ~np.eye(len(nodes), dtype=np.bool_)
        self._counts: dict[Size, Count] = {}
        self._codes: dict[Size, Ints] = {}
        self._find_ranges()

    def _find_ranges(self) -> None:
        """The amounts, in MiB and rising, from which on some check comes out otherwise."""
        b, policies = self._firsts, [group.policy for group in self._model.snapshot.groups]
        bounds = [bound for policy in policies for bound in policy.minmax]
        memory = [b.memory, b.memory - b.reserved, b.next_memory]
        memory.append((b.memory[:, None] - self._promised).ravel())
        disk = [b.disk, b.next_disk]
        disk += [free - b.least_disk + 1 for free in disk]
        ends = [(one.min.memory_size, one.max.memory_size + 1) for one in bounds]
        self._memory = sorted({*np.concatenate(memory).tolist(), *chain(*ends)})
        self._disk = sorted({*np.concatenate(disk).tolist()})
        ends = [(one.min.disk_size, one.max.disk_size + 1) for one in bounds]
        self._disks = sorted({*chain(*ends)})

    def size_of(self, demand: Instance) -> Size:
        """What is equal for instances that all nodes treat alike; they differ in amounts only."""
        return (
            demand.template,
            bisect_right(self._memory, demand.memory),
            bisect_right(self._disk, demand.disk),
            *[bisect_right(self._disks, disk) for disk in demand.disks],
            demand.vcpus,
            demand.spindle_use,
            demand.disk_spindles,
        )

    def spare(self, demand: Instance) -> tuple[int, list[int]]:
        """How many MiB less memory, and less of each disk, make no difference to any node."""
        memory = demand.memory - _below(self._memory, demand.memory)
        some = (demand.disk - _below(self._disk, demand.disk)) // max(1, len(demand.disks))
        disks = [min(some, disk - _below(self._disks, disk)) for disk in demand.disks]
        return memory, disks

    def codes(self, demand: Instance) -> Ints:
        """The number of a ``Failure``, 0 if it fits, per candidate and, if mirrored, second one.

        Of what is no pair it is no failure's.
        """
        size = self.size_of(demand)
        if size not in self._codes:
            self._codes[size] = self._asked(demand).astype(np.int8)
        return self._codes[size]

    def _asked(self, demand: Instance) -> Ints:
        asks, nothing = asked_arrays(demand), np.zeros(len(self._nodes), dtype=np.int64)
        codes, _ = add_primary(self._firsts, asks, clashes=nothing, location=nothing, force=False)
        forbidden = ints(self._model.forbidden(demand, self._nodes.tolist()))
        firsts: Ints = _OF_REASON[np.where(forbidden > 0, forbidden, codes)]
        if not demand.is_mirrored:
            return firsts
        table = asks.at(np.zeros((1, 1), dtype=np.int64))
        codes, _ = add_secondary(self._seconds, table, promised=self._promised, force=False)
        refused = np.where(firsts[:, None] > 0, firsts[:, None], _OF_REASON[codes].T)
        return np.where(self._are_pair, refused, np.int64(_NO_PAIR))

    def count(self, demand: Instance) -> Count:
        """What comes of trying one size everywhere."""
        size = self.size_of(demand)
        if size not in self._counts:
            counts = np.bincount(self.codes(demand).ravel(), minlength=_NO_PAIR).tolist()
            self._counts[size] = dict(zip((None, *Failure), counts, strict=False))
        return self._counts[size]


def _below(limits: Sequence[float], amount: int) -> int:
    """The last limit up to an amount; at least 0."""
    at = bisect_right(limits, amount)
    return int(max(0, limits[at - 1])) if at else 0
