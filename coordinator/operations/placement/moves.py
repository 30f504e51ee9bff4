"""Have an allocator say how instances get somewhere else: off their node, or to another group."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from common.errors import Conflict, NoCapacity
from common.model.group import Group
from common.model.instance import Instance
from common.names import GroupId, InstanceName, MiB
from coordinator.iallocator.answers import Moves, Options, Refused
from coordinator.iallocator.requests import ChangeGroup, Evacuate, EvacuationMode
from coordinator.iallocator.response import Response, read_moves
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.asking import Question, ask, check_usable
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.message import ask_for_group, ask_to_evacuate
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import backend
from coordinator.state.config import Config

if TYPE_CHECKING:
    from coordinator.allocator.snapshot import Snapshot

Opcode = dict[str, Any]


class OffNodes(NamedTuple):
    """How do instances, given by name, get off their nodes?"""

    instances: tuple[InstanceName, ...]
    mode: EvacuationMode

    def request(self, snapshot: "Snapshot") -> Evacuate:
        """Return the question as the built-in allocator is asked."""
        return Evacuate(_indices(self.instances, snapshot), self.mode)

    def message(self) -> Opcode:
        """Return the question as a program is asked."""
        return ask_to_evacuate(self.instances, self.mode)


class ToGroups(NamedTuple):
    """How do instances, given by name, get to one of these groups, or to any other if none?"""

    instances: tuple[InstanceName, ...]
    groups: tuple[GroupId, ...]

    def request(self, snapshot: "Snapshot") -> ChangeGroup:
        """Return the question as the built-in allocator is asked."""
        uuids = [group.uuid for group in snapshot.groups]
        groups = tuple(uuids.index(uuid) for uuid in self.groups)
        return ChangeGroup(_indices(self.instances, snapshot), groups)

    def message(self) -> Opcode:
        """Return the question as a program is asked."""
        return ask_for_group(self.instances, self.groups)


MoveQuestion = OffNodes | ToGroups


def to_groups(
    config: Config, instances: Sequence[Instance], refs: Sequence[str], home: Group
) -> ToGroups:
    """Return the question how instances of a group get to others.

    Raises:
        NotFound: there is no such group.
        Conflict: there is no other, or it is the one in which they are.
    """
    if len(config.groups) == 1:
        raise Conflict(
            f"There is one group of nodes only, {home.name}; “gnt-group add” makes another."
        )
    groups = tuple(config.group(ref).uuid for ref in refs)
    if home.uuid in groups:
        who = instances[0].name if instances else "What leaves it"
        raise Conflict(f"{who} is in group {home.name} already.")
    return ToGroups(tuple(instance.name for instance in instances), groups)


def _indices(names: Sequence[str], snapshot: "Snapshot") -> tuple[int, ...]:
    known = {one.name: index for index, one in enumerate(snapshot.instances)}
    return tuple(known[name] for name in names if name in known)


async def plan_moves(
    cluster: Cluster,
    allocators: Sequence[str],
    question: MoveQuestion,
    *,
    ignore_soft_errors: bool = False,
) -> Moves:
    """Return what moves, where to, and the jobs for it; the new nodes are promised.

    Allocators are asked in order, until one succeeds; ``ignore_soft_errors`` has the built-in one
    go beyond limits that can be exceeded.

    Raises:
        NoCapacity: not all can be moved; says which cannot, and why.
        AllocatorFailed, NotFound: a program did not do its work, or is not there.
    """
    options = Options(ignore_soft_errors=ignore_soft_errors)
    found = filter(None, map(cluster.config.find_instance, question.instances))
    asked = Question[Moves](
        disks=[disk for each in found for disk in cluster.config.disks_of(each)],
        here=lambda look: _all_moved(solve_here(look, question, options)),
        request=lambda _: question.message(),
        read=lambda look, response: _all_moved(_read(look, response)),
        promises=lambda look, moves: promises_of(look.config, moves),
        places=lambda moves: [
            (instance, f"{', '.join(nodes)} (group {group})")
            for instance, group, nodes in moves.moved
        ],
    )
    _, moves = await ask(cluster, allocators, asked)
    return moves


def solve_here(look: Look, question: MoveQuestion, options: Options) -> Moves:
    """Ask the built-in allocator.

    Raises:
        NoCapacity: it finds nothing at all.
    """
    from coordinator.iallocator.protocol import solve

    try:
        found = solve(look.snapshot, question.request(look.snapshot), options)
    except Refused as error:
        raise NoCapacity(str(error)) from error
    moves: Moves = found.result
    return moves


def _new_nodes(config: Config, instance: str, nodes: Sequence[str]) -> Sequence[str]:
    """Return where an instance would run, and other nodes on which it is not yet."""
    there = config.find_instance(instance)
    present = {config.nodes[uuid].name for uuid in config.nodes_of(there)} if there else set()
    others = [node for node in nodes[1:] if node not in present]
    return [nodes[0] if nodes else "", *others]


def _read(look: Look, response: Response) -> Moves:
    moves = read_moves(response)
    for instance, _, nodes in moves.moved:
        check_usable(look.config, _new_nodes(look.config, instance, nodes))
    return moves


def _all_moved(moves: Moves) -> Moves:
    if moves.failed:
        reasons = "; ".join(f"{instance}: {why}" for instance, why in moves.failed)
        raise NoCapacity(reasons, failed=[instance for instance, _ in moves.failed])
    return moves


def promises_of(config: Config, moves: Moves) -> tuple[Promise, ...]:
    """Return what the moves take of the nodes they lead to."""
    found = ((config.find_instance(name), nodes) for name, _, nodes in moves.moved)
    every = (_promise(config, instance, nodes) for instance, nodes in found if instance)
    return tuple(promise for promise in every if promise)


def _promise(config: Config, instance: Instance, names: Sequence[str]) -> Promise | None:
    nodes = tuple(config.node(name).uuid for name in names)
    comes = nodes[0] != instance.primary_node and instance.takes_memory
    memory = backend(config, instance).maxmem if comes else MiB(0)
    if len(nodes) > 1:
        disks = tuple(replace(disk, nodes=nodes) for disk in config.disks_of(instance))
        planned = PlannedInstance(replace(instance, primary_node=nodes[0]), disks)
        return Promise(instance.uuid, nodes[0], memory, planned)
    return Promise(instance.uuid, nodes[0], memory) if memory else None
