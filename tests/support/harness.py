"""Break an operation at every place, in every way, and compare the cluster before and after.

A story is an operation and the cluster it is told on. Each is run once undisturbed, which tells
at which places it can be disturbed: the steps of its recipe, its calls to nodes, its commits.
"""

import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from common.errors import GntError, NodeFailure
from common.model.job import Job, Status
from coordinator.operations.step import Action, Step
from coordinator.quorum.question import Mode
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster
from tests.support.faults import Mishap, Once, Trap, Watching
from tests.support.network import Trip
from tests.support.seeds import chosen, is_thorough
from tests.support.snapshot import Snapshot
from tests.support.story import (
    Story,
    Told,
    changed_recipes,
    is_call,
    is_crossing,
)

MANY = 8  # places of a story at which it is disturbed, beyond which not all are tried every day
MISHAPS = (
    Mishap.FAILS_BEFORE,
    Mishap.FAILS_AFTER,
    Mishap.ANSWER_IS_LOST,
    Mishap.NODED_RESTARTS,
)


def for_every_failure(told: Told) -> None:
    """Fail every step and every call, before and after it took effect.

    Up to the point of no return the cluster is left as it was. From there on the operation
    may end in error; sent again, it brings the cluster to where it should be.
    """
    for step in told.steps:
        # An action and the record of it are one step where there is no return in between.
        for takes_effect in (False, True) if step.do and not step.point_of_no_return else (False,):
            _way_back(told, step, takes_effect=takes_effect)
    for number, index in enumerate(_every_other(_worth_trying(told.calls))):
        for mishap in chosen(MISHAPS, number):
            simulate(_fail_call(told, index, mishap))


def for_every_crash(told: Told) -> None:
    """Kill the coordinator at every call and commit, on the way forward and on the way back.

    Whoever goes on from the journal brings the cluster to one and the same state.
    """
    for number, index in enumerate(_every_other(_worth_trying(told.crossings))):
        simulate(_crash(told, index, elsewhere=number % 2 == 1))
    if undoable := [step for step in told.undoable if step.do]:
        last = undoable[-1]
        back = _way_back(told, last, takes_effect=not last.point_of_no_return)
        for number, index in enumerate(_every_other(_worth_trying(back))):
            simulate(_crash_undoing(told, last, index, elsewhere=number % 2 == 0))


def for_every_change_of_sides(told: Told) -> None:
    """Kill the coordinator at every call and commit; who it is about becomes the master.

    Where that node may not, the old master goes on. Either way the job ends, and the cluster
    is as before or as it should be, with a master that is in service.
    """
    for index in _every_other(_worth_trying(told.crossings), more_than=0):
        simulate(_change_sides(told, index))


def _worth_trying(trips: list[Trip]) -> list[int]:
    """Choose places for a disturbance: all, or where time matters those that differ.

    Of the calls of one commit it is now this and now that one, and of those that watch a task
    the first and the last.
    """
    commits, worth = 0, []
    for index, trip in enumerate(trips):
        around = {str(each) for each in trips[index - 1 : index + 2 : 2]}
        if trip.is_commit:
            commits += 1
            if commits % 3 != commits // 3 % 3:
                continue
        elif trip.call.name in ("tasks.watch", "os.look") and around == {str(trip)}:
            continue
        worth.append(index)
    return list(range(len(trips))) if is_thorough() else worth


def _every_other(places: list[int], *, more_than: int = MANY) -> list[int]:
    """Leave out every other place of a long story where time matters: which, its length decides.

    What is between two places to crash at is mostly the same to whoever goes on; and stories that
    are alike differ in length.
    """
    if is_thorough() or len(places) <= more_than:
        return places
    return places[len(places) % 2 :: 2]


def _way_back(told: Told, step: Step, *, takes_effect: bool) -> list[Trip]:
    """Fail a step; return the calls and commits after that. It is tried once."""
    failure = step.title, takes_effect
    if failure not in told.ways_back:
        told.ways_back[failure] = simulate(_fail_step(told, step, takes_effect=takes_effect))
    return told.ways_back[failure]


async def _fail_step(told: Told, step: Step, *, takes_effect: bool) -> list[Trip]:
    what = f"“{step.title}” fails {'after' if takes_effect else 'before'} it took effect"
    async with _told(told.story, what) as cluster:
        operation = told.story.made(cluster)
        crossings = Watching(is_crossing)

        def broken(steps: Iterator[Step]) -> Iterator[Step]:
            watch = partial(cluster.network.faults.append, crossings)
            return _broken(steps, step.title, takes_effect, then=watch)

        with changed_recipes(operation, broken):
            job = await cluster.finished(await cluster.submit(operation))
        cluster.network.faults.clear()
        assert job.status is Status.ERROR, "the job did not fail"
        if _has_returned(job, told):
            await _check_mendable(cluster, told)
        else:
            await _check(cluster, told, told.before, told.story.uncertain)
        return crossings.seen


async def _fail_call(told: Told, index: int, mishap: Mishap) -> None:
    what = f"call {index + 1} of {len(told.calls)}, {told.calls[index]}, {mishap}"
    async with _told(told.story, what) as cluster:
        operation = told.story.made(cluster)
        fault = Once(is_call, index, mishap, cluster.restart_noded)
        number = await cluster.submit(operation)
        cluster.network.faults.append(fault)
        job = await cluster.finished(number)
        cluster.network.faults.clear()
        assert fault.hit is not None, "the call was not made"
        if job.status is Status.SUCCESS:  # it could do without
            await _check(cluster, told, told.after, told.story.uncertain)
        elif _has_returned(job, told):
            await _check_mendable(cluster, told)
        else:
            await _check(cluster, told, told.before, told.story.uncertain)


