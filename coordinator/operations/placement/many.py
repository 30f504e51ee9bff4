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
from coordinator.operations.placement.promises import Newcomer, Promise


class Wish(NamedTuple):
    """A new instance with its nics; its node is left open."""

    newcomer: Newcomer
    nics: tuple[Nic, ...]


async def place_many(
    cluster: Cluster, allocators: Sequence[str], wishes: Sequence[Wish]
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
            chosen = _place_here(cluster, look, wishes)
        else:
            async with cluster.placing.turn:
                look = await look_and_tell(cluster)
                response = await run(cluster, name, program, look, _ask(look, wishes))
                chosen = _read(name, look, response.result, wishes)
        promises = (_promise(look, wish.newcomer, chosen) for wish in wishes)
        cluster.promise(*(promise for promise in promises if promise))
        for instance, node in chosen.items():
            cluster.log(f"Selected nodes for instance {instance} via iallocator {name}: {node}")
        return chosen

    return await first_success(allocators, attempt, cluster.log)


def _place_here(cluster: Cluster, look: Look, wishes: Sequence[Wish]) -> dict[str, str]:
    """Place one after the other, by one snapshot and books that go on."""
    from coordinator.allocator.books.ledger import ledger_of
    from coordinator.allocator.books.succession import with_instance

    chosen: dict[str, str] = {}
    snapshot = look.snapshot
    ledger = ledger_of(snapshot)
    for newcomer, _ in wishes:
        request = request_for(look, newcomer)
        try:
            (node,) = place_by(ledger, request).nodes
        except NoCapacity as error:
            cluster.log(error.message)
            continue
        ledger = with_instance(ledger, request.instance, (snapshot.node_index[node],))
        chosen[newcomer.instance.name] = node
        promise = promise_of(look.config, newcomer, look.config.node(node))
        look = dataclasses.replace(look, promised=(*look.promised, promise))
    return chosen


def _ask(look: Look, wishes: Sequence[Wish]) -> dict[str, object]:
    from coordinator.iallocator.document import ask_for_place, ask_for_places
    from coordinator.operations.placement.message import full_nics

    requests = [request_for(look, wish.newcomer) for wish in wishes]
    return ask_for_places(
        ask_for_place(
            newcomer.instance, request.instance, newcomer.disks, full_nics(look.config, nics),
            among=request.among,
        )
        for (newcomer, nics), request in zip(wishes, requests, strict=True)
    )  # fmt: skip


def _read(name: str, look: Look, result: object, wishes: Sequence[Wish]) -> dict[str, str]:
    from coordinator.iallocator.response import read_seats

    asked = {wish.newcomer.instance.name for wish in wishes}
    try:
        placed = read_seats(result).placed
        return {instance: _only(look, asked, instance, nodes) for instance, nodes in placed}
    except InvalidRequest as error:
        raise nonsense(name, error) from error


def _only(look: Look, asked: set[InstanceName], instance: str, nodes: tuple[str, ...]) -> str:
    if instance not in asked or len(nodes) != 1:
        raise InvalidRequest(f"it puts {instance} on {len(nodes)} nodes")
    check_usable(look.config, nodes[0])
    return nodes[0]


def _promise(look: Look, newcomer: Newcomer, chosen: dict[str, str]) -> Promise | None:
    node = chosen.get(newcomer.instance.name)
    return promise_of(look.config, newcomer, look.config.node(node)) if node else None
