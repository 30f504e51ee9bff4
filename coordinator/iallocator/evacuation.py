"""Existing instances: relocate, node-evacuate and change-group."""

from __future__ import annotations

from coordinator.allocator.model.assignment import (
    Assignment,
    Refusal,
    fail_over,
    move_to,
    replace_secondary,
)
from coordinator.allocator.model.next_model import with_moved
from coordinator.allocator.model.state import State
from coordinator.allocator.refusal import REASONS
from coordinator.allocator.relocation.resettle import new_homes, new_secondaries
from coordinator.allocator.relocation.resettle_pair import new_pair
from coordinator.allocator.request import Allocate
from coordinator.allocator.snapshot import NOWHERE
from coordinator.iallocator import opcodes
from coordinator.iallocator.answers import Answer, Moved, Moves, Options, Refused, moved_to
from coordinator.iallocator.choosing import choose
from coordinator.iallocator.requests import EvacuationMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.model.trials import Trials
    from coordinator.allocator.snapshot import Instance
    from coordinator.iallocator.opcodes import Opcode
    from coordinator.iallocator.requests import ChangeGroup, Evacuate, RelocateOne

    T = TypeVar("T")
    _Step = tuple[Callable[..., Assignment], *tuple[int, ...]]  # and where to, if it says that


def relocate(model: ClusterModel, request: RelocateOne, options: Options) -> Answer:
    """Find another secondary, or for shared storage another primary, for one instance.

    Raises:
        Refused: there is none, or the instance cannot be relocated.
    """
    instance = model.snapshot.instances[request.instance]
    if request.required_nodes != 1:
        raise Refused(f"Exchange {request.required_nodes} nodes mode is not implemented")
    if instance.is_mirrored:
        mode, old, kind = EvacuationMode.SECONDARY, instance.secondary, "secondary"
    elif instance.traits.is_external:
        mode, old, kind = EvacuationMode.PRIMARY, instance.primary, "primary"
    else:
        raise Refused("Can't relocate non-mirrored instances")
    if request.leaving != (old,):
        listed = ",".join(map(str, request.leaving))
        raise Refused(
            f"Unsupported request: excluded nodes not equal to instance's {kind}"
            f"({old} versus [{listed}])"
        )
    movers = _Movers(model, options)
    targets = movers.targets(request.instance, frozenset(request.leaving))
    if request.among is not None:
        targets = [node for node in targets if model.names[node] in request.among]
    movers.evacuate(request.instance, mode, targets)
    nodes = movers.nodes_of(request.instance)
    chosen = nodes[-1] if instance.is_mirrored else nodes[0]
    return Answer("success", [model.names[chosen]], after={request.instance: nodes})


def evacuate(model: ClusterModel, request: Evacuate, options: Options) -> Answer:
    """Move instances off their nodes, one after the other."""
    excluded = set()
    for index in request.instances:
        instance = model.snapshot.instances[index]
        if request.mode is not EvacuationMode.SECONDARY:
            excluded.add(instance.primary)
        if request.mode is not EvacuationMode.PRIMARY and instance.is_mirrored:
            excluded.add(instance.secondary)
    movers = _Movers(model, options)

    def move(index: int) -> list[Opcode]:
        return movers.evacuate(index, request.mode, movers.targets(index, frozenset(excluded)))

    return _many(movers, request.instances, move)


def change_group(model: ClusterModel, request: ChangeGroup, options: Options) -> Answer:
    """Move instances to other groups; options do not count for the moves, as in hail."""
    cluster = model.snapshot
    left = {model.group_of[cluster.instances[index].primary] for index in request.instances}
    wanted = request.groups or range(len(cluster.groups))
    allowed = frozenset(wanted) - left
    movers = _Movers(model, Options())

    def move(index: int) -> list[Opcode]:
        demand = cluster.instances[index]
        placed = choose(
            movers.model,
            Allocate(
                instance=demand,
                resides=index,
                groups=allowed,
                networks=demand.networks,
                among=options.among,
                check_redundancy=options.check_capacity,
                ignore_soft_limits=options.ignore_soft_errors,
            ),
        )
        group = model.group_of[placed.nodes[0]]
        return movers.evacuate(index, EvacuationMode.ALL, movers.nodes_in(group), group)

    return _many(movers, request.instances, move)


def _many(
    movers: _Movers, instances: tuple[int, ...], move: Callable[[int], list[Opcode]]
) -> Answer:
    moved: list[Moved] = []
    failed: list[tuple[str, str]] = []
    jobs: list[tuple[Opcode, ...]] = []
    cluster = movers.cluster
    for index in instances:
        instance = cluster.instances[index]
        try:
            jobs.append(tuple(move(index)))
        except Refused as error:
            failed.append((instance.name, str(error)))
            continue
        moved.append(moved_to(cluster, index, movers.nodes_of(index)))
    info = f"{len(failed)} instances failed to move and {len(moved)} were moved successfully"
    after = {index: movers.nodes_of(index) for index in instances}
    return Answer(info, Moves(tuple(moved), tuple(failed), tuple(jobs)), after=after)


