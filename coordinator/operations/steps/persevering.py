"""Going on with what takes long, as long as it gets anywhere."""

from collections.abc import Awaitable, Callable

from common.errors import NotFound, Unreachable
from common.noderpc.copies import BrokenOff
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.steps.patience import PATIENCE_S, PAUSE_S
from coordinator.operations.steps.retelling import Retelling


async def persevere(cluster: Cluster, attempt: Callable[[int], Awaitable[None]]) -> None:
    """Make one attempt after the other, by their numbers, until one succeeds.

    Raises:
        Cancelled: the operator wished it.
        NodeFailure: it cannot be done, or nothing more has come for a minute.
    """
    furthest, limit, number = -1, cluster.steady() + PATIENCE_S, 0
    why = Retelling(cluster)
    while True:
        begun_at = cluster.steady()
        try:
            return await attempt(number)
        except (BrokenOff, NotFound, Unreachable) as error:
            done = int(error.detail.get("done", 0))
            # One that went on for so long was no vain attempt, whoever does not answer now.
            if done > furthest or cluster.steady() - begun_at > PATIENCE_S:
                furthest = max(done, furthest)
                limit = cluster.steady() + PATIENCE_S
            if cluster.steady() >= limit:
                raise
            why.tell(error)
        number += 1
        await cluster.sleep(PAUSE_S)
