"""From a request to its answer."""

from __future__ import annotations

from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.iallocator.requests import (
    AllocateMany,
    AllocateOne,
    AllocateSecondary,
    BalanceCluster,
    Capacity,
    ChangeGroup,
    Evacuate,
    RelocateOne,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from coordinator.allocator.snapshot import Snapshot
    from coordinator.iallocator.answers import Answer, Options
    from coordinator.iallocator.requests import Request


def solve(cluster: Snapshot, request: Request, options: Options) -> Answer:
    """Decide.

    Raises:
        Refused: it cannot be done; a valid answer all the same.
        InvalidRequest: it makes no sense.
    """
    model = ClusterModel(cluster)
    # Imported when needed: the time to start is most of the time for a small cluster.
    match request:
        case AllocateOne():
            from coordinator.iallocator.allocation import allocate

            return allocate(cluster, model, request, options)
        case AllocateMany():
            from coordinator.iallocator.allocation import allocate_many

            return allocate_many(cluster, model, request, options)
        case RelocateOne():
            from coordinator.iallocator.evacuation import relocate

            return relocate(cluster, model, request, options)
        case Evacuate():
            from coordinator.iallocator.evacuation import evacuate

            return evacuate(cluster, model, request, options)
        case ChangeGroup():
            from coordinator.iallocator.evacuation import change_group

            return change_group(cluster, model, request, options)
        case AllocateSecondary():
            from coordinator.iallocator.secondary import allocate_secondary

            return allocate_secondary(cluster, model, request, options)
        case Capacity():
            from coordinator.iallocator.capacity import capacity

            return capacity(cluster, model, request, options)
        case BalanceCluster():
            from coordinator.iallocator.balancing import balance

            return balance(model, request, options)
