"""Existing instances: relocate, node-evacuate and change-group."""

from __future__ import annotations

from coordinator.allocator.model.next_model import with_moved
from coordinator.allocator.model.state import State
from coordinator.allocator.refusal import REASONS
from coordinator.allocator.relocation.assignment import (
    Assignment,
    Refusal,
    fail_over,
    move_to,
    replace_secondary,
)
from coordinator.allocator.relocation.resettle import new_homes, new_secondaries
from coordinator.allocator.relocation.resettle_pair import new_pair
from coordinator.allocator.request import Allocate
from coordinator.allocator.snapshot import NOWHERE
from coordinator.iallocator import opcodes
from coordinator.iallocator.answers import Answer, Moves, Options, Refused
from coordinator.iallocator.choosing import choose
from coordinator.iallocator.requests import EvacuationMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.relocation.resettle import Targets
    from coordinator.allocator.snapshot import Snapshot
    from coordinator.iallocator.opcodes import Opcode
    from coordinator.iallocator.requests import ChangeGroup, Evacuate, RelocateOne

    T = TypeVar("T")


def relocate(
    cluster: Snapshot, model: ClusterModel, request: RelocateOne, options: Options
) -> Answer:
    """Find another secondary, or for shared storage another primary, for one instance.

    Raises:
        Refused: there is none, or the instance cannot be relocated.
    """
    instance = cluster.instances[request.instance]
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
    movers = _Movers(cluster, model, options)
    targets = movers.targets(request.instance, frozenset(request.leaving))
    if request.among is not None:
        targets = [node for node in targets if cluster.nodes[node].name in request.among]
    movers.evacuate(request.instance, mode, targets)
    nodes = movers.nodes_of(request.instance)
    chosen = nodes[-1] if instance.is_mirrored else nodes[0]
    return Answer("success", [cluster.nodes[chosen].name], after={request.instance: nodes})


def evacuate(cluster: Snapshot, model: ClusterModel, request: Evacuate, options: Options) -> Answer:
    """Move instances off their nodes, one after the other."""
    excluded = set()
    for index in request.instances:
        instance = cluster.instances[index]
        if request.mode is not EvacuationMode.SECONDARY:
            excluded.add(instance.primary)
        if request.mode is not EvacuationMode.PRIMARY and instance.is_mirrored:
            excluded.add(instance.secondary)
    movers = _Movers(cluster, model, options)

    def move(index: int) -> list[Opcode]:
        return movers.evacuate(index, request.mode, movers.targets(index, frozenset(excluded)))

    return _many(cluster, movers, request.instances, move)


