"""Have nodes chosen for many new instances in one go, each on what the others leave."""

from collections.abc import Iterator, Mapping, Sequence

from common.errors import NoCapacity
from coordinator.iallocator.response import Response, check_number, read_allocations
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.placement.asking import Question, ask, check_usable
from coordinator.operations.placement.built_in import place_by
from coordinator.operations.placement.demands import demand_of
from coordinator.operations.placement.fit import promise_of
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.message import ask_for_places, ask_to_place
from coordinator.operations.placement.promises import PlannedInstance, Promise, naming

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
    cluster.promise(*map(naming, wanted))
    question = Question[dict[str, Nodes]](
        disks=[disk for one in wanted for disk in one.disks],
        here=lambda look: _place_here(cluster, look, wanted),
        request=lambda look: ask_for_places(ask_to_place(look, planned) for planned in wanted),
        read=lambda look, response: _read(look, response, wanted),
        promises=lambda look, chosen: _promises(look, wanted, chosen),
        places=lambda chosen: [(name, ", ".join(nodes)) for name, nodes in chosen.items()],
    )
    _, chosen = await ask(cluster, allocators, question)
    return chosen


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


def _read(look: Look, response: Response, wanted: Sequence[PlannedInstance]) -> dict[str, Nodes]:
    count: dict[str, int] = {
        one.instance.name: one.instance.disk_template.traits.nodes for one in wanted
    }
    placed = read_allocations(response)
    for instance, nodes in placed.items():
        check_number(nodes, count.get(instance, 0))
        check_usable(look.config, nodes)
    return placed


def _promises(
    look: Look, wanted: Sequence[PlannedInstance], chosen: Mapping[str, Nodes]
) -> Iterator[Promise]:
    for one in wanted:
        if nodes := chosen.get(one.instance.name):
            yield promise_of(look.config, one, [look.config.node(node) for node in nodes])
