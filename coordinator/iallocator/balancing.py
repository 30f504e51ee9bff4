"""Making the cluster better: the request type ``balance``.

Ganeti's design asks for it; its hail never had it. A request may say ``max_operations``, the
largest number of moves, and ``group_name``; the answer has the form of one to node-evacuate.
"""

from collections.abc import Iterator
from heapq import merge

import numpy as np

from coordinator.allocator.balancing.balance import Balance, Move
from coordinator.allocator.balancing.moves import Limits, StepKind
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.snapshot import IS_RUNNING, NOWHERE, Snapshot
from coordinator.iallocator import opcodes
from coordinator.iallocator.answers import Answer, Moved, Moves, Options, Refused, moved_to
from coordinator.iallocator.names import groups_named
from coordinator.iallocator.opcodes import Opcode
from coordinator.iallocator.requests import BalanceCluster

Step = tuple[float, Move]
"""A move of a group, and the score before it."""


def balance(model: ClusterModel, request: BalanceCluster, options: Options) -> Answer:
    """Find moves, those that gain most first; each as a job that waits for the one before.

    Raises:
        Refused: there is no such group.
    """
    cluster = model.snapshot
    steps = _best_first(model, _groups(cluster, request), options)
    moved: list[Moved] = []
    jobs: list[tuple[Opcode, ...]] = []
    after: dict[int, tuple[int, ...]] = {}
    scores: dict[int, tuple[float, float]] = {}
    for score, move in steps:
        if request.max_operations is not None and len(jobs) >= request.max_operations:
            break
        nodes = tuple(node for node in move.after if node != NOWHERE)
        group = cluster.nodes[nodes[0]].group
        moved.append(moved_to(cluster, move.instance, nodes))
        first, *rest = opcodes_of(move, cluster)
        jobs.append(({**first, "depends": [[-1, ["success"]]]} if jobs else first, *rest))
        after[move.instance] = nodes
        scores[group] = (scores.get(group, (score,))[0], move.score)
    scores_in_words = ", ".join(
        f"group {cluster.groups[group].name} from {before:.8f} to {now:.8f}"
        for group, (before, now) in scores.items()
    )
    info = f"{len(jobs)} move{'s' * (len(jobs) != 1)}" + (
        f", score of {scores_in_words}" if scores_in_words else ": no move is worth it"
    )
    return Answer(info, Moves(tuple(moved), (), tuple(jobs)), after=after)


def _groups(cluster: Snapshot, request: BalanceCluster) -> list[int]:
    if request.group_name is None:
        return sorted({node.group for node in cluster.nodes})
    if found := groups_named(request.group_name, cluster.groups):
        return found[:1]
    raise Refused(f"There is no group {request.group_name}")


def _best_first(model: ClusterModel, groups: list[int], options: Options) -> Iterator[Step]:
    """Merge the groups' moves, which keep their order within each group."""
    limits = Limits(ignore_soft_errors=options.ignore_soft_errors)
    ways = (
        _steps(Balance(model, np.array(members), limits))
        for group in groups
        if (members := model.groups.get(group))
    )
    return merge(*ways, key=lambda step: step[1].score - step[0])


def _steps(balancing: Balance) -> Iterator[Step]:
    before = balancing.score().value
    for move in balancing.moves():
        yield before, move
        before = move.score


def opcodes_of(move: Move, cluster: Snapshot) -> list[Opcode]:
    """What the job queue is given for one move; what does not run is not migrated."""
    instance, target = cluster.instances[move.instance], cluster.nodes[move.target].name
    is_live = instance.status in IS_RUNNING and not instance.forthcoming
    found = {
        StepKind.SWITCH: opcodes.migrate(instance.name, is_live=is_live),
        StepKind.SWITCH_TO: opcodes.migrate(instance.name, target, is_live=is_live),
        StepKind.REPLACE: opcodes.replace_secondary(instance.name, target),
    }
    return [found[step] for step in move.kind.steps]
