"""Placement where disks are not shared between instances: as little room as possible is lost.

With exclusive storage a balanced load is worth little, but a node that has room for a large
instance is. So nodes are compared by how many instances of each size that the policy names
they could have taken, and cannot any more: the lost allocations; then by the disk space left.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coordinator.allocator.arrays import Bools, Ints
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.resources import NodeResources, asked_arrays
from coordinator.allocator.model.shift import add_primary, add_secondary
from coordinator.allocator.model.state import State
from coordinator.allocator.packing.room import room_of_singles
from coordinator.allocator.policy import InstancePolicy
from coordinator.allocator.refusal import Reason
from coordinator.allocator.request import Allocate
from coordinator.allocator.snapshot import Instance


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """What a placement costs; less is better.

    Attributes:
        allocations: instances that no longer fit, per size in falling order.
        disk: space left on the chosen nodes.
    """

    allocations: tuple[int, ...]
    disk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DedicatedOutcome:
    """What came of one group.

    Attributes:
        nodes: the chosen ones, primary first; empty when nothing fits.
        successes, failures: nodes or pairs, as in ``GroupOutcome``.
    """

    nodes: tuple[int, ...] = ()
    loss: Loss | None = None
    successes: int = 0
    failures: Counter[Reason]


def choose_dedicated(
    model: ClusterModel, request: Allocate, members: Sequence[int]
) -> DedicatedOutcome:
    """Choose among ``members`` (rising indices of one group's nodes) the least loss.

    Whether nodes could still be emptied plays no part. Among equals the last is taken.
    """
    state, demand, candidates = State(model), request.instance, np.array(members)
    policy = model.snapshot.groups[model.group_of[members[0]]].policy
    resources = state.at(candidates)
    force = request.ignore_soft_limits
    clashes = np.array(state.clashes(demand, members))
    codes, after = add_primary(
        resources,
        asked_arrays(demand),
        clashes=clashes,
        location=np.zeros_like(clashes),
        force=force,
    )
    forbidden = np.array(model.forbidden(demand, members))
    codes = np.where(forbidden > 0, forbidden, codes)
    before = _room(resources, policy)
    lost = before - _room(after, policy)
    if not request.pair:
        usable = np.flatnonzero(codes == 0)
        failures = Counter(Reason(code) for code in codes.tolist() if code)
        if not len(usable):
            return DedicatedOutcome(failures=failures)
        best = _last_least(lost[:, usable], after.disk[usable])
        chosen = int(usable[best])
        return DedicatedOutcome(
            nodes=(int(candidates[chosen]),),
            loss=_loss(lost[:, chosen], after.disk[chosen]),
            successes=len(usable),
            failures=failures,
        )
    return _choose_pair(state, request, candidates, codes, lost, after.disk, before, policy)


def _choose_pair(
    state: State,
    request: Allocate,
    candidates: Ints,
    codes: Ints,
    lost: Ints,
    disk: Ints,
    before: Ints,
    policy: InstancePolicy,
) -> DedicatedOutcome:
    """Go through the primaries, all secondaries of each at once."""
    resources, size = state.at(candidates), len(candidates)
    failures: Counter[Reason] = Counter()
    best: tuple[Loss, tuple[int, int]] | None = None
    successes = 0
    nothing = np.zeros(size, dtype=np.int64)
    asks = asked_arrays(request.instance)
    usual_codes, usual = add_secondary(resources, asks, promised=nothing, force=False)
    usual_lost = before - _room(usual, policy)
    for row, primary in enumerate(candidates.tolist()):
        if codes[row]:
            failures[Reason(int(codes[row]))] += size - 1
            continue
        promised = np.array(state.promised(candidates.tolist(), primary))
        second_codes, second, second_lost = usual_codes, usual, usual_lost
        if promised.any():
            second_codes, second = add_secondary(resources, asks, promised=promised, force=False)
            second_lost = before - _room(second, policy)
        others: Bools = np.arange(size) != row
        failures.update(Reason(code) for code in second_codes[others].tolist() if code)
        usable = np.flatnonzero((second_codes == 0) & others)
        successes += len(usable)
        if len(usable):
            together = lost[:, [row]] + second_lost[:, usable]
            left = disk[row] + second.disk[usable]
            choice = _last_least(together, left)
            found = _loss(together[:, choice], left[choice])
            if best is None or not best[0] < found:
                best = found, (primary, int(candidates[usable[choice]]))
    return DedicatedOutcome(
        nodes=best[1] if best else (),
        loss=best[0] if best else None,
        successes=successes,
        failures=failures,
    )


def _room(resources: NodeResources, policy: InstancePolicy) -> Ints:
    """How many instances of each size fit: shape (sizes, nodes), the largest disk first."""
    smallest = [bounds.min for bounds in policy.minmax]
    rows = []
    for spec in sorted(smallest, key=lambda spec: -spec.disk_size):
        sample = Instance(
            name="",
            template="plain",
            memory=spec.memory_size,
            vcpus=spec.cpu_count,
            disk=spec.disk_size,
            spindle_use=spec.spindle_use,
            disk_spindles=0,
        )
        # Of what takes nothing there would be no end.
        is_something = max(sample.memory, sample.disk, sample.vcpus) > 0
        rows.append(room_of_singles(resources, sample) * is_something)
    size = len(resources.memory)
    return np.array(rows, dtype=np.int64).reshape(len(rows), size)


def _last_least(lost: Ints, disk: Ints) -> int:
    """The last of the columns that are least, compared row by row, then by disk."""
    left = np.arange(len(disk))
    for row in (*lost, disk):
        left = left[row[left] == row[left].min()]
    return int(left[-1])


def _loss(lost: Ints, disk: int) -> Loss:
    return Loss(tuple(lost.tolist()), int(disk))
