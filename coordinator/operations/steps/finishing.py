"""Waiting for what a node does in the background, and telling how far it is."""

from collections.abc import Awaitable, Callable

from common.durations import spoken
from common.names import MiB
from common.noderpc.disks import Unfinished
from common.units import format_mib
from coordinator.operations.cluster_view import Cluster

PAUSE_S = 5.0
TELL_EVERY_S = 60.0


async def until_finished(cluster: Cluster, what: str, ask: Callable[[], Awaitable[None]]) -> None:
    """Ask for something until it is done; it goes on where it was, whoever asks.

    Raises:
        Cancelled: the operator wished it.
        GntError: it cannot be done.
    """
    began_s, at_first, told_s = cluster.steady(), -1, cluster.steady() - TELL_EVERY_S
    while True:
        try:
            return await ask()
        except Unfinished as error:
            done, total = int(error.detail["done_mib"]), int(error.detail["total_mib"])
            if at_first < 0:
                began_s, at_first = cluster.steady(), done
            if cluster.steady() >= told_s + TELL_EVERY_S:
                told_s = cluster.steady()
                cluster.log(f"{what}: {progress(done, total, done - at_first, told_s - began_s)}")
        await cluster.sleep(PAUSE_S)


def progress(done: int, total: int, lately: int, seconds: float) -> str:
    """Say how far something is, how fast it goes, and when it is done at that rate.

    Args:
        done: MiB.
        total: MiB; 0 while it waits for its turn.
        lately: MiB that were done in ``seconds``.
        seconds: since somebody looked.
    """
    if not total:
        return "waits for its turn"
    said = f"{100 * done // total} % of {format_mib(MiB(total))}"
    if lately <= 0 or seconds <= 0:
        return said
    left_s = (total - done) * seconds / lately
    return f"{said}, {lately / seconds:.0f} MiB/s, {spoken(max(1, round(left_s)))} left"