def change_group(
    cluster: Snapshot, model: ClusterModel, request: ChangeGroup, options: Options
) -> Answer:
    """Move instances to other groups; options do not count for the moves, as in hail."""
    instances = [cluster.instances[index] for index in request.instances]
    left = {cluster.nodes[instance.primary].group for instance in instances}
    wanted = request.groups or range(len(cluster.groups))
    allowed = frozenset(wanted) - left
    movers = _Movers(cluster, model, Options())

    def move(index: int) -> list[Opcode]:
        demand = cluster.instances[index]
        placed = choose(
            cluster,
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
        group = cluster.nodes[placed.nodes[0]].group
        return movers.evacuate(index, EvacuationMode.ALL, movers.nodes_in(group), group)

    return _many(cluster, movers, request.instances, move)


class _Move:
    """One instance's way, on a copy of the model, and the job that does it.

    Each method raises Refused if it cannot go that way.
    """

    def __init__(
        self, state: State, cluster: Snapshot, index: int, assignment: Assignment, *, force: bool
    ) -> None:
        self._cluster = cluster
        self._instance = cluster.instances[index]
        self._force = force
        self.state = state.copy()
        self.assignment = assignment
        self.jobs: list[Opcode] = []

    def fail_over(self) -> None:
        """Change sides."""
        try:
            self.assignment = fail_over(
                self.state, self._instance, self.assignment, force=self._force
            )
        except Refusal as refusal:
            raise Refused(refusal.reason.hail_name) from refusal
        self._note_migration(None)

    def to_best_home(self, targets: Sequence[int], scored: Sequence[int]) -> None:
        """Start on another node."""
        target = self._chosen(self._ask(new_homes, targets, scored))
        self.assignment = move_to(
            self.state, self._instance, self.assignment, target, force=self._force
        )
        self._note_migration(target)

    def to_best_secondary(self, targets: Sequence[int], scored: Sequence[int]) -> None:
        """Keep the second copy elsewhere."""
        self._replace_secondary(self._chosen(self._ask(new_secondaries, targets, scored)))

    def to_best_pair(self, targets: Sequence[int], scored: Sequence[int]) -> None:
        """Leave both nodes."""
        found = self._ask(new_pair, targets, scored)
        if found.pair is None:
            why = "no nodes available"
            if found.step:
                why = f"Allocation failed: {found.step}: {found.reason.hail_name}"
            raise Refused(f"Can't find any good nodes for relocation: {why}")
        if found.starts_with_failover:
            self.fail_over()
        self._replace_secondary(found.pair[0])
        self.fail_over()
        self._replace_secondary(found.pair[1])

    def _ask(self, way: Callable[..., T], targets: Sequence[int], scored: Sequence[int]) -> T:
        at = self.assignment
        return way(self.state, self._instance, at, targets, scored, force=self._force)

    def _replace_secondary(self, target: int) -> None:
        self.assignment = replace_secondary(
            self.state, self._instance, self.assignment, target, force=self._force
        )
        name = self._cluster.nodes[target].name
        self.jobs.append(opcodes.replace_secondary(self._instance.name, name))

    def _note_migration(self, target: int | None) -> None:
        name = None if target is None else self._cluster.nodes[target].name
        self.jobs.append(
            opcodes.migrate(self._instance.name, name, is_live=not self._instance.forthcoming)
        )

    def _chosen(self, found: Targets) -> int:
        best = next(found.ranked, None)
        if best is None:
            codes = [REASONS[code] for code in found.codes]
            names = [self.state.model.names[node] for node in found.nodes]
            refused = dict(zip(names, codes, strict=True))
            told = (f" Node {name} failed: {why.hail_name};" for name, why in refused.items())
            raise Refused(f"Can't find any good node: {''.join(told)}", refused)
        return best[0]


def _many(
    cluster: Snapshot,
    movers: _Movers,
    instances: tuple[int, ...],
    move: Callable[[int], list[Opcode]],
) -> Answer:
    moved: list[tuple[str, str, tuple[str, ...]]] = []
    failed: list[tuple[str, str]] = []
    jobs: list[tuple[Opcode, ...]] = []
    for index in instances:
        instance = cluster.instances[index]
        try:
            jobs.append(tuple(move(index)))
        except Refused as error:
            failed.append((instance.name, str(error)))
            continue
        nodes = movers.nodes_of(index)
        group = cluster.groups[cluster.nodes[nodes[0]].group].name
        moved.append((instance.name, group, tuple(cluster.nodes[node].name for node in nodes)))
    info = f"{len(failed)} instances failed to move and {len(moved)} were moved successfully"
    after = {index: movers.nodes_of(index) for index in instances}
    return Answer(info, Moves(tuple(moved), tuple(failed), tuple(jobs)), after=after)


class _Movers:
    """Instances on the move: the model, and where they are by now."""

    def __init__(self, cluster: Snapshot, model: ClusterModel, options: Options) -> None:
        self._cluster = cluster
        self._model = model
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
        return nodes if self._cluster.instances[index].is_mirrored else nodes[:1]

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
        instance = self._cluster.instances[index]
        assignment = self._assignment(index)
        own = self._model.group_of[assignment.primary]
        scored = self._model.groups[own if group is None else group]
        move = _Move(self._state, self._cluster, index, assignment, force=self._force)
        if instance.traits.is_external:
            if mode is EvacuationMode.SECONDARY:
                raise Refused(
                    f"Instances with disk template '{instance.template}' can't execute "
                    "change secondary"
                )
            move.to_best_home(targets, scored)
        elif not instance.is_mirrored:
            raise Refused(f"Instances of type {instance.template} cannot be relocated")
        elif assignment.secondary == NOWHERE:
            raise Refused(f"Instance {instance.name} is mirrored (drbd) but has only one node")
        elif mode is EvacuationMode.PRIMARY:
            move.fail_over()
        elif mode is EvacuationMode.SECONDARY:
            move.to_best_secondary(targets, scored)
        else:
            move.to_best_pair(targets, scored)
        del self._assignments[index]  # so that the last to move is the last
        self._state, self._assignments[index] = move.state, move.assignment
        return move.jobs

    def _assignment(self, index: int) -> Assignment:
        if index not in self._assignments:
            instance = self._cluster.instances[index]
            location = self._model.location_score(instance, instance.primary, instance.secondary)
            self._assignments[index] = Assignment(instance.primary, instance.secondary, location)
        return self._assignments[index]
