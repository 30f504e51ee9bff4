"""From a request to its answer."""

from __future__ import annotations

from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.iallocator import show
from coordinator.iallocator.answers import Answer, Refused
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
    from coordinator.iallocator.answers import Options
    from coordinator.iallocator.requests import Request


def answered(cluster: Snapshot, request: Request, options: Options) -> tuple[Answer, str]:
    """Decide, and write the line that goes to standard output; a refusal is an answer, too.

    Raises:
        InvalidRequest: the request makes no sense.
    """
    try:
        found = solve(cluster, request, options)
    except Refused as error:
        line = show.answer(success=False, info=str(error), result=[])
        return Answer("", [], refused=error.refused), line
    return found, show.answer(success=True, info=found.info, result=found.result)


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

            return allocate(model, request, options)
        case AllocateMany():
            from coordinator.iallocator.allocation import allocate_many

            return allocate_many(model, request, options)
        case RelocateOne():
            from coordinator.iallocator.evacuation import relocate

            return relocate(model, request, options)
        case Evacuate():
            from coordinator.iallocator.evacuation import evacuate

            return evacuate(model, request, options)
        case ChangeGroup():
            from coordinator.iallocator.evacuation import change_group

            return change_group(model, request, options)
        case AllocateSecondary():
            from coordinator.iallocator.secondary import allocate_secondary

            return allocate_secondary(model, request, options)
        case Capacity():
            from coordinator.iallocator.capacity import capacity

            return capacity(model, request, options)
        case BalanceCluster():
            from coordinator.iallocator.balancing import balance

            return balance(model, request, options)
