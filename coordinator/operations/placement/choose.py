"""Have nodes chosen and promise what they give, and tell the job's log.

Looking takes time; choosing and promising are one thing, with nothing in between. What was
chosen is checked once more under the job's locks, on new reports of the nodes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from common.errors import Conflict, GntError, NoCapacity
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.names import InstanceName, NodeId, NodeName
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.allocators import (
    AllocatorFailed,
    find_program,
    first_success,
)
from coordinator.operations.placement.built_in import place_here, request_for
from coordinator.operations.placement.external import ask_program, failed
from coordinator.operations.placement.fit import promise_of
from coordinator.operations.placement.look import MAX_AGE_S, Look, look_for
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.placement.secondary import choose_secondary, promise_of_secondary
from coordinator.operations.placement.space import Shortage, shortages
from coordinator.operations.specs import backend

if TYPE_CHECKING:
    from coordinator.allocator.allocation.explain import Part
    from coordinator.allocator.request import Survey

MOST_PARTS = 3  # of the score, in the log


class Chosen(NamedTuple):
    """Which allocator chose, and the nodes it was asked for, the primary one first."""

    allocator: str
    nodes: tuple[NodeRef, ...]


class _Found(NamedTuple):
    """What the built-in allocator found: nodes, and what the curious are told of the choice."""

    nodes: tuple[NodeName, ...]
    details: tuple[str, ...] = ()


class _Question(NamedTuple):
    """One question, as each allocator is asked, and what follows from its answer."""

    instance: Instance
    disks: Sequence[Disk]
    choose: Callable[[Look], _Found]  # of the built-in one
    message: Callable[[Look], dict[str, Any]]  # for a program
    promise: Callable[[Look, Sequence[Node]], Promise]


async def place_new(
    cluster: Cluster, allocators: Sequence[str], planned: PlannedInstance
) -> Chosen:
    """Have a new instance promised a place.

    The nodes of ``planned`` are not looked at. Allocators are asked in order, until one succeeds.

    Raises:
        NoCapacity: no node can take it; says how many were refused for what.
        AllocatorFailed: a program did not do its work.
        NotFound: there is no such allocator.
    """

    def choose(look: Look) -> _Found:
        from coordinator.allocator.allocation.explain import parts_of
        from coordinator.allocator.model.cluster_model import model_of

        found, request = place_here(look, planned), request_for(look, planned, None)
        parts = parts_of(model_of(look.snapshot), request, found.nodes)
        lacking = shortages(look, planned.disks)
        return _Found(found.nodes, tuple(_details(found, parts, lacking)))

    def message(look: Look) -> dict[str, Any]:
        from coordinator.operations.placement.message import ask_to_place

        return ask_to_place(look, planned)

    def promise(look: Look, nodes: Sequence[Node]) -> Promise:
        for node in nodes:
            if planned.group not in (None, node.group):
                raise AllocatorFailed(f"{node.name} was chosen, and is not in the group asked for.")
        return promise_of(look.config, planned, nodes)

    question = _Question(planned.instance, planned.disks, choose, message, promise)
    cluster.promise(naming(planned))
    return await _ask(cluster, allocators, question)


async def place_elsewhere(
    cluster: Cluster, allocators: Sequence[str], instance: Instance
) -> Chosen:
    """Choose another node for an instance on shared storage.

    Raises:
        NoCapacity: no other node can take it.
        AllocatorFailed, NotFound: as ``place_new``.
    """

    def choose(look: Look) -> _Found:
        from coordinator.allocator.relocation.relocate import relocate
        from coordinator.allocator.request import Relocate

        found = relocate(look.snapshot, Relocate(instance=InstanceName(instance.name)))
        return _Found(found.nodes, tuple(_details(found)))

    def message(look: Look) -> dict[str, Any]:
        from coordinator.iallocator.document import ask_for_move

        home = look.config.nodes[instance.primary_node].name
        return ask_for_move(instance, look.config.disks_of(instance), home)

    def promise(look: Look, nodes: Sequence[Node]) -> Promise:
        (node,) = nodes
        return Promise(instance.uuid, node.uuid, backend(look.config, instance).maxmem)

    disks = cluster.config.disks_of(instance)
    return await _ask(cluster, allocators, _Question(instance, disks, choose, message, promise))


async def place_secondary(
    cluster: Cluster, allocators: Sequence[str], instance: Instance
) -> Chosen:
    """Choose another secondary node for a mirrored instance, in the group of its primary one.

    Raises:
        NoCapacity: no other node can take it.
        AllocatorFailed, NotFound: as ``place_new``.
    """
    config = cluster.config
    disks = config.disks_of(instance)
    others = config.nodes_of(instance)[1:]
    if len(others) != 1:
        raise Conflict(
            f"Instance {instance.name} has {len(others)} secondary nodes; only one of one can be "
            "replaced.",
            instance=instance.name,
        )

    def choose(look: Look) -> _Found:
        return _Found(choose_secondary(look, instance, disks))

    def message(look: Look) -> dict[str, Any]:
        from coordinator.iallocator.document import ask_for_move

        return ask_for_move(instance, disks, look.config.nodes[others[0]].name)

    def promise(look: Look, nodes: Sequence[Node]) -> Promise:  # noqa: ARG001
        return promise_of_secondary(instance, disks, nodes[0])

    return await _ask(cluster, allocators, _Question(instance, disks, choose, message, promise))


async def _ask(cluster: Cluster, allocators: Sequence[str], question: _Question) -> Chosen:
    async def attempt(name: str) -> Chosen:
        program = find_program(name, cluster.placing.search_path)
        if program is None:
            return await _ask_built_in(cluster, name, question)
        async with cluster.placing.turn:
            look = await look_about(cluster, question.disks)
            names = await ask_program(cluster, name, program, look, question.message(look))
            chosen = _promised(cluster, name, look, question, names)
        _tell_choice(cluster, question.instance, chosen)
        return chosen

    return await first_success(allocators, attempt, cluster.log)


async def _ask_built_in(cluster: Cluster, name: str, question: _Question) -> Chosen:
    look = await look_about(cluster, question.disks)
    try:
        found = question.choose(look)
    except NoCapacity:  # the reports may be a second old; nobody is refused for that
        look = await look_about(cluster, question.disks, max_age_s=0.0)
        try:
            found = question.choose(look)
        except NoCapacity as error:
            raise failed(name, error.message, **error.detail) from error
    chosen = _promised(cluster, name, look, question, found.nodes)
    _tell_choice(cluster, question.instance, chosen)
    for line in found.details:
        cluster.log(line, detail=True)
    return chosen


def _promised(
    cluster: Cluster, name: str, look: Look, question: _Question, names: Sequence[str]
) -> Chosen:
    nodes = [look.config.node(node) for node in names]
    cluster.promise(question.promise(look, nodes))
    return Chosen(name, tuple(node.ref for node in nodes))


def naming(planned: PlannedInstance) -> Promise:
    """Return what has nodes tell of the pools of new disks, before there is a place to promise."""
    return Promise(planned.instance.uuid, NodeId(""), disks=planned.disks)


async def look_about(cluster: Cluster, disks: Sequence[Disk], max_age_s: float = MAX_AGE_S) -> Look:
    """Look at the cluster and the pools that disks name; see ``look_and_tell``."""
    look = await look_and_tell(cluster, max_age_s)
    if not {pool for disk in disks for pool in disk.backing.pools} <= {*look.pools}:
        look = await look_and_tell(cluster, max_age_s=0.0)  # asked before anybody named them
    return look.about(disks)


async def look_and_tell(cluster: Cluster, max_age_s: float = MAX_AGE_S) -> Look:
    """Look at the cluster for a job, and say in its log which nodes do not answer."""
    look = await look_for(cluster, max_age_s=max_age_s)
    for uuid, facts in look.live.items():
        if isinstance(facts, GntError) and uuid in look.config.nodes:
            cluster.log(f"{look.config.nodes[uuid].name} is left out: {facts}")
    return look


def _tell_choice(cluster: Cluster, instance: Instance, chosen: Chosen) -> None:
    # One that has no name yet goes by its UUID, and gets that under the locks.
    who = instance.name if str(instance.name) != instance.uuid else "without a name"
    cluster.log(
        f"Selected nodes for instance {who} via iallocator {chosen.allocator}: "
        f"{', '.join(map(str, chosen.nodes))}"
    )


def _details(
    found: "Survey",
    parts: "Sequence[Part]" = (),
    lacking: Mapping[NodeName, Shortage] = MappingProxyType({}),
) -> Iterator[str]:
    """Explain a choice; ``parts`` of the score are the largest first, if they are known."""
    yield (
        f"cluster score {found.score_before:.6f} -> {found.choices[0].score:.6f}, "
        f"{found.considered} looked at"
    )
    if parts:
        yield f"the largest parts of it: {_in_words(parts[:MOST_PARTS])}"
    if found.choices[1:]:
        others = ", ".join(
            f"{'+'.join(choice.nodes)} ({choice.score:.6f})" for choice in found.choices[1:]
        )
        yield f"next best: {others}"
    for node, reason in found.refused.items():
        yield f"{node} {lacking.get(node) or reason.in_words(1)}"


def _in_words(parts: "Sequence[Part]") -> str:
    from coordinator.allocator.allocation.explain import IN_WORDS

    return "; ".join(
        f"{IN_WORDS[part.term]} {part.before:.6f} -> {part.after:.6f}" for part in parts
    )
