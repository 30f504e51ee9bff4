"""Have a node chosen and promise what it gives, and tell the job's log.

Looking takes time; choosing and promising are one thing, with nothing in between. What was
chosen is checked once more under the job's locks, on a new report of the node.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from common.errors import GntError, NoCapacity
from common.model.instance import Instance
from common.model.nic import Nic
from common.model.node import Node
from common.names import InstanceName
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.allocators import find_program, first_success
from coordinator.operations.placement.external import ask_program, failed
from coordinator.operations.placement.fit import place_here, promise_of, request_for
from coordinator.operations.placement.look import MAX_AGE_S, Look, look_for
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.specs import backend

if TYPE_CHECKING:
    from coordinator.allocator.allocation.explain import Part
    from coordinator.allocator.request import Placement

MOST_PARTS = 3  # of the score, in the log


class _Chosen(NamedTuple):
    """``parts`` of the score, the largest first; none where it was not asked for."""

    placement: "Placement"
    parts: "tuple[Part, ...]" = ()


Choose = Callable[[Look], _Chosen]


async def place_new(
    cluster: Cluster, allocators: Sequence[str], planned: PlannedInstance, nics: Sequence[Nic]
) -> tuple[str, str]:
    """Have a new instance promised a place; return which allocator chose, and the node's name.

    Args:
        cluster: as the job sees it.
        allocators: to be asked, in order, until one succeeds.
        planned: the instance; its node is not looked at.
        nics: of the instance.

    Raises:
        NoCapacity: no node can take it; says how many were refused for what.
        AllocatorFailed: a program did not do its work.
        NotFound: there is no such allocator.
    """

    def choose(look: Look) -> _Chosen:
        from coordinator.allocator.allocation.explain import parts_of
        from coordinator.allocator.model.cluster_model import model_of

        placement, request = place_here(look, planned), request_for(look, planned)
        return _Chosen(placement, parts_of(model_of(look.snapshot), request, placement.nodes))

    def ask(look: Look) -> dict[str, Any]:
        from coordinator.iallocator.document import ask_for_place
        from coordinator.operations.placement.message import full_nics

        request, wanted = request_for(look, planned), full_nics(look.config, nics)
        return ask_for_place(
            planned.instance, request.instance, planned.disks, wanted, among=request.among
        )

    def promise(look: Look, node: Node) -> None:
        cluster.promise(promise_of(look.config, planned, node))

    return await _choose(cluster, allocators, planned.instance, choose, ask, promise)


async def place_elsewhere(
    cluster: Cluster, allocators: Sequence[str], instance: Instance
) -> tuple[str, str]:
    """Choose another node for an instance on shared storage; return as ``place_new`` does.

    Raises:
        NoCapacity: no other node can take it.
        AllocatorFailed, NotFound: as ``place_new``.
    """

    def choose(look: Look) -> _Chosen:
        from coordinator.allocator.relocation.relocate import relocate
        from coordinator.allocator.request import Relocate

        return _Chosen(relocate(look.snapshot, Relocate(instance=InstanceName(instance.name))))

    def ask(look: Look) -> dict[str, Any]:
        from coordinator.iallocator.document import ask_for_move

        home = look.config.nodes[instance.primary_node].name
        return ask_for_move(instance, look.config.disks_of(instance), home)

    def promise(look: Look, node: Node) -> None:
        memory = backend(look.config, instance).maxmem
        cluster.promise(Promise(instance.uuid, node.uuid, memory))

    return await _choose(cluster, allocators, instance, choose, ask, promise)


async def _choose(
    cluster: Cluster,
    allocators: Sequence[str],
    instance: Instance,
    choose: Choose,
    ask: Callable[[Look], dict[str, Any]],
    promise: Callable[[Look, Node], None],
) -> tuple[str, str]:
    async def attempt(name: str) -> tuple[str, str]:
        program = find_program(name, cluster.placing.search_path)
        if program is None:
            return name, await _choose_here(cluster, name, instance, choose, promise)
        async with cluster.placing.turn:
            look = await look_and_tell(cluster)
            (chosen,) = await ask_program(cluster, name, program, look, ask(look))
            promise(look, look.config.node(chosen))
        cluster.log(f"Selected nodes for instance {instance.name} via iallocator {name}: {chosen}")
        return name, chosen

    return await first_success(allocators, attempt, cluster.log)


async def _choose_here(
    cluster: Cluster,
    name: str,
    instance: Instance,
    choose: Choose,
    promise: Callable[[Look, Node], None],
) -> str:
    look = await look_and_tell(cluster)
    try:
        chosen = choose(look)
    except NoCapacity:  # the reports may be a second old; nobody is refused for that
        look = await look_and_tell(cluster, max_age_s=0.0)
        try:
            chosen = choose(look)
        except NoCapacity as error:
            raise failed(name, error.message, **error.detail) from error
    (node,) = chosen.placement.nodes
    promise(look, look.config.node(node))
    _tell(cluster, name, instance, chosen)
    return node


async def look_and_tell(cluster: Cluster, max_age_s: float = MAX_AGE_S) -> Look:
    """Look at the cluster for a job, and say in its log which nodes do not answer."""
    look = await look_for(cluster, max_age_s=max_age_s)
    for uuid, facts in look.live.items():
        if isinstance(facts, GntError) and uuid in look.config.nodes:
            cluster.log(f"{look.config.nodes[uuid].name} is left out: {facts}")
    return look


def _tell(cluster: Cluster, allocator: str, instance: Instance, chosen: _Chosen) -> None:
    """Explain the choice in the job's log."""
    placement, parts = chosen
    cluster.log(
        f"Selected nodes for instance {instance.name} via iallocator {allocator}: "
        f"{', '.join(placement.nodes)}"
    )
    cluster.log(
        f"cluster score {placement.score_before:.6f} -> {placement.score_after:.6f}, "
        f"{placement.considered} looked at",
        detail=True,
    )
    if parts:
        cluster.log(f"the largest parts of it: {_in_words(parts[:MOST_PARTS])}", detail=True)
    if placement.runners_up:
        others = ", ".join(
            f"{'+'.join(choice.nodes)} ({choice.score:.6f})" for choice in placement.runners_up
        )
        cluster.log(f"next best: {others}", detail=True)
    for node, reason in placement.refused.items():
        cluster.log(f"{node} {reason.in_words(1)}", detail=True)


def _in_words(parts: "tuple[Part, ...]") -> str:
    from coordinator.allocator.allocation.explain import IN_WORDS

    return "; ".join(
        f"{IN_WORDS[part.term]} {part.before:.6f} -> {part.after:.6f}" for part in parts
    )
