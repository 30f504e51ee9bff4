"""Disturb a story in many ways, one after the other, on as few clusters as that takes.

Most of what is done to an operation has to leave the cluster as it was before. So it is one that
the next disturbance may find, as good as a new one, and better at showing what no comparison sees:
what one failure has left behind is in the way of those after it.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster
from tests.support.story import Story


@dataclass(frozen=True)
class Disturbance:
    """Runs the story's operation, disturbs it, and checks what comes of it."""

    what: str
    happens: Callable[[SimulatedCluster], Awaitable[bool]]  # tells if nothing at all has changed


def disturb(story: Story, disturbances: Iterable[Disturbance]) -> None:
    """Tell a story for each disturbance, from its beginning where the one before left changes.

    Each is asked for when those before it have happened.
    """
    left = iter(disturbances)
    due = next(left, None)
    while due is not None:
        due = simulate(_disturb(story, due, left))


async def _disturb(
    story: Story, due: Disturbance | None, left: Iterator[Disturbance]
) -> Disturbance | None:
    """Disturb one cluster as long as it is as before; return what is due on another one."""
    happened: list[str] = []
    try:
        async with story.told() as cluster:
            first_master = cluster.master.name
            is_as_before = True
            while due is not None and is_as_before:
                await _have_master(cluster, first_master)
                happened.append(due.what)
                is_as_before = await due.happens(cluster)
                due = next(left, None)
            return due
    except Exception as error:
        *before, last = happened or ["its beginning"]
        error.add_note(f"{story.operation}: {last}")
        if before:
            error.add_note("on a cluster that was as before after:\n  " + "\n  ".join(before))
        raise


async def _have_master(cluster: SimulatedCluster, name: str) -> None:
    if cluster.master.name != name:
        await cluster.crash_master()
        await cluster.take_over(name)
        await cluster.settle()
