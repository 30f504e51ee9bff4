"""Break an operation at every place, in every way, and compare the cluster before and after.

A story is an operation and the cluster it is told on. Each is run once undisturbed, which tells
at which places it can be disturbed: the steps of its recipe, its calls to nodes, its commits.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

from common.errors import GntError
from common.model.job import Job, Status
from coordinator.operations.step import Step
from coordinator.quorum.question import Mode
from tests.support.breaking import broken_at
from tests.support.cluster import SimulatedCluster
from tests.support.disturbing import Disturbance, disturb
from tests.support.faults import Mishap, Once, Trap, Watching
from tests.support.places import some, worth_crashing, worth_trying
from tests.support.seeds import chosen
from tests.support.snapshot import Snapshot
from tests.support.story import (
    Story,
    Told,
    changed_recipes,
    is_call,
    is_crossing,
)

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
    steps = [
        Disturbance(
            f"“{step.title}” fails {'after' if takes_effect else 'before'} it took effect",
            partial(_fail_step, told, step, takes_effect),
        )
        for number, step in enumerate(told.steps)
        for takes_effect in _whether_it_takes_effect(step, told.turn + number)
    ]
    calls = [
        Disturbance(
            f"call {index + 1} of {len(told.calls)}, {told.calls[index]}, {mishap}",
            partial(_fail_call, told, index, mishap),
        )
        for number, index in enumerate(_calls_of(told), told.turn)
        for mishap in chosen(MISHAPS, number)
    ]
    disturb(told.story, steps + calls)


def for_every_crash(told: Told) -> None:
    """Kill the coordinator at every call and commit, on the way forward and on the way back.

    Whoever goes on from the journal brings the cluster to one and the same state.
    """
    crashes = (
        Disturbance(
            f"crash {index + 1} of {len(told.crossings)}, at {told.crossings[index]}",
            partial(_crash, told, index, elsewhere=number % 2 == 1),
        )
        for number, index in enumerate(_crossings_of(told), told.turn)
    )
    # First what leaves the cluster as it was: the first of the others finds it so.
    undoable = [step for step in told.undoable if step.do]
    undoing = _crashes_undoing(told, undoable[-1]) if undoable else ()
    disturb(told.story, chain(undoing, crashes))


def for_every_change_of_sides(told: Told) -> None:
    """Kill the coordinator at every call and commit; who it is about becomes the master.

    Where that node may not, the old master goes on. Either way the job ends, and the cluster
    is as before or as it should be, with a master that is in service.
    """
    disturb(told.story, (
        Disturbance(
            f"{told.story.concerned} takes over at {told.crossings[index]}, "
            f"{index + 1} of {len(told.crossings)}",
            partial(_change_sides, told, index),
        )
        for index in _crossings_of(told)
    ))  # fmt: skip


def _calls_of(told: Told) -> list[int]:
    return some(worth_trying(told.calls), turn=told.turn, final=told.final_calls)


def _crossings_of(told: Told) -> list[int]:
    return some(worth_crashing(told.crossings), turn=told.turn, final=told.final_crossings)


def _whether_it_takes_effect(step: Step, number: int) -> Sequence[bool]:
    """Tell how a step fails: in turn where time matters."""
    # An action and the record of it are one step where there is no return in between.
    return chosen((False, True), number) if step.do and not step.point_of_no_return else (False,)


def _crashes_undoing(told: Told, step: Step) -> Iterator[Disturbance]:
    """Fail a step to see what is called and committed after that, and then at each of these."""
    crossings = Watching(is_crossing)

    async def fail(cluster: SimulatedCluster) -> bool:
        watch = partial(cluster.network.faults.append, crossings)
        return await _fail_step(told, step, not step.point_of_no_return, cluster, then=watch)

    yield Disturbance(f"“{step.title}” fails", fail)
    back = crossings.seen
    for number, index in enumerate(some(worth_crashing(back), turn=told.turn), told.turn):
        yield Disturbance(
            f"“{step.title}” fails, then crash {index + 1} of {len(back)}, at {back[index]}",
            partial(_crash_undoing, told, step, index, elsewhere=number % 2 == 0),
        )


async def _fail_step(
    told: Told,
    step: Step,
    takes_effect: bool,
    cluster: SimulatedCluster,
    *,
    then: Callable[[], None] = lambda: None,
) -> bool:
    operation = told.story.made(cluster)
    with changed_recipes(operation, lambda steps: broken_at(steps, step.title, takes_effect, then)):
        job = await cluster.finished(await cluster.submit(operation))
    cluster.network.faults.clear()
    assert job.status is Status.ERROR, "the job did not fail"
    if _has_returned(job, told):
        return await _check_mendable(cluster, told)
    return await _check(cluster, told, told.before, told.story.uncertain)


async def _fail_call(told: Told, index: int, mishap: Mishap, cluster: SimulatedCluster) -> bool:
    operation = told.story.made(cluster)
    fault = Once(is_call, index, mishap, cluster.restart_noded)
    cluster.network.faults.append(fault)  # first: a job may call before whoever sent it knows
    number = await cluster.submit(operation)
    job = await cluster.finished(number)
    cluster.network.faults.clear()
    assert fault.hit is not None, "the call was not made"
    if job.status is Status.SUCCESS:  # it could do without
        return await _check(cluster, told, told.after, told.story.uncertain)
    if _has_returned(job, told):
        return await _check_mendable(cluster, told)
    return await _check(cluster, told, told.before, told.story.uncertain)


async def _crash(told: Told, index: int, cluster: SimulatedCluster, *, elsewhere: bool) -> bool:
    trap = Trap(is_crossing, index, cluster.master.die)
    number = await cluster.submit(told.story.made(cluster))
    cluster.network.faults.append(trap)
    await trap.until_sprung()
    await _succeed(told.story, cluster, elsewhere=elsewhere)
    job = await cluster.finished(number)
    if told.story.has_secret and _has_lost_secret(job):
        await _check(cluster, told, told.before)
        await cluster.run(told.story.made(cluster))
    else:
        assert job.status is Status.SUCCESS, job.ops[-1].failure
    return await _check(cluster, told, told.after)


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
    done = job.status is Status.SUCCESS or _has_returned(job, told)
    about = frozenset({f"members {story.concerned}", f"config node {story.concerned}"})
    if done or master.name != story.concerned:
        wanted = told.after if done else told.before
        is_as_before = await _check(cluster, told, wanted, story.uncertain)
    else:  # who was promoted for it may stay: it can do no harm
        is_as_before = await _check(cluster, told, told.before, about)
    assert not cluster.master.running.store.troubles
    return is_as_before


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
    return await _check(cluster, told, told.before, told.story.uncertain)


async def _succeed(story: Story, cluster: SimulatedCluster, *, elsewhere: bool) -> None:
    """Bury the coordinator that died, and start the next one: here, or elsewhere."""
    cluster.network.faults.clear()
    await cluster.crash_master()
    if elsewhere and story.successor:
        await cluster.take_over(story.successor)
    else:
        await cluster.start_master("alpha", Mode.START)


async def _check_mendable(cluster: SimulatedCluster, told: Told) -> bool:
    """Have the rest done."""
    if told.story.again:
        await cluster.run(told.story.again)
    return await _check(cluster, told, told.after, told.story.uncertain)


async def _check(
    cluster: SimulatedCluster,
    told: Told,
    wanted: Snapshot,
    except_for: frozenset[str] = frozenset(),
) -> bool:
    """Have the cluster be as ``wanted``; return whether that is as before, in every part.

    What succeeded has not left things as before, even if nothing of it is seen here.
    """
    await cluster.settle(told.story.rest_s)
    found = wanted.differences(await cluster.snapshot())
    different = [line for line in found if line.partition(":")[0] not in except_for]
    assert not different, "it is not as it should be:\n  " + "\n  ".join(different)
    cluster.check_replicas()
    return wanted is told.before and not found


def _has_returned(job: Job, told: Told) -> bool:
    """Tell whether a point of no return was passed."""
    final = {step.title for step in told.steps if step.point_of_no_return}
    return any(e.event == "finished" and e.step in final for op in job.ops for e in op.journal)


def _has_lost_secret(job: Job) -> bool:
    failure = job.ops[-1].failure
    return failure is not None and failure.message.endswith("Give the command again.")
