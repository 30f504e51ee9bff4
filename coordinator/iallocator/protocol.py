"""From the text of a request to the text of an answer."""

from typing import assert_never

from coordinator.allocator.books.ledger import Ledger
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
    ledger = Ledger(cluster)
    # Imported when needed: the time to start is most of the time for a small cluster.
    if isinstance(request, AllocateOne | AllocateMany):
        from coordinator.iallocator import allocation

        if isinstance(request, AllocateOne):
            return allocation.allocate(cluster, ledger, request, options)
        return allocation.allocate_many(cluster, ledger, request, options)
    if isinstance(request, AllocateSecondary):
        from coordinator.iallocator.secondary import allocate_secondary

        return allocate_secondary(cluster, ledger, request, options)
    if isinstance(request, Capacity):
        from coordinator.iallocator.capacity import capacity

        return capacity(cluster, ledger, request, options)
    if isinstance(request, BalanceCluster):
        from coordinator.iallocator.balancing import balance

        return balance(ledger, request, options)
    from coordinator.iallocator import evacuation

    match request:
        case RelocateOne():
            return evacuation.relocate(cluster, ledger, request, options)
        case Evacuate():
            return evacuation.evacuate(cluster, ledger, request, options)
        case ChangeGroup():
            return evacuation.change_group(cluster, ledger, request, options)
        case _:
            assert_never(request)