async def _crash(told: Told, index: int, *, elsewhere: bool) -> None:
    what = f"crash {index + 1} of {len(told.crossings)}, at {told.crossings[index]}"
    async with _told(told.story, what) as cluster:
        trap = Trap(is_crossing, index, cluster.master.die)
        number = await cluster.submit(told.story.made(cluster))
        cluster.network.faults.append(trap)
        await trap.sprung.wait()
        await _succeed(told.story, cluster, elsewhere=elsewhere)
        job = await cluster.finished(number)
        if told.story.has_secret and _has_lost_secret(job):
            await _check(cluster, told, told.before)
            await cluster.run(told.story.made(cluster))
        else:
            assert job.status is Status.SUCCESS, job.ops[-1].failure
        await _check(cluster, told, told.after)


async def _change_sides(told: Told, index: int) -> None:
    story, trip = told.story, told.crossings[index]
    what = f"{story.concerned} takes over at {trip}, {index + 1} of {len(told.crossings)}"
    async with _told(story, what) as cluster:
        trap = Trap(is_crossing, index, cluster.master.die)
        number = await cluster.submit(story.made(cluster))
        cluster.network.faults.append(trap)
        await trap.sprung.wait()
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
        done = job.status is Status.SUCCESS or _has_returned(job, told)
        about = frozenset({f"members {story.concerned}", f"config node {story.concerned}"})
        if done or master.name != story.concerned:
            await _check(cluster, told, told.after if done else told.before, story.uncertain)
        else:  # who was promoted for it may stay: it can do no harm
            await _check(cluster, told, told.before, about)
        assert not cluster.master.running.store.troubles


async def _crash_undoing(told: Told, step: Step, index: int, *, elsewhere: bool) -> None:
    """Fail a step, and crash at a crossing after that."""
    what = f"“{step.title}” fails, then crash {index + 1}"
    async with _told(told.story, what) as cluster:
        trap = Trap(is_crossing, index, cluster.master.die)
        operation = told.story.made(cluster)

        def failed() -> None:
            if not cluster.network.faults and not trap.sprung.is_set():
                cluster.network.faults.append(trap)

        def broken(steps: Iterator[Step]) -> Iterator[Step]:
            return _broken(steps, step.title, not step.point_of_no_return, then=failed)

        with changed_recipes(operation, broken):
            number = await cluster.submit(operation)
            await trap.sprung.wait()
            await _succeed(told.story, cluster, elsewhere=elsewhere)
            job = await cluster.finished(number)
            cluster.network.faults.clear()
        assert job.status is Status.ERROR, f"the job is {job.status}"
        await _check(cluster, told, told.before, told.story.uncertain)


async def _succeed(story: Story, cluster: SimulatedCluster, *, elsewhere: bool) -> None:
    """Bury the coordinator that died, and start the next one: here, or elsewhere."""
    cluster.network.faults.clear()
    await cluster.crash_master()
    if elsewhere and story.successor:
        await cluster.take_over(story.successor)
    else:
        await cluster.start_master("alpha", Mode.START)


async def _check_mendable(cluster: SimulatedCluster, told: Told) -> None:
    """Have the rest done."""
    if told.story.again:
        await cluster.run(told.story.again)
    await _check(cluster, told, told.after, told.story.uncertain)


async def _check(
    cluster: SimulatedCluster,
    told: Told,
    wanted: Snapshot,
    except_for: frozenset[str] = frozenset(),
) -> None:
    await cluster.settle(told.story.rest_s)
    found = wanted.differences(await cluster.snapshot())
    different = [line for line in found if line.partition(":")[0] not in except_for]
    assert not different, "it is not as it should be:\n  " + "\n  ".join(different)
    cluster.check_replicas()


@asynccontextmanager
async def _told(story: Story, what: str) -> AsyncIterator[SimulatedCluster]:
    """Tell a story; a failure says what was done to it."""
    try:
        async with story.told() as cluster:
            yield cluster
    except Exception as error:
        error.add_note(f"{story.operation}: {what}")
        raise


def _has_returned(job: Job, told: Told) -> bool:
    """Tell whether a point of no return was passed."""
    final = {step.title for step in told.steps if step.point_of_no_return}
    return any(e.event == "finished" and e.step in final for op in job.ops for e in op.journal)


def _has_lost_secret(job: Job) -> bool:
    failure = job.ops[-1].failure
    return failure is not None and failure.message.endswith("Give the command again.")


def _broken(
    steps: Iterator[Step],
    title: str,
    takes_effect: bool,
    then: Callable[[], None] = lambda: None,
) -> Iterator[Step]:
    """Have one step fail."""
    for step in steps:
        if step.title != title:
            yield step
        elif step.do:
            yield dataclasses.replace(step, do=_failing(step.do if takes_effect else None, then))
        else:
            yield dataclasses.replace(step, edit=_refusing)


def _failing(first: Action | None, then: Callable[[], None]) -> Action:
    async def do() -> None:
        if first is not None:
            await first()
        then()
        raise NodeFailure("Injected into a step.")

    return do


def _refusing(_: Any) -> Any:
    raise NodeFailure("Injected into an edit.")
