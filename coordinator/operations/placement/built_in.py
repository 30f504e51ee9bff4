"""The built-in allocator, asked for the nodes of a new instance."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from common.errors import NoCapacity
from common.names import NodeName
from coordinator.allocator.allocation.why_not import Miss
from coordinator.allocator.request import Allocate
from coordinator.operations.placement.apart import Unfit
from coordinator.operations.placement.demands import demand_of
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.operations.placement.space import Shortage, nodes_but, shortages

if TYPE_CHECKING:
    from coordinator.allocator.model.cluster_model import ClusterModel
    from coordinator.allocator.request import Survey


def place_here(look: Look, planned: PlannedInstance, *, only: Sequence[NodeName] = ()) -> "Survey":
    """Have the built-in allocator choose nodes, or look whether ``only`` these will do.

    Raises:
        NoCapacity: no node can take it; says why.
    """
    from coordinator.allocator.model.cluster_model import model_of

    model = model_of(look.snapshot)
    found = place_by(model, look, planned, only=only)
    possible = [choice.nodes for choice in found.choices]
    if only and tuple(only) not in possible:  # but the other way round
        raise NoCapacity(
            f"{planned.instance.name} can no longer be on {only[0]} with {only[1]} as its "
            "secondary node."
        )
    return found


def place_by(
    model: "ClusterModel",
    look: Look,
    planned: PlannedInstance,
    *,
    only: Sequence[NodeName] = (),
) -> "Survey":
    """The same by a model that may have gone on since the look.

    Raises:
        NoCapacity: as ``place_here``.
    """
    from coordinator.allocator.allocation.place import place

    lacking = shortages(look, planned)
    request = request_for(look, planned, only or nodes_but(look, lacking))
    return place(model, request, {} if only else misses(lacking))


def misses(lacking: Mapping[NodeName, Shortage | Unfit]) -> dict[NodeName, Miss]:
    """Return shortages as the allocator tells of them."""
    return {
        name: Miss(0, 1, f"which {one}", is_unfit=True)
        if isinstance(one, Unfit)
        else Miss(max(0, one.free or 0), one.needed, f"{one.unit} left in {one.pool}")
        for name, one in lacking.items()
    }


def request_for(
    look: Look, planned: PlannedInstance, among: Sequence[NodeName] | frozenset[NodeName] | None
) -> Allocate:
    """Return the question; ``among`` are the only nodes to look at, None for all."""
    from coordinator.iallocator.allocation import is_dedicated

    config = look.config
    wanted = None if planned.group is None else config.groups[planned.group]
    group = None if wanted is None else config.sorted_groups().index(wanted)
    return Allocate(
        instance=demand_of(config, planned, look.pool),
        among=None if among is None else frozenset(among),
        group=group,
        # That every node could be emptied onto others is asked only where there are others.
        check_redundancy=look.has_several_usable,
        # As with Ganeti: where all storage is exclusive, room for large instances is kept.
        by_loss=is_dedicated(look.snapshot, wanted.name if wanted else None),
    )
