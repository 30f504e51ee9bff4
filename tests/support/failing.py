"""Fail an operation at every place, in every way, and compare the cluster before and after.

A story is an operation and the cluster it is told on. Each is run once undisturbed, which tells
at which places it can be disturbed: the steps of its recipe, its calls to nodes, its commits.
"""

from collections.abc import Callable, Sequence
from functools import partial

from common.model.job import Status
from coordinator.operations.step import Step
from tests.support.breaking import broken_at
from tests.support.cluster import SimulatedCluster
from tests.support.comparing import check, check_failed
from tests.support.disturbing import Disturbance, disturb
from tests.support.faults import Mishap, Once
from tests.support.places import some, worth_trying
from tests.support.seeds import chosen
from tests.support.story import Told, changed_recipes, is_call

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
            partial(fail_step, told, step, takes_effect),
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


async def fail_step(
    told: Told,
    step: Step,
    takes_effect: bool,
    cluster: SimulatedCluster,
    *,
    then: Callable[[], None] = lambda: None,
) -> bool:
    """Fail a step, and do something at that moment; tell whether the cluster is as before."""
    operation = told.story.made(cluster)
    with changed_recipes(operation, lambda steps: broken_at(steps, step.title, takes_effect, then)):
        job = await cluster.finished(await cluster.submit(operation))
    cluster.network.faults.clear()
    assert job.status is Status.ERROR, "the job did not fail"
    return await check_failed(cluster, told, job)


def _calls_of(told: Told) -> list[int]:
    if told.in_short:
        return []
    return some(worth_trying(told.calls), turn=told.turn, final=told.final_calls)


def _whether_it_takes_effect(step: Step, number: int) -> Sequence[bool]:
    """Tell how a step fails: in turn where time matters."""
    # An action and the record of it are one step where there is no return in between.
    return chosen((False, True), number) if step.do and not step.point_of_no_return else (False,)


async def _fail_call(told: Told, index: int, mishap: Mishap, cluster: SimulatedCluster) -> bool:
    operation = told.story.made(cluster)
    fault = Once(is_call, index, mishap, cluster.restart_noded)
    cluster.network.faults.append(fault)  # first: a job may call before whoever sent it knows
    number = await cluster.submit(operation)
    job = await cluster.finished(number)
    cluster.network.faults.clear()
    assert fault.hit is not None, "the call was not made"
    if job.status is Status.SUCCESS:  # it could do without
        return await check(cluster, told, told.after, told.story.uncertain)
    return await check_failed(cluster, told, job)
