"""Placement where disks are not shared between instances: as little room as possible is lost.

With exclusive storage a balanced load is worth little, but a node that has room for a large
instance is. So nodes are compared by how many instances of each size that the policy names
they could have taken, and cannot any more: the lost allocations; then by the disk space left.
"""

from __future__ import annotations

import operator
from collections import Counter

from common.model.template import ON_ONE_NODE
from common.record import Record
from coordinator.allocator.model.resources import asked
from coordinator.allocator.model.shift import add_primary, add_secondary
from coordinator.allocator.model.state import State
from coordinator.allocator.packing.room import room_of_singles
from coordinator.allocator.refusal import Reason
from coordinator.allocator.snapshot import Instance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.allocator.model.resources import NodeResources
    from coordinator.allocator.policy import InstancePolicy
    from coordinator.allocator.request import Allocate


# What a placement costs, less is better: instances that no longer fit, per size in falling order;
# and the disk space left on the chosen nodes.
Loss = tuple[tuple[int, ...], int]
_Best = tuple[Loss, tuple[int, ...]]  # and the nodes


class _Trial(Record):
    """One node with the instance.

    Attributes:
        code: of the ``Reason`` why not.
        loss: of meaning only if it is 0.
        node: the index.
    """

    code: int
    loss: Loss
    node: int

    @property
    def rank(self) -> tuple[tuple[int, ...], int, int]:
        """The least is the best, and among equals the last node."""
        return *self.loss, -self.node


def choose_dedicated(
    state: State, request: Allocate, members: Sequence[int]
) -> tuple[_Best | None, Counter[Reason], Sequence[int]]:
    """Choose among ``members`` (rising indices of one group's nodes) the least loss.

    Whether nodes could still be emptied plays no part. Among equals the last is taken.

    Returns:
        The loss and the nodes, primary first; None when nothing fits. And how many nodes, or
        pairs, are refused for what; and the code of why each node cannot be the primary one.
    """
    trials = _Trials(state, request, members)
    firsts = trials.firsts(force=request.ignore_soft_limits)
    if request.pair:
        return *_choose_pair(trials, firsts), [one.code for one in firsts]
    usable = [one for one in firsts if not one.code]
    best = min(usable, key=lambda one: one.rank, default=None)
    found = None if best is None else (best.loss, (best.node,))
    codes = [one.code for one in firsts]
    return found, Counter(Reason(code) for code in codes if code), codes


def _choose_pair(trials: _Trials, firsts: Sequence[_Trial]) -> tuple[_Best | None, Counter[Reason]]:
    """Try each primary with the best secondary.

    What is lost on two nodes is the sum, so which secondary is best depends on the primary only
    where a node keeps memory for that one already.
    """
    usual = {node: trials.second(node, 0) for node in trials.members}
    by_rank = sorted((one for one in usual.values() if not one.code), key=lambda one: one.rank)
    codes = Counter(one.code for one in usual.values())
    failures: Counter[int] = Counter()
    best: _Best | None = None
    for first in firsts:
        if first.code:
            failures[first.code] += len(usual) - 1
            continue
        others = {
            node: trials.second(node, held)
            for node, held in trials.keepers.get(first.node, {}).items()
            if node != first.node and held > 0
        }
        out = {first.node, *others}
        failures += codes + Counter(one.code for one in others.values())
        failures -= Counter(usual[node].code for node in out)
        near = next((one for one in by_rank if one.node not in out), None)
        usable = [one for one in (near, *others.values()) if one and not one.code]
        if usable:
            second = min(usable, key=lambda one: one.rank)
            loss = _together(first.loss, second.loss)
            if best is None or loss <= best[0]:
                best = loss, (first.node, second.node)
    return best, Counter({Reason(code): count for code, count in failures.items() if code})


def _together(one: Loss, other: Loss) -> Loss:
    return tuple(map(operator.add, one[0], other[0])), one[1] + other[1]


class _Trials:
    """An instance on each node of a group.

    Attributes:
        keepers: by primary node: nodes that keep memory free for it, and how much.
    """

    def __init__(self, state: State, request: Allocate, members: Sequence[int]) -> None:
        self.members = members
        self._state, self._demand, self._asks = state, request.instance, asked(request.instance)
        self._sizes = _sizes(state.model.snapshot.groups[state.model.group_of[members[0]]].policy)
        self._before = {node: self._room(state.row(node)) for node in members}
        self.keepers: dict[int, dict[int, int]] = {}
        for node in members:
            for primary, held in state.held(node).items():
                self.keepers.setdefault(primary, {})[node] = held

    def firsts(self, *, force: bool) -> list[_Trial]:
        """The instance as primary on each node; with ``force`` soft limits do not count."""
        clashes = self._state.clashes(self._demand, self.members)
        forbidden = self._state.model.forbidden(self._demand, self.members)
        trials = []
        for node, clash, why in zip(self.members, clashes, forbidden, strict=True):
            row = self._state.row(node)
            code, after = add_primary(row, self._asks, clashes=clash, location=0, force=force)
            trials.append(self._tried(node, why or code, after))
        return trials

    def second(self, node: int, promised: int) -> _Trial:
        """The instance's copy on a node, which keeps so much for the primary one already."""
        row = self._state.row(node)
        code, after = add_secondary(row, self._asks, promised=promised, force=False)
        return self._tried(node, code, after)

    def _tried(self, node: int, code: int, after: NodeResources) -> _Trial:
        if code:
            return _Trial(code, ((), 0), node)
        rooms = zip(self._before[node], self._room(after), strict=True)
        return _Trial(code, (tuple(was - now for was, now in rooms), int(after.disk)), node)

    def _room(self, row: NodeResources) -> tuple[int, ...]:
        return tuple(room_of_singles(row, size) for size in self._sizes)


def _sizes(policy: InstancePolicy) -> list[Instance]:
    """The smallest instances that a policy allows, the largest disk first."""
    smallest = sorted((bounds.min for bounds in policy.minmax), key=lambda spec: -spec.disk_size)
    return [
        Instance(
            name="",
            template=ON_ONE_NODE,
            memory=spec.memory_size,
            vcpus=spec.cpu_count,
            disk=spec.disk_size,
            spindle_use=spec.spindle_use,
            disk_spindles=0,
        )
        for spec in smallest
        if max(spec.memory_size, spec.cpu_count, spec.disk_size) > 0  # else there is no end
    ]
