"""Have nodes chosen for many new instances in one go, each on what the others leave."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from common.errors import InvalidRequest, NoCapacity
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.allocators import find_program, first_success
from coordinator.operations.placement.built_in import place_by
from coordinator.operations.placement.choose import look_about, naming
from coordinator.operations.placement.demands import demand_of
from coordinator.operations.placement.external import check_usable, nonsense, run
from coordinator.operations.placement.fit import promise_of
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import PlannedInstance, Promise

if TYPE_CHECKING:
    from coordinator.iallocator.response import Response


Nodes = tuple[str, ...]  # names, the primary one first


async def place_many(
    cluster: Cluster, allocators: Sequence[str], wanted: Sequence[PlannedInstance]
) -> dict[str, Nodes]:
    """Return the nodes of each instance by its name; those that fit nowhere are left out.

    All others are promised their places.

    Raises:
        NoCapacity: nothing fits at all.
        AllocatorFailed, NotFound: a program did not do its work, or is not there.
    """
    disks = [disk for one in wanted for disk in one.disks]
    cluster.promise(*(naming(one) for one in wanted))

    async def attempt(name: str) -> dict[str, Nodes]:
        program = find_program(name, cluster.placing.search_path)
        if program is None:
            look = await look_about(cluster, disks)
            chosen = _place_here(cluster, look, wanted)
        else:
            async with cluster.placing.turn:
                look = await look_about(cluster, disks)
                response = await run(cluster, name, program, look, _ask(look, wanted))
                chosen = _read(name, look, response, wanted)
        promises = (_promise(look, one, chosen) for one in wanted)
        cluster.promise(*(promise for promise in promises if promise))
        for instance, nodes in chosen.items():
            where = ", ".join(nodes)
            cluster.log(f"Selected nodes for instance {instance} via iallocator {name}: {where}")
        return chosen

    return await first_success(allocators, attempt, cluster.log)


def _place_here(
    cluster: Cluster, look: Look, wanted: Sequence[PlannedInstance]
) -> dict[str, Nodes]:
    """Place one after the other, by one snapshot and resources that go on."""
    from coordinator.allocator.model.cluster_model import model_of
    from coordinator.allocator.model.next_model import with_instance

    chosen: dict[str, Nodes] = {}
    snapshot = look.snapshot
    model = model_of(snapshot)
    for planned in wanted:
        try:
            nodes = place_by(model, look, planned).nodes
        except NoCapacity as error:
            cluster.log(error.message)
            continue
        indices = tuple(model.index[node] for node in nodes)
        demand = demand_of(look.config, planned, look.pool)
        model = with_instance(model, demand, indices)
        chosen[planned.instance.name] = nodes
        promise = promise_of(look.config, planned, [look.config.node(node) for node in nodes])
        look = look.with_promise(promise)
    return chosen


def _ask(look: Look, wanted: Sequence[PlannedInstance]) -> dict[str, object]:
    from coordinator.iallocator.document import ask_for_places
    from coordinator.operations.placement.message import ask_to_place

    return ask_for_places(ask_to_place(look, planned) for planned in wanted)


def _read(
    name: str, look: Look, response: "Response", wanted: Sequence[PlannedInstance]
) -> dict[str, Nodes]:
    from coordinator.iallocator.response import check_number, read_allocations

    count: dict[str, int] = {
        one.instance.name: one.instance.disk_template.traits.nodes for one in wanted
    }
    try:
        placed = dict(read_allocations(response).placed)
        for instance, nodes in placed.items():
            check_number(nodes, count.get(instance, 0))
            for node in nodes:
                check_usable(look.config, node)
    except InvalidRequest as error:
        raise nonsense(name, error) from error
    return placed


def _promise(look: Look, planned: PlannedInstance, chosen: Mapping[str, Nodes]) -> Promise | None:
    nodes = chosen.get(planned.instance.name)
    if nodes is None:
        return None
    return promise_of(look.config, planned, [look.config.node(node) for node in nodes])
