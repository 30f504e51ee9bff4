"""Have nodes chosen for many new instances in one go, each on what the others leave."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from common.errors import InvalidRequest, NoCapacity
from common.model.nic import Nic
from common.names import InstanceName
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.allocators import find_program, first_success
from coordinator.operations.placement.choose import look_and_tell
from coordinator.operations.placement.external import check_usable, nonsense, run
from coordinator.operations.placement.fit import place_by, promise_of, request_for
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import PlannedInstance, Promise


class PlacementRequest(NamedTuple):
    """A new instance with its nics; its node is left open."""

    planned: PlannedInstance
    nics: tuple[Nic, ...]


async def place_many(
    cluster: Cluster, allocators: Sequence[str], wanted: Sequence[PlacementRequest]
) -> dict[str, str]:
    """Return the node of each instance by its name; those that fit nowhere are left out.

    All others are promised their places.

    Raises:
        NoCapacity: nothing fits at all.
        AllocatorFailed, NotFound: a program did not do its work, or is not there.
    """

    async def attempt(name: str) -> dict[str, str]:
        program = find_program(name, cluster.placing.search_path)
        if program is None:
            look = await look_and_tell(cluster)
            chosen = _place_here(cluster, look, wanted)
        else:
            async with cluster.placing.turn:
                look = await look_and_tell(cluster)
                response = await run(cluster, name, program, look, _ask(look, wanted))
                chosen = _read(name, look, response.result, wanted)
        promises = (_promise(look, one.planned, chosen) for one in wanted)
        cluster.promise(*(promise for promise in promises if promise))
        for instance, node in chosen.items():
            cluster.log(f"Selected nodes for instance {instance} via iallocator {name}: {node}")
        return chosen

    return await first_success(allocators, attempt, cluster.log)


def _place_here(cluster: Cluster, look: Look, wanted: Sequence[PlacementRequest]) -> dict[str, str]:
    """Place one after the other, by one snapshot and resources that go on."""
    from coordinator.allocator.model.cluster_model import model_of
    from coordinator.allocator.model.next_model import with_instance

    chosen: dict[str, str] = {}
    snapshot = look.snapshot
    model = model_of(snapshot)
    for planned, _ in wanted:
        request = request_for(look, planned)
        try:
            (node,) = place_by(model, request).nodes
        except NoCapacity as error:
            cluster.log(error.message)
            continue
        model = with_instance(model, request.instance, (snapshot.node_index[node],))
        chosen[planned.instance.name] = node
        promise = promise_of(look.config, planned, look.config.node(node))
        look = dataclasses.replace(look, promised=(*look.promised, promise))
    return chosen


def _ask(look: Look, wanted: Sequence[PlacementRequest]) -> dict[str, object]:
    from coordinator.iallocator.document import ask_for_place, ask_for_places
    from coordinator.operations.placement.message import full_nics

    requests = [request_for(look, one.planned) for one in wanted]
    return ask_for_places(
        ask_for_place(
            planned.instance,
            request.instance,
            planned.disks,
            full_nics(look.config, nics),
            among=request.among,
        )
        for (planned, nics), request in zip(wanted, requests, strict=True)
    )


def _read(
    name: str, look: Look, result: object, wanted: Sequence[PlacementRequest]
) -> dict[str, str]:
    from coordinator.iallocator.response import read_allocations

    asked = {one.planned.instance.name for one in wanted}
    try:
        placed = read_allocations(result).placed
        return {instance: _only(look, asked, instance, nodes) for instance, nodes in placed}
    except InvalidRequest as error:
        raise nonsense(name, error) from error


def _only(look: Look, asked: set[InstanceName], instance: str, nodes: tuple[str, ...]) -> str:
    if instance not in asked or len(nodes) != 1:
        raise InvalidRequest(f"it puts {instance} on {len(nodes)} nodes")
    check_usable(look.config, nodes[0])
    return nodes[0]


def _promise(look: Look, planned: PlannedInstance, chosen: dict[str, str]) -> Promise | None:
    node = chosen.get(planned.instance.name)
    return promise_of(look.config, planned, look.config.node(node)) if node else None