class _Movers:
    """Instances on the move: the model, and where they are by now."""

    def __init__(self, model: ClusterModel, options: Options) -> None:
        self.cluster, self._model = model.snapshot, model
        self._state = State(model)
        self._force = options.ignore_soft_errors
        self._assignments: dict[int, Assignment] = {}

    @property
    def model(self) -> ClusterModel:
        """The model as they are by now."""
        if not self._assignments:
            return self._model
        assignments = {
            index: (assignment.primary, assignment.secondary)
            for index, assignment in self._assignments.items()
        }
        return with_moved(self._model, assignments, rows=self._state.rows)

    def nodes_of(self, index: int) -> tuple[int, ...]:
        """Where an instance is; its secondary counts only if it is mirrored."""
        nodes = self._assignment(index).nodes
        return nodes if self.cluster.instances[index].is_mirrored else nodes[:1]

    def nodes_in(self, group: int) -> list[int]:
        """Nodes of a group that take instances."""
        return [node for node in self._model.groups[group] if self._model.usable[node]]

    def targets(self, index: int, excluded: frozenset[int]) -> list[int]:
        """Nodes of an instance's group that it may go to."""
        primary = self._assignment(index).primary
        nodes = self.nodes_in(self._model.group_of[primary])
        out = {*excluded, primary}
        return [node for node in nodes if node not in out]

    def evacuate(
        self, index: int, mode: EvacuationMode, targets: Sequence[int], group: int | None = None
    ) -> list[Opcode]:
        """Move one instance.

        ``targets`` are where it may go. The balance of ``group`` counts; None for its own.

        Raises:
            Refused: it cannot be moved; nothing changed.
        """
        instance, at = self.cluster.instances[index], self._assignment(index)
        own = self._model.group_of[at.primary]
        scored = self._model.groups[own if group is None else group]
        state, jobs = self._state.copy(), []
        for step, *target in self._steps(instance, at, mode, targets, scored):
            try:
                at = step(state, at, *target, force=self._force)
            except Refusal as refusal:
                raise Refused(refusal.reason.hail_name) from refusal
            to = [self._model.names[node] for node in target]
            if step is replace_secondary:
                jobs.append(opcodes.replace_secondary(instance.name, *to))
            else:
                jobs.append(opcodes.migrate(instance.name, *to, is_live=not instance.forthcoming))
        del self._assignments[index]  # so that the last to move is the last
        self._state, self._assignments[index] = state, at
        return jobs

    def _steps(
        self,
        instance: Instance,
        at: Assignment,
        mode: EvacuationMode,
        targets: Sequence[int],
        scored: Sequence[int],
    ) -> list[_Step]:
        """What moves an instance, one after the other, to the best of its targets.

        Raises:
            Refused: nothing does.
        """

        def ask(way: Callable[..., T]) -> T:
            return way(self._state, at, targets, scored, force=self._force)

        if instance.traits.is_external:
            if mode is EvacuationMode.SECONDARY:
                raise Refused(
                    f"Instances with disk template '{instance.template}' can't execute "
                    "change secondary"
                )
            return [(move_to, self._best(ask(new_homes)))]
        if not instance.is_mirrored:
            raise Refused(f"Instances of type {instance.template} cannot be relocated")
        if at.secondary == NOWHERE:
            raise Refused(f"Instance {instance.name} is mirrored (drbd) but has only one node")
        if mode is EvacuationMode.PRIMARY:
            return [(fail_over,)]
        if mode is EvacuationMode.SECONDARY:
            return [(replace_secondary, self._best(ask(new_secondaries)))]
        found = ask(new_pair)
        if found.pair is None:
            why = "no nodes available"
            if found.step:
                why = f"Allocation failed: {found.step}: {found.reason.hail_name}"
            raise Refused(f"Can't find any good nodes for relocation: {why}")
        primary, secondary = found.pair
        first: list[_Step] = [(fail_over,)] if found.starts_with_failover else []
        return [*first, (replace_secondary, primary), (fail_over,), (replace_secondary, secondary)]

    def _best(self, found: Trials) -> int:
        if best := next(found.ranked(last_if_nan=True), None):
            return best[0]
        names = [self._model.names[node] for node in found.nodes]
        refused = dict(zip(names, [REASONS[code] for code in found.codes], strict=True))
        told = (f" Node {name} failed: {why.hail_name};" for name, why in refused.items())
        raise Refused(f"Can't find any good node: {''.join(told)}", refused)

    def _assignment(self, index: int) -> Assignment:
        if index not in self._assignments:
            instance = self.cluster.instances[index]
            location = self._model.location_score(instance, instance.primary, instance.secondary)
            at = Assignment(instance, instance.primary, instance.secondary, location)
            self._assignments[index] = at
        return self._assignments[index]
