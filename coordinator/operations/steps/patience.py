"""Having patience with a node that does not answer: mostly its noded is back in a moment."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from common.errors import Unreachable
from coordinator.operations.cluster_view import Cluster

PATIENCE_S, PAUSE_S = 60.0, 2.0

T = TypeVar("T")


async def patiently(
    cluster: Cluster, ask: Callable[[], Awaitable[T]], *, heed_cancel: bool = True
) -> T:
    """Ask again while a node cannot be reached, for a minute.

    Raises:
        Unreachable: it cannot be reached all that time.
    """
    limit = cluster.steady() + PATIENCE_S
    while True:
        try:
            return await ask()
        except Unreachable as error:
            if error.detail.get("offline") or cluster.steady() >= limit:
                raise
        await cluster.sleep(PAUSE_S, heed_cancel=heed_cancel)
