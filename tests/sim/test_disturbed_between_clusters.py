"""An instance on its way is run by one of two clusters, whoever gives up, and when."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from common.model.job import Status
from tests.sim.two_clusters import (
    DARK_S,
    KINDS,
    MOMENT_S,
    Held,
    Jobs,
    Moving,
    crossings,
    on_its_way,
    tell,
)
from tests.support.cluster import SimulatedCluster

Disturbance = Callable[[Moving, Jobs], Awaitable[object]]


async def cancel_here(clusters: Moving, jobs: Jobs) -> object:
    return await clusters.here.master.luxi("CancelJob", jobs.going)


async def cancel_there(clusters: Moving, jobs: Jobs) -> object:
    return await clusters.there.master.luxi("CancelJob", jobs.coming)


async def old_node_loses_power(clusters: Moving, _: Jobs) -> None:
    await clusters.here.lose_power("gamma")
    await asyncio.sleep(DARK_S)
    await clusters.here.machines["gamma"].boot()


async def resumed_and_cancelled_here(clusters: Moving, jobs: Jobs) -> None:
    await clusters.here.crash_master()
    await clusters.here.start_master("alpha")
    await cancel_here(clusters, jobs)


async def heard_of_all(cluster: SimulatedCluster) -> bool:
    """Tell whether the old node was told that all it has brought is there."""
    copier = cluster.machines["gamma"].copier
    known = [await copier.has_arrived(copy) for copy in copier.known]
    return bool(known) and all(known)


@pytest.mark.parametrize(
    ("disturb", "side", "name", "turn"),
    [
        (cancel_here, "there", "whole disks", 0),
        (cancel_here, "there", "two disks", 1),
        (cancel_there, "there", "whole disks", 1),
        (cancel_there, "there", "scripts", 0),
        (old_node_loses_power, "there", "whole disks", 0),
        (old_node_loses_power, "here", "two disks", 1),
        (resumed_and_cancelled_here, "there", "scripts", 1),
    ],
)
def test_it_is_run_by_one_of_the_two_and_lost_by_nobody(
    disturb: Disturbance, side: str, name: str, turn: int
) -> None:
    """At each call and commit of the job that takes it, or sends it, before its answer is known."""
    kind = KINDS[name]
    trips = crossings("alpha", kind, side)
    for index in on_its_way(trips, kind, turn):

        async def story(clusters: Moving, at: int = index) -> None:
            held = Held(at)
            jobs = await clusters.begun(kind.wishes, held, side)
            await held.sprung.wait()
            disturbing = asyncio.ensure_future(disturb(clusters, jobs))
            await asyncio.sleep(MOMENT_S)
            held.opened.set()
            await disturbing
            await clusters.check(jobs)

        try:
            tell("alpha", kind, story)
        except BaseException as error:
            error.add_note(f"{disturb.__name__} {side} at {trips[index]}, number {index}")
            raise


@pytest.mark.parametrize("name", ["whole disks", "two disks"])
def test_who_has_heard_that_it_is_there_goes_on_though_it_is_cancelled(name: str) -> None:
    async def story(clusters: Moving) -> None:
        jobs = await clusters.begun(KINDS[name].wishes)
        while not await heard_of_all(clusters.here):  # noqa: ASYNC110  # time costs nothing here
            await asyncio.sleep(0.001)
        done, told = await clusters.here.master.luxi("CancelJob", jobs.going)
        assert not done
        assert "point of no return" in told
        going = await clusters.here.finished(jobs.going)
        assert going.status is Status.SUCCESS
        assert (await clusters.there.finished(jobs.coming)).status is Status.SUCCESS
        assert "goes on with it" in "\n".join(entry.message for entry in going.ops[0].log)
        assert clusters.here.config.find_instance("web1") is None
        assert await clusters.guests() == [{}, {"web1": "alpha"}]

    tell("alpha", KINDS[name], story)
