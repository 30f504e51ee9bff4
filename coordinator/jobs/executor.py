"""Carry out a job: its operations one after the other, each under its locks."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from common.errors import Bug, Cancelled, Conflict, GntError, InvalidRequest
from common.model.job import Failure, Status
from common.names import JobId
from coordinator.jobs.bounds import failure_of, result_of
from coordinator.jobs.context import JobContext
from coordinator.jobs.foreign import read_choice, read_plan, read_queued
from coordinator.jobs.journal import JobJournal
from coordinator.jobs.recipe import run
from coordinator.jobs.running import Doing, RunningJob, ended
from coordinator.locks.manager import LockManager, LocksBusy
from coordinator.locks.names import LockName, Owner, Wanted
from coordinator.operations.base import Operation, StaleChoice
from coordinator.operations.follow_up import FollowUps
from coordinator.operations.locking import from_rows, to_rows
from coordinator.operations.placement.promises import Promise
from coordinator.state.store import Store
from coordinator.state.versions import to_values

log = logging.getLogger(__name__)

CHOICES = 5  # times a choice may go stale before the job gives up

Context = Callable[[RunningJob, int], JobContext]


class Queue(Protocol):
    """The queue, as a job that runs sees it: places to run, and jobs that it has others do."""

    def leave_place(self, running: RunningJob) -> None:
        """Let another job run while this one can only wait."""

    async def take_place(self, running: RunningJob) -> None:
        """Wait for a place to run."""

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
        try:
            if record.plan is None:
                operation, choice = read_queued(running.id, record, running.secrets(index))
                plan = await self._get_ready(running, index, operation, choice, context)
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
            jobs = operation.jobs(plan)
            await self._end_well(running, index, operation.result(plan), jobs)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the job has to end
            # Under its locks: a successor that knows of no end undoes it all once more.
            await self._end_badly(running, index, error)
        finally:
            self._locks.release(running.owner)
            self.reserve(running)

    async def _get_ready(
        self,
        running: RunningJob,
        index: int,
        operation: Operation[Any, Any],
        choice: Any,
        context: JobContext,
    ) -> Any:
        """Choose, lock, check: until the choice still holds under the locks.

        A choice that is there already is the one of whoever submitted the job, or of a predecessor.
        """
        started = running.op(index).started or self._now()
        running.change_op(index, status=Status.WAITING, started=started)
        why = ""
        for _ in range(CHOICES):
            if choice is None:
                self._is_doing(running, "its choice of nodes")
                choice = await self._unless_cancelled(running, operation.choose(context))
                running.change_op(
                    index, version=operation.version,
                    choice=to_values(choice, operation.choice_type),
                )  # fmt: skip
            wanted = operation.locks(self._store.state.config, choice)
            await self._unless_cancelled(running, self._lock(running, index, wanted))
            self._is_doing(running, "its checks")
            try:
                if operation.locks(self._store.state.config, choice) != wanted:
                    raise StaleChoice  # noqa: TRY301 -- what was waited for is not what is needed now
                plan = await self._unless_cancelled(running, operation.prepare(context, choice))
            except StaleChoice as stale:
                self._locks.release(running.owner)
                why = f" {stale.__cause__}" if isinstance(stale.__cause__, GntError) else ""
                choice = None
                continue
            except BaseException:
                self._locks.release(running.owner)
                raise
            context.promise(*operation.promises(plan))
            running.change_op(
                index, status=Status.RUNNING, executed=self._now(),
                choice=None, plan=to_values(plan, operation.plan_type), version=operation.version,
                locks=to_rows(wanted),
            )  # fmt: skip
            return plan
        raise Conflict(
            f"Whatever was chosen for {operation.summary()} was taken by others meanwhile, "
            f"{CHOICES} times; try again, or name a node.{why}"
        )

    async def _lock(self, running: RunningJob, index: int, wanted: Wanted) -> None:
        """Get locks; while others hold them, somebody else may have this job's place."""
        owner = running.owner
        try:
            await self._locks.acquire(owner, wanted, timeout=0, priority=running.op(index).priority)
        except LocksBusy:
            self._is_doing(running, "its locks")
            self.queue.leave_place(running)
            await self._locks.acquire(
                owner, wanted, timeout=None, priority=running.op(index).priority
            )
            await self.queue.take_place(running)

    def _is_doing(self, running: RunningJob, what: str) -> None:
        running.doing = Doing(what, self._now())

    async def _unless_cancelled(self, running: RunningJob, work: Any) -> Any:
        """Do something that changes nothing, unless the operator ends the job first."""
        wish = asyncio.ensure_future(running.cancel_wanted.wait())
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, wish}, return_when=asyncio.FIRST_COMPLETED)
            if running.cancel_wanted.is_set():
                raise Cancelled(f"Job {running.id} was cancelled before it began.")
            return task.result()
        finally:
            await ended(task, wish)

    async def _end_well(
        self, running: RunningJob, index: int, result: Any, follow_ups: FollowUps = ()
    ) -> None:
        if running.cancel_wanted.is_set() and not running.past_return:
            raise Cancelled(f"Job {running.id} was cancelled before it began.")
        running.past_return = True  # from here on there is nothing to cancel
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

    def reserve(self, running: RunningJob) -> None:
        """Have others count with the room that was chosen for operations that have not begun."""
        context = self._context(running, 0)
        promises: list[Promise] = []
        try:
            for index, record in enumerate(running.job.ops):
                if record.choice is not None:
                    operation, choice = read_choice(record, running.secrets(index))
                    promises += operation.intends(context, choice)
        except GntError as error:  # it is another version's; it ends when its turn has come
            log.warning("job %s has nothing reserved: %s", running.id, error)
        context.promise(*promises)

    def obstacles(self, running: RunningJob) -> list[tuple[LockName, list[Owner], list[Owner]]]:
        """Return the locks that a job waits for, who holds each, and who is to get it before."""
        return self._locks.obstacles(running.owner)

    def change_priority(self, running: RunningJob, priority: int) -> None:
        """Have a job that waits for locks wait with another priority."""
        self._locks.change_priority(running.owner, priority)

    def release(self, running: RunningJob) -> None:
        """Forget what a job was to take; it has ended."""
        self._context(running, 0).promise()

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
