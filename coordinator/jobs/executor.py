"""Carry out a job: its operations one after the other, each under its locks."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from common.errors import Bug, Cancelled, GntError, InvalidRequest
from common.model.job import Failure, Status
from common.names import JobId
from coordinator.hooks.phases import HookPhases
from coordinator.hooks.scene import Scene
from coordinator.jobs.bounds import failure_of, result_of
from coordinator.jobs.context import JobContext
from coordinator.jobs.foreign import read_choice, read_plan, read_queued
from coordinator.jobs.journal import JobJournal
from coordinator.jobs.preparation import Places, Preparation
from coordinator.jobs.recipe import run
from coordinator.jobs.running import RunningJob
from coordinator.locks.manager import LockManager
from coordinator.locks.names import LockName, Owner
from coordinator.operations.failed_hook import FailedHook
from coordinator.operations.follow_up import FollowUps
from coordinator.operations.locking import from_rows
from coordinator.state.store import Store

log = logging.getLogger(__name__)

Context = Callable[[RunningJob, int], JobContext]


class Queue(Places, Protocol):
    """The queue, as a job that runs sees it: places to run, and jobs that it has others do."""

    def read(self, jobs: FollowUps) -> tuple[list[JobId | GntError], list[RunningJob]]:
        """Read and number jobs of an operation; an answer for each, and those that make sense."""

    def admit(self, jobs: Sequence[RunningJob]) -> None:
        """Queue jobs that are stored."""


class Executor:
    """Runs jobs to their end, be it success, failure undone, or cancellation.

    A task that runs ``carry_out`` may be cancelled at any moment (shutdown, lost
    mastership): nothing is undone, and a successor goes on from the journal.
    """

    queue: Queue  # set by the queue itself

    def __init__(
        self, store: Store, locks: LockManager, context: Context, now: Callable[[], float]
    ) -> None:
        self._store, self._locks, self._context, self._now = store, locks, context, now

    async def carry_out(self, running: RunningJob) -> None:
        """Run what is left of a job. Raises nothing but cancellation, and what ends the store.

        Raises:
            Deposed, Unreachable: the store has stopped; nothing can be recorded any more.
        """
        if running.job.started is None:
            running.change(started=self._now())
        for index in range(len(running.job.ops)):
            if not running.op(index).status.is_final:
                await self._operation(running, index)

    async def give_up(self, running: RunningJob, error: GntError) -> None:
        """End a job without carrying out what is left of it."""
        failure, status = failure_of(error), _status_of(error)
        for index, op in enumerate(running.job.ops):
            if not op.status.is_final:
                running.end_op(index, status=status, failure=failure, ended=self._now())
        running.change(ended=self._now())
        await self._store.commit([running.put()])
        running.show()

    async def _operation(self, running: RunningJob, index: int) -> None:
        record = running.op(index)
        context = self._context(running, index)
        running.at_return = running.past_return = False
        is_ours, before = record.plan is None, context.config
        operation, plan = None, None
        try:
            if is_ours:
                operation, choice = read_queued(running.id, record, running.secrets(index))
                preparation = Preparation(
                    running, index, operation, context,
                    self._store, self._locks, self.queue, self._now,
                )  # fmt: skip
                plan = await preparation.plan(choice)
            else:
                operation, plan = read_plan(running.id, record, running.secrets(index), context)
                # What it held and had promised; nobody else has asked yet.
                context.promise(*operation.promises(plan))
                wanted = from_rows(record.locks)
                await self._locks.acquire(running.owner, wanted, timeout=None, priority=-20)
            if record.input.get("dry_run"):
                titles = [step.title for step in operation.recipe(context, plan)]
                result = operation.dry_result(context, plan, titles)
                await self._end_well(running, index, result)
                return
            journal = JobJournal(running, index, self._store, self._now)
            await run(_noting_return(operation.recipe(context, plan), running), journal)
            self._check_not_cancelled(running)
            failed = await self._hooks_after(
                running, index, Scene(operation, plan, context.config), Status.SUCCESS,
                has_changed=not is_ours or context.config is not before, again=not is_ours,
            )  # fmt: skip
            jobs = operation.jobs(plan)
            result = operation.result_after(context, plan, failed)
            await self._end_well(running, index, result, jobs)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the job has to end
            if operation is not None:
                await self._hooks_after(
                    running, index, Scene(operation, plan, context.config), Status.ERROR,
                    has_changed=False, again=not is_ours,
                )  # fmt: skip
            # Under its locks: a successor that knows of no end undoes it all once more.
            await self._end_badly(running, index, error)
        finally:
            self._locks.release(running.owner)
            context.promise()

    async def _end_well(
        self, running: RunningJob, index: int, result: Any, follow_ups: FollowUps = ()
    ) -> None:
        self._check_not_cancelled(running)
        jobs: list[RunningJob] = []
        if follow_ups:
            answers, jobs = self.queue.read(follow_ups)
            told = [
                [False, answer.message] if isinstance(answer, GntError) else [True, answer]
                for answer in answers
            ]
            result = result | {"jobs": told}
        kept = result_of(result, len(running.job.ops))
        running.end_op(index, status=Status.SUCCESS, result=kept, ended=self._now())
        if index + 1 == len(running.job.ops):
            running.change(ended=self._now())
        await self._store.commit([running.put(), *(job.put() for job in jobs)])
        for job in jobs:  # what this operation promised for them is theirs now
            self.reserve(job)
        self.queue.admit(jobs)
        running.show()

    def _check_not_cancelled(self, running: RunningJob) -> None:
        """Raise if an operator ended this in time; from here on there is nothing to cancel."""
        if running.cancel_wanted.is_set() and not running.past_return:
            raise Cancelled(f"Job {running.id} was cancelled before it began.")
        running.past_return = True

    async def _hooks_after(
        self,
        running: RunningJob,
        index: int,
        scene: Scene,
        status: Status,
        *,
        has_changed: bool,
        again: bool,
    ) -> Sequence[FailedHook]:
        due = running.op(index).hooks
        if due is None:
            return ()
        context = self._context(running, index)
        phases = HookPhases(context, running.id)
        try:
            return await phases.after(scene, due, status, has_changed=has_changed, again=again)
        except Exception as error:  # the operation is over, and ends as it did
            log.exception("hooks after an operation failed unexpectedly")
            context.log(f"Hooks that follow this operation could not be run: {error!r}.")
            return ()

    def reserve(self, running: RunningJob) -> None:
        """Have others count with the room that was chosen for operations that have not begun."""
        for index, record in enumerate(running.job.ops):
            if record.choice is None:
                continue
            context = self._context(running, index)
            try:
                operation, choice = read_choice(record, running.secrets(index))
                context.promise(*operation.intends(context, choice))
            except GntError as error:  # it is another version's; it ends when its turn has come
                log.warning("job %s has nothing reserved: %s", running.id, error)

    def obstacles(self, running: RunningJob) -> list[tuple[LockName, list[Owner], list[Owner]]]:
        """Return the locks that a job waits for, who holds each, and who is to get it before."""
        return self._locks.obstacles(running.owner)

    def change_priority(self, running: RunningJob, priority: int) -> None:
        """Have a job that waits for locks wait with another priority."""
        self._locks.change_priority(running.owner, priority)

    def release(self, running: RunningJob) -> None:
        """Forget what a job was to take; it has ended."""
        for index in range(len(running.job.ops)):
            self._context(running, index).promise()

    async def _end_badly(self, running: RunningJob, index: int, error: Exception) -> None:
        if not isinstance(error, GntError):
            log.error("an operation failed unexpectedly", exc_info=error)
            error = Bug(f"An internal error: {type(error).__name__}: {error}.")
        told, status = failure_of(error), _status_of(error)
        running.end_op(index, status=status, failure=told, result=None, ended=self._now())
        for later in range(index + 1, len(running.job.ops)):
            why = Failure(code=told.code, message=f"Operation {index + 1} of this job failed.")
            running.end_op(later, status=status, failure=why)
        running.change(ended=self._now())
        try:
            await self._store.commit([running.put()])
        except (InvalidRequest, Bug) as unstorable:
            # Whatever it is that cannot be stored: a job whose end is lost would never end.
            log.warning("job %s is stored without what it said: %s", running.id, unstorable)
            for number in range(len(running.job.ops)):
                running.strip_op(number)
            await self._store.commit([running.put()])
        running.show()


def _status_of(error: GntError) -> Status:
    return Status.CANCELED if isinstance(error, Cancelled) else Status.ERROR


def _noting_return(steps: Any, running: RunningJob) -> Any:
    for step in steps:
        running.at_return = step.point_of_no_return
        yield step
        if step.point_of_no_return:
            running.at_return, running.past_return = False, True
            running.show()
