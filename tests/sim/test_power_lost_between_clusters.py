"""An instance on its way to another cluster is somewhere, whenever its new node loses its power."""

import asyncio

import pytest

from tests.sim.two_clusters import DARK_S, KINDS, Moving, crossings, on_its_way, tell
from tests.support.faults import Trap
from tests.support.story import is_crossing

HEARD_S = 3.0  # by then the other cluster has heard what it was told, and removed the instance


async def lose_power(clusters: Moving) -> None:
    """Have the new node away for a while."""
    await clusters.there.lose_power(clusters.node)
    await asyncio.sleep(DARK_S)
    await clusters.there.machines[clusters.node].boot()
    if clusters.node == "alpha":
        await clusters.there.start_master("alpha")


@pytest.mark.parametrize(
    ("node", "name", "turn"),
    [("alpha", "whole disks", 0), ("beta", "scripts", 1), ("beta", "two disks", 0)],
)
def test_it_is_lost_by_nobody_when_its_new_node_loses_its_power(
    node: str, name: str, turn: int
) -> None:
    """At each call and commit: what the other cluster has heard by then it has heard for good."""
    kind = KINDS[name]
    trips = crossings(node, kind)
    for index in on_its_way(trips, kind, turn):

        async def story(clusters: Moving, at: int = index) -> None:
            trap = Trap(is_crossing, at, lambda: None)
            jobs = await clusters.begun(kind.wishes, trap)
            await trap.sprung.wait()
            clusters.there.network.faults.remove(trap)
            await asyncio.sleep(HEARD_S)
            await lose_power(clusters)
            await clusters.check(jobs)

        try:
            tell(node, kind, story)
        except Exception as error:
            error.add_note(f"{node} has lost its power at {trips[index]}, number {index}")
            raise
