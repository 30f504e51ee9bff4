"""Have an allocator choose nodes for one instance."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from common.errors import Conflict
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.node import Node, NodeRef
from common.names import NodeName
from coordinator.allocator.request import Relocate, Survey
from coordinator.iallocator.response import Response, read_nodes
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.allocators import AllocatorFailed
from coordinator.operations.placement.apart import Unfit
from coordinator.operations.placement.asking import Question, ask, check_usable
from coordinator.operations.placement.built_in import misses, place_here, request_for
from coordinator.operations.placement.fit import promise_of
from coordinator.operations.placement.growth import promise_of_secondary
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.message import ask_for_move, ask_to_place
from coordinator.operations.placement.promises import PlannedInstance, Promise, naming
from coordinator.operations.placement.space import Shortage, nodes_but, shortages
from coordinator.operations.specs import backend

if TYPE_CHECKING:
    from coordinator.allocator.allocation.explain import Part

MOST_PARTS = 3  # of the score, in the log


class Chosen(NamedTuple):
    """Which allocator chose, and the nodes it was asked for, the primary one first."""

    allocator: str
    nodes: tuple[NodeRef, ...]


_Answer = tuple[Sequence[str], Iterable[str]]  # nodes, and what the curious are told of the choice


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

    def here(look: Look) -> _Answer:
        from coordinator.allocator.allocation.explain import parts_of
        from coordinator.allocator.model.cluster_model import model_of

        found, request = place_here(look, planned), request_for(look, planned, None)
        model = model_of(look.snapshot)
        parts = () if request.by_loss else parts_of(model, request, found.nodes)
        return found.nodes, _details(found, parts, shortages(look, planned))

    def promise(look: Look, nodes: Sequence[Node]) -> Promise:
        for node in nodes:
            if planned.group not in (None, node.group):
                raise AllocatorFailed(f"{node.name} was chosen, and is not in the group asked for.")
        return promise_of(look.config, planned, nodes)

    cluster.promise(naming(planned))
    template = planned.instance.disk_template
    return await _choose(
        cluster, allocators, planned.instance, planned.disks, here,
        lambda look: ask_to_place(look, planned), promise,
        count=template.traits.nodes,
    )  # fmt: skip


async def place_elsewhere(
    cluster: Cluster, allocators: Sequence[str], instance: Instance
) -> Chosen:
    """Choose another node for an instance.

    That is where one on shared storage runs, or the secondary node of a mirrored one, in the group
    of its primary one.

    Raises:
        NoCapacity: no other node can take it.
        Conflict: it is mirrored, and not on two nodes.
        AllocatorFailed, NotFound: as ``place_new``.
    """
    config, disks = cluster.config, cluster.config.disks_of(instance)
    is_mirrored = instance.disk_template.traits.is_mirrored
    primary, *others = config.nodes_of(instance)
    if is_mirrored and len(others) != 1:
        raise Conflict(
            f"Instance {instance.name} has {len(others)} secondary nodes; only one of one can be "
            "replaced.",
            instance=instance.name,
        )
    leaving = config.nodes[others[0] if is_mirrored else primary]

    def here(look: Look) -> _Answer:
        from coordinator.allocator.relocation.relocate import relocate

        planned = PlannedInstance(instance, disks)
        lacking = shortages(look, planned) if is_mirrored else {}
        wanted = Relocate(instance.name, nodes_but(look, lacking))
        found = relocate(look.snapshot, wanted, misses(lacking))
        return found.nodes, _details(found, lacking=lacking)

    def promise(look: Look, nodes: Sequence[Node]) -> Promise:
        if is_mirrored:
            return promise_of_secondary(instance, disks, nodes[0])
        return Promise(instance.uuid, nodes[0].uuid, backend(look.config, instance).maxmem)

    request = ask_for_move(instance, disks, leaving.name)
    return await _choose(cluster, allocators, instance, disks, here, lambda _: request, promise)


async def _choose(
    cluster: Cluster,
    allocators: Sequence[str],
    instance: Instance,
    disks: Sequence[Disk],
    here: Callable[[Look], _Answer],
    request: Callable[[Look], dict[str, Any]],
    promise: Callable[[Look, Sequence[Node]], Promise],
    *,
    count: int = 1,
) -> Chosen:
    """Have ``count`` nodes chosen; ``promise`` is what the instance takes of them."""
    # One that has no name yet goes by its UUID, and gets that under the locks.
    who = instance.name if str(instance.name) != instance.uuid else "without a name"

    def read(look: Look, response: Response) -> _Answer:
        names = read_nodes(response, count)
        check_usable(look.config, names)
        return names, ()

    question = Question[_Answer](
        disks=disks,
        here=here,
        request=request,
        read=read,
        promises=lambda look, found: [promise(look, [look.config.node(n) for n in found[0]])],
        places=lambda found: [(who, ", ".join(found[0]))],
    )
    name, (nodes, details) = await ask(cluster, allocators, question)
    for line in details:
        cluster.log(line, detail=True)
    return Chosen(name, tuple(cluster.config.node(node).ref for node in nodes))


def _details(
    found: Survey,
    parts: "Sequence[Part]" = (),
    lacking: Mapping[NodeName, Shortage | Unfit] = MappingProxyType({}),
) -> Iterator[str]:
    """Explain a choice; ``parts`` of the score are the largest first, if they are known."""
    if math.isnan(found.score_before):
        yield f"least room for large instances is lost, {found.considered} looked at"
    else:
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
