"""Why nodes and pairs of nodes refuse an instance, for many sizes of it at once.

The order of the checks is htools', since the first that fails is the one counted.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from types import SimpleNamespace

import numpy as np

from coordinator.allocator.arrays import Bools, Floats, Ints, ints
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.shift import too_many
from coordinator.allocator.policy import check_policy
from coordinator.allocator.refusal import Reason
from coordinator.allocator.snapshot import Instance


class Failure(IntEnum):
    """Why an instance does not fit, as coarse as hspace counts it, and in its order."""

    NONE = 0
    MEM = 1
    DISK = 2
    CPU = 3
    N1 = 4
    TAGS = 5
    MIG = 6
    DISK_COUNT = 7
    SPINDLES = 8

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = (
    "", "FailMem", "FailDisk", "FailCPU", "FailN1", "FailTags", "FailMig", "FailDiskCount",
    "FailSpindles",
)  # fmt: skip
FAILURES = tuple(failure for failure in Failure if failure)
_OF_REASON = np.array([_LABELS.index(reason.hail_name) for reason in Reason], dtype=np.int64)
_NO_PAIR = len(Failure)
_UNKNOWN = 1 << 60

_Check = tuple[Bools, Failure]


class Refusals:
    """Candidates that are asked; shapes are sizes of the instance times nodes."""

    def __init__(
        self,
        model: ClusterModel,
        resources: NodeResources,
        promised: Ints,
        nodes: Ints,
        room: Floats | None,
    ) -> None:
        """Prepare.

        Args:
            model: the cluster.
            resources: of all nodes, as they stand.
            promised: row by secondary, column by primary: memory kept free for it.
            nodes: the candidates.
            room: shape (2, all nodes): memory and disk below which what has no mirror has to
                stay, so that nodes can still be emptied; None if they need not be.
        """
        self._model, self._nodes = model, nodes
        self._room = None if room is None else room[:, nodes]
        self._resources = b = resources.at(nodes)
        self._least = np.maximum(1, b.least_disk)
        # Memory that is left where an instance more is promised to a primary; by secondary.
        self._left = b.memory[:, None] - promised[np.ix_(nodes, nodes)]
        self._full = (b.memory <= b.reserved) & ~b.fails_n1
        group = ints(model.group_of)[nodes]
        self._are_pair = (group[:, None] == group) & ~np.eye(len(nodes), dtype=np.bool_)

    def of_singles(self, demands: Sequence[Instance]) -> Ints:
        """A ``Failure`` per size and node; 0 where it fits."""
        b, one = self._resources, demands[0]
        memory = _column([each.used_memory for each in demands])
        cpus = _column([each.used_vcpus for each in demands])
        left = b.memory - memory
        checks: list[_Check] = [
            *self._forbidden(demands),
            (left <= 0, Failure.MEM),
            *(self._disks(demands, soon=False) if one.is_local else ()),
            ((left <= b.reserved) & ~b.fails_n1, Failure.MEM),
            (too_many(b, b.cpus + cpus), Failure.CPU),
            (b.next_memory - _column([each.memory for each in demands]) <= 0, Failure.MEM),
            *(self._disks(demands, soon=True) if one.is_local else ()),
            (too_many(b, b.next_cpus + cpus), Failure.CPU),
        ]
        return _first_failure(checks)

    def of_pairs(self, demands: Sequence[Instance]) -> Ints:
        """The same per size, primary and secondary; of what is no pair it is no failure's."""
        firsts = self.of_singles(demands)
        codes = np.repeat(firsts[:, :, None], len(self._nodes), axis=2)
        size, primary = np.nonzero(firsts == 0)
        codes[size, primary] = self._seconds(demands, size, primary)
        return np.where(self._are_pair, codes, np.int64(_NO_PAIR))

    def count(self, demands: Sequence[Instance], *, pair: bool) -> tuple[Ints, Bools]:
        """Per size: how many are refused for each ``Failure``; and whether one may remain.

        Those that fit are counted for none. Where counting shows that nodes could not be emptied
        with it, none remains.
        """
        firsts = self.of_singles(demands)
        kinds = _NO_PAIR + 1
        offsets = np.arange(len(demands)) * kinds
        keys = firsts + offsets[:, None]
        if pair:
            partners = np.broadcast_to(self._are_pair.sum(axis=1), firsts.shape).ravel()
            counts = np.bincount(keys.ravel(), partners, len(demands) * kinds).astype(np.int64)
            size, primary = np.nonzero(firsts == 0)
            counts[offsets] = 0
            seconds = self._seconds(demands, size, primary)
            seconds[~self._are_pair[primary]] = _NO_PAIR
            keys = seconds + offsets[size, None]
            counts += np.bincount(keys.ravel(), minlength=len(counts))
        else:
            counts = np.bincount(keys.ravel(), minlength=len(demands) * kinds)
        table = counts.reshape(-1, kinds)
        remains = table[:, 0] > 0
        if not pair and self._room is not None:
            memory, disk = self._room
            fits = (firsts == 0) & (_column([each.used_memory for each in demands]) < memory)
            if demands[0].is_local:
                fits &= _column([each.disk for each in demands]) < disk
            remains = fits.any(axis=1)
        return table[:, : len(Failure)], remains

    def _seconds(self, demands: Sequence[Instance], size: Ints, primary: Ints) -> Ints:
        """Codes of all secondaries for each of these sizes and primaries that fit."""
        b = self._resources
        needed = _column([each.reserved_memory for each in demands])
        mirror = _first_failure(
            [*self._disks(demands, soon=False), (needed >= b.memory, Failure.MEM)]
        )
        late = _first_failure(
            [*self._disks(demands, soon=True), (needed >= b.next_memory, Failure.MEM)]
        )
        short = (needed[size] >= self._left[:, primary].T) & ~b.fails_n1
        codes = np.where(short | self._full, np.int64(Failure.MEM), late[size])
        return np.where(mirror[size] > 0, mirror[size], codes)

    def _forbidden(self, demands: Sequence[Instance]) -> Iterator[_Check]:
        """By the policies of the groups, as checks."""
        model, one = self._model, demands[0]
        sizes = SimpleNamespace(  # all of them as one instance; they differ in amounts only
            template=one.template,
            memory=ints([each.memory for each in demands]),
            vcpus=ints([each.vcpus for each in demands]),
            disks=[ints(amounts) for amounts in zip(*(d.disks for d in demands), strict=True)],
            spindle_use=one.spindle_use,
            disk_spindles=None
            if one.disk_spindles is None
            else ints([each.disk_spindles or 0 for each in demands]),
        )
        reasons = np.zeros((len(demands), len(self._nodes)), dtype=np.int64)
        kinds = [model.kinds[node] for node in self._nodes.tolist()]
        for at, exclusive in set(kinds):
            own = [number for number, kind in enumerate(kinds) if kind == (at, exclusive)]
            policy = model.snapshot.groups[at].policy
            reasons[:, own] = check_policy(policy, sizes, exclusive=exclusive)[:, None]
        codes = _OF_REASON[reasons]
        for failure in FAILURES:
            failed = codes == failure
            if failed.any():
                yield failed, failure

    def _disks(self, demands: Sequence[Instance], *, soon: bool) -> list[_Check]:
        b = self._resources
        free, alone, used = (
            (b.next_disk, b.next_free_spindles, b.next_spindles)
            if soon
            else (b.disk, b.free_spindles, b.spindles)
        )
        disk = _column([each.disk for each in demands])
        use = np.where(b.exclusive, 0, _column([each.spindle_use for each in demands]))
        spindles = _column(
            [_UNKNOWN if each.disk_spindles is None else each.disk_spindles for each in demands]
        )
        return [
            (free - disk < self._least, Failure.DISK),
            (b.exclusive & (alone < spindles), Failure.SPINDLES),
            (used + use > b.spindle_limit, Failure.DISK),
        ]


def _first_failure(checks: Sequence[_Check]) -> Ints:
    shape = np.broadcast_shapes(*(failed.shape for failed, _ in checks))
    codes = np.zeros(shape, dtype=np.int64)
    for failed, failure in reversed(checks):
        if failed.any():
            codes = np.where(failed, np.int64(failure), codes)
    return codes


def _column(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)[:, None]
