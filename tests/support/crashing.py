"""Kill the coordinator at every call and commit of an operation; the next one goes on.

Where time matters one job is met by several crashes, each of another coordinator: the first where
the story is told for the first time, the others at the moments that are left of it then.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from common.errors import GntError
from common.model.job import Job, Status
from common.names import JobId
from coordinator.operations.step import Step
from coordinator.quorum.question import Mode
from tests.support.breaking import broken_at
from tests.support.cluster import SimulatedCluster
from tests.support.comparing import check, has_returned
from tests.support.disturbing import Disturbance, disturb
from tests.support.failing import fail_step
from tests.support.faults import LONGEST_WAIT_S, Trap, Watching
from tests.support.moments import Moment, Moments
from tests.support.network import Fault
from tests.support.places import some, worth_crashing
from tests.support.seeds import is_thorough
from tests.support.story import Story, Told, changed_recipes, is_crossing

AT_ONCE = 4  # places at which one job is met by a crash, at most, where time matters
LOOK_S = 0.1


def for_every_crash(told: Told) -> None:
    """Kill the coordinator at every call and commit, on the way forward and on the way back.

    Whoever goes on from the journal brings the cluster to one and the same state.
    """
    # First what leaves the cluster as it was: the first of the others finds it so.
    undoing = () if told.in_short else _crashes_undoing(told)
    disturb(told.story, chain(undoing, _crashes(told)))


def for_every_change_of_sides(told: Told) -> None:
    """Kill the coordinator at every call and commit; who it is about becomes the master.

    Where that node may not, the old master goes on. Either way the job ends, and the cluster
    is as before or as it should be, with a master that is in service.
    """
    disturb(told.story, (
        Disturbance(
            f"{told.story.concerned} takes over at {_crossing(told, index)}",
            partial(_change_sides, told, index),
        )
        for index in _crossings_of(told)
    ))  # fmt: skip


def _crossings_of(told: Told) -> list[int]:
    places = some(worth_crashing(told.crossings), turn=told.turn, final=told.final_crossings)
    return places[-1:] if told.in_short else places


def _crossing(told: Told, index: int) -> str:
    return f"{told.crossings[index]}, {index + 1} of {len(told.crossings)}"


def _crashes(told: Told) -> Iterator[Disturbance]:
    """Crash at several places in turn, and alone at those that were not met so."""
    missed: list[int] = []
    for number, places in enumerate(together(told.moments, _crossings_of(told)), told.turn):
        yield _crashes_at(told, places, missed, number)
    for number, place in enumerate(missed, told.turn):
        yield _crashes_at(told, (place,), missed, number)


def _crashes_at(told: Told, places: Sequence[int], missed: list[int], number: int) -> Disturbance:
    named = ", then at ".join(_crossing(told, index) for index in places)
    return Disturbance(
        f"crash at {named}", partial(_crash, told, places, missed, elsewhere=number % 2 == 1)
    )


def together(moments: Sequence[Moment], places: Iterable[int]) -> list[list[int]]:
    """Put places together at which one job can be met by a crash, each in a step of its own.

    What a crash within a step leaves behind would be mended by the same step done once more. What
    comes before the first step is done anew, with other calls: only the first crash can be there.
    """
    groups: list[list[int]] = []
    most = 1 if is_thorough() else AT_ONCE
    for place in places:
        roomy = (each for each in groups if len(each) < most)
        group = next((g for g in roomy if moments[place].step not in _steps(moments, g)), None)
        if group is None:
            groups.append(group := [])
        group.append(place)
    return groups


def _steps(moments: Sequence[Moment], places: Iterable[int]) -> set[str]:
    return {moments[place].step for place in places}


async def _crash(
    told: Told,
    places: Sequence[int],
    missed: list[int],
    cluster: SimulatedCluster,
    *,
    elsewhere: bool,
) -> bool:
    """Crash at the first place, and then at each that is met before the job ends."""
    first, *left = places
    operation, moments = told.story.made(cluster), Moments(is_crossing)
    trap = Trap(is_crossing, first, cluster.master.die)
    with changed_recipes(operation, moments.noted):
        number = await cluster.submit(operation)
        cluster.network.faults.append(trap)
        await trap.until_sprung()
        while left:
            moments.begin_anew()
            trap = moments.trap(told.moments[left[0]], partial(_die, cluster))
            await _succeed(told.story, cluster, moments, trap, elsewhere=elsewhere)
            elsewhere = not elsewhere
            met = await _springs(trap, cluster, number)
            # The last of all may go with another one: then all is over, and that is as good.
            if not met and left[0] != len(told.crossings) - 1:
                break
            del left[0]
        else:
            await _succeed(told.story, cluster, elsewhere=elsewhere)
        missed += left
        job = await cluster.finished(number)
    cluster.network.faults.clear()
    if told.story.has_secret and _has_lost_secret(job):
        await check(cluster, told, told.before)
        await cluster.run(told.story.made(cluster))
    else:
        assert job.status is Status.SUCCESS, job.ops[-1].failure
    return await check(cluster, told, told.after)


def _die(cluster: SimulatedCluster) -> None:
    cluster.master.die()  # whoever that is by then


async def _springs(trap: Trap, cluster: SimulatedCluster, number: JobId) -> bool:
    """Tell whether a trap springs before a job has ended."""
    async with asyncio.timeout(LONGEST_WAIT_S):
        while not trap.sprung.is_set():
            job = cluster.master.running.queue.find(number)
            if job is not None and job.status.is_final:
                break
            await asyncio.sleep(LOOK_S)
    return trap.sprung.is_set()


def _crashes_undoing(told: Told) -> Iterator[Disturbance]:
    """Fail a step to see what is called and committed after that, and then at each of these."""
    step = next((step for step in reversed(told.undoable) if step.do), None)
    if step is None:
        return
    crossings = Watching(is_crossing)

    async def fail(cluster: SimulatedCluster) -> bool:
        watch = partial(cluster.network.faults.append, crossings)
        return await fail_step(told, step, not step.point_of_no_return, cluster, then=watch)

    yield Disturbance(f"“{step.title}” fails", fail)
    back = crossings.seen
    for number, index in enumerate(some(worth_crashing(back), turn=told.turn), told.turn):
        yield Disturbance(
            f"“{step.title}” fails, then crash {index + 1} of {len(back)}, at {back[index]}",
            partial(_crash_undoing, told, step, index, elsewhere=number % 2 == 0),
        )


async def _crash_undoing(
    told: Told, step: Step, index: int, cluster: SimulatedCluster, *, elsewhere: bool
) -> bool:
    """Fail a step, and crash at a crossing after that."""
    trap = Trap(is_crossing, index, cluster.master.die)
    operation = told.story.made(cluster)

    def failed() -> None:
        if not cluster.network.faults and not trap.sprung.is_set():
            cluster.network.faults.append(trap)

    def broken(steps: Iterator[Step]) -> Iterator[Step]:
        return broken_at(steps, step.title, not step.point_of_no_return, then=failed)

    with changed_recipes(operation, broken):
        number = await cluster.submit(operation)
        await trap.until_sprung()
        await _succeed(told.story, cluster, elsewhere=elsewhere)
        job = await cluster.finished(number)
        cluster.network.faults.clear()
    assert job.status is Status.ERROR, f"the job is {job.status}"
    return await check(cluster, told, told.before, told.story.uncertain)


async def _change_sides(told: Told, index: int, cluster: SimulatedCluster) -> bool:
    story = told.story
    trap = Trap(is_crossing, index, cluster.master.die)
    number = await cluster.submit(story.made(cluster))
    cluster.network.faults.append(trap)
    await trap.until_sprung()
    cluster.network.faults.clear()
    await cluster.crash_master()
    try:
        await cluster.take_over(story.concerned)
    except GntError:
        await cluster.take_over("alpha")
    job = await cluster.finished(number)
    master = cluster.config.master()
    assert master.master_candidate, f"{master.name} is master, and no candidate"
    out_of_service = master.offline or master.drained
    assert not out_of_service, f"{master.name} is out of service"
    done = job.status is Status.SUCCESS or has_returned(job, told)
    about = frozenset({f"members {story.concerned}", f"config node {story.concerned}"})
    if done or master.name != story.concerned:
        wanted = told.after if done else told.before
        is_as_before = await check(cluster, told, wanted, story.uncertain)
    else:  # who was promoted for it may stay: it can do no harm
        is_as_before = await check(cluster, told, told.before, about)
    assert not cluster.master.running.store.troubles
    return is_as_before


async def _succeed(
    story: Story, cluster: SimulatedCluster, *faults: Fault, elsewhere: bool
) -> None:
    """Bury the coordinator that died, and start the next one, here or elsewhere, with faults."""
    cluster.network.faults.clear()
    await cluster.crash_master()
    cluster.network.faults += faults
    here = cluster.master.name
    if elsewhere and story.successor not in ("", here):
        await cluster.take_over(story.successor)
    else:
        await cluster.start_master(here, Mode.START)


def _has_lost_secret(job: Job) -> bool:
    failure = job.ops[-1].failure
    return failure is not None and failure.message.endswith("Give the command again.")
