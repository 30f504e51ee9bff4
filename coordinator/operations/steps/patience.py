"""Having patience with a node that does not answer: mostly its noded is back in a moment."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from common.errors import Unreachable
from common.model.node import NodeRef
from coordinator.operations.cluster_view import Cluster

PATIENCE_S, PAUSE_S = 60.0, 2.0
IN_PASSING_S = 10.0  # with a node of which nothing is needed any more

T = TypeVar("T")


async def in_passing(
    cluster: Cluster, node: NodeRef, ask: Callable[[], Awaitable[object]], *, left: str
) -> None:
    """Ask a node for what it may leave undone: if it cannot be reached, say what is ``left``."""
    try:
        await patiently(cluster, ask, patience_s=IN_PASSING_S, heed_cancel=False)
    except Unreachable as error:
        cluster.log(f"{left} is left on {node}, which cannot be reached: {error}")


async def patiently(
    cluster: Cluster,
    ask: Callable[[], Awaitable[T]],
    *,
    patience_s: float = PATIENCE_S,
    heed_cancel: bool = True,
) -> T:
    """Ask again while a node cannot be reached, for a minute if not told otherwise.

    Raises:
        Unreachable: it cannot be reached all that time.
    """
    limit = cluster.steady() + patience_s
    while True:
        try:
            return await ask()
        except Unreachable as error:
            if error.detail.get("offline") or cluster.steady() >= limit:
                raise
        await cluster.sleep(PAUSE_S, heed_cancel=heed_cancel)
