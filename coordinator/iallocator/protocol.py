"""From the text of a request to the text of an answer."""

from typing import assert_never

from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.snapshot import Snapshot
from coordinator.iallocator.answers import Answer, Options
from coordinator.iallocator.requests import (
    AllocateMany,
    AllocateOne,
    AllocateSecondary,
    BalanceCluster,
    Capacity,
    ChangeGroup,
    Evacuate,
    RelocateOne,
    Request,
)


def solve(cluster: Snapshot, request: Request, options: Options) -> Answer:
    """Decide.

    Raises:
        Refused: it cannot be done; a valid answer all the same.
        InvalidRequest: it makes no sense.
    """
    model = ClusterModel(cluster)
    # Imported when needed: the time to start is most of the time for a small cluster.
    if isinstance(request, AllocateOne | AllocateMany):
        from coordinator.iallocator import allocation

        if isinstance(request, AllocateOne):
            return allocation.allocate(cluster, model, request, options)
        return allocation.allocate_many(cluster, model, request, options)
    if isinstance(request, AllocateSecondary):
        from coordinator.iallocator.secondary import allocate_secondary

        return allocate_secondary(cluster, model, request, options)
    if isinstance(request, Capacity):
        from coordinator.iallocator.capacity import capacity

        return capacity(cluster, model, request, options)
    if isinstance(request, BalanceCluster):
        from coordinator.iallocator.balancing import balance

        return balance(model, request, options)
    from coordinator.iallocator import evacuation

    match request:
        case RelocateOne():
            return evacuation.relocate(cluster, model, request, options)
        case Evacuate():
            return evacuation.evacuate(cluster, model, request, options)
        case ChangeGroup():
            return evacuation.change_group(cluster, model, request, options)
        case _:
            assert_never(request)
