"""The job queue: takes jobs, starts them when their time has come, and tells how they are."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from common.errors import Cancelled, Conflict, Deposed, GntError, InvalidRequest, Unreachable
from common.luxi.failures import JobLost, QueueDrained
from common.model.job import Dependency, Failure, Job, Status
from common.names import JobId
from coordinator.jobs.archiving import Archiving
from coordinator.jobs.executor import Executor
from coordinator.jobs.line import Dependencies
from coordinator.jobs.places import Places
from coordinator.jobs.running import RunningJob
from coordinator.jobs.submission import Submitted, check_priority, dependencies_of, read_job
from coordinator.jobs.why import Reason, Standing, reasons
from coordinator.operations.base import Batches
from coordinator.state.archive import Archive
from coordinator.state.state import State
from coordinator.state.store import Store

log = logging.getLogger(__name__)

NOTHING: Mapping[JobId, Job] = {}

RETURN_PATIENCE_S = 20.0  # for a job that is just passing its point of no return
SUBMIT_PATIENCE_S = 20.0  # for a majority that has just been lost, without our knowing yet


class JobQueue:
    """Jobs that have not ended, and the tasks that run them."""

    def __init__(
        self, store: Store, executor: Executor, archive: Archive, now: Callable[[], float]
    ) -> None:
        self._store, self._executor, self._archive, self._now = store, executor, archive, now
        self._archiving = Archiving(store, archive, now, self._needed)
        self._live: dict[JobId, RunningJob] = {}
        self._places = Places(self._limit, self._live.get, self._start)
        self._dependencies = Dependencies()
        self._arriving: dict[JobId, RunningJob] = {}  # are being stored
        self._tasks: set[asyncio.Task[Any]] = set()
        self._next: int  # number to be given; unknown before ``resume``, and nobody may ask for one
        executor.queue = self

    def resume(self) -> None:
        """Take up what the predecessor left: running jobs at once, the others in turn.

        Running ones need not wait for a place: they hold locks, and each of them was let in
        before. Jobs that this version cannot read end as errors when their turn has come.
        """
        self._next = 1 + self._store.state.newest_job  # with what a word has set aside
        for number in sorted(self._store.state.jobs):
            job = self._store.state.jobs[number]
            if not job.status.is_final:
                running = self._live[job.id] = RunningJob(job)
                if any(op.plan is not None and not op.status.is_final for op in job.ops):
                    log.info("job %s is resumed from its journal", job.id)
                    self._places.take(running)
                    self._start(running)
                else:
                    self._executor.reserve(running)
                    self._enqueue(running)
        self._places.fill()

    async def close(self) -> None:
        """Stop running jobs where they stand; a successor goes on with them."""
        self._places.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def find(self, number: JobId) -> Job | None:
        """Return the newest version of a job, or None."""
        live = self._live.get(number)
        return live.shown if live else self._store.state.jobs.get(number)

    def newest(self, state: State) -> State:
        """Return ``state`` with the jobs that run as they are now."""
        live = {number: running.shown for number, running in self._live.items()}
        return State(
            state.config, state.jobs.update(live), state.secrets, state.stamp, state.newest_job
        )

    async def submit(
        self, batches: Sequence[Sequence[Mapping[str, Any]]], *, to_drained: bool = False
    ) -> list[JobId | GntError]:
        """Store jobs durably and queue them.

        Args:
            batches: for each job its operations in wire form.
            to_drained: submit even if the queue is drained.

        Returns:
            For each job its number, or why it was refused.

        Raises:
            QueueDrained: it takes no jobs.
            Conflict: the state can't be changed now.
            Unreachable: it is not known whether it was stored; it still may be, and run.
            InvalidRequest: one of them makes no sense; then none is taken, as in Ganeti.
        """
        self._store.check_writable()
        if self._store.state.config.cluster.queue_drained and not to_drained:
            raise QueueDrained(
                "The job queue is drained and takes no jobs; “gnt-cluster queue undrain” opens it."
            )
        answers, jobs = self.read(batches, await self._archived_of(batches))
        nonsense = next((each for each in answers if isinstance(each, InvalidRequest)), None)
        if nonsense is not None:
            raise nonsense
        if jobs:
            self._arriving |= {job.id: job for job in jobs}
            storing = asyncio.get_running_loop().create_task(
                self._store_jobs(jobs), name="submission"
            )
            self._tasks.add(storing)
            storing.add_done_callback(self._admitted)
            await asyncio.wait({storing}, timeout=SUBMIT_PATIENCE_S)
            if not storing.done():
                why = " ".join(f"{name}: {error}" for name, error in self._store.troubles.items())
                raise Unreachable(
                    f"{_not_yet_stored([job.id for job in jobs])} {why}".rstrip(),
                    jobs=[job.id for job in jobs],
                )
            storing.result()
        return answers

    async def wait_for_change(
        self, number: JobId, differs: Callable[[Job], bool], timeout_s: float
    ) -> Job | None:
        """Return the job as soon as ``differs`` says so or it has ended; None after the time.

        Raises:
            JobLost: no such job.
        """
        job = self.find(number)
        if job is None:
            return await self._archived(number)
        try:
            async with asyncio.timeout(timeout_s):
                while not (job.status.is_final or differs(job)):
                    live = self._live.get(number)
                    if live is None:
                        break
                    await live.next_change()
                    job = live.shown
        except TimeoutError:
            return None
        return self.find(number)

    async def cancel(self, number: JobId) -> tuple[bool, str]:
        """Ask a job to end; what a running one has done is undone.

        Once this returns True, the job does not succeed, whoever is master then.

        Returns:
            Whether it will end for that, and a sentence.

        Raises:
            JobLost: no such job.
            Unreachable: the wish is heeded, but could not be stored; a successor may not know it.
        """
        job = self.find(number) or await self._archived(number)
        running = self._live.get(number)
        if running is None or running.job.status.is_final:
            return False, f"Job {number} has ended already ({job.status})."
        if running.task is None:
            self._places.leave(number)
            await self._in_time(self._cancel_queued(running))
            return True, f"Job {number} is cancelled."
        if refusal := running.too_late():
            return False, refusal
        running.change(cancel_wanted=True)
        running.cancel_wanted.set()
        await self._in_time(self._store.commit([running.put()]))
        with suppress(TimeoutError):
            async with asyncio.timeout(RETURN_PATIENCE_S):
                while running.is_returning:
                    await running.next_change()
        if running.is_returning:
            return False, f"Job {number} can perhaps not be stopped; “gnt-job why {number}” tells."
        undone = running.job.status is Status.CANCELED or running.is_undoing
        if not undone and (refusal := running.too_late()):
            return False, refusal
        return True, f"Job {number} is being cancelled; what it did is undone first."

    async def archive(self, number: JobId) -> bool:
        """Put a job that has ended out of sight; False if it has not ended.

        Raises:
            JobLost: no such job.
        """
        job = self.find(number)
        if job is None:
            await self._archived(number)
            return True
        if not job.status.is_final:
            return False
        await self._archiving.archive(job)
        return True

    async def auto_archive(self, age_s: float | None, patience_s: float) -> tuple[int, int]:
        """Archive jobs that have ended, and delete those archived too long ago.

        Args:
            age_s: archive what ended longer ago than that; negative: all that ended; None: as the
                cluster's parameters say.
            patience_s: about how long this may take; the rest is left for the next time.

        Returns:
            How many were archived, and how many are left in sight.
        """
        cluster = self._store.state.config.cluster
        age_s = cluster.archive_jobs_after_s if age_s is None else age_s
        told = await self._archiving.archive_old(age_s, patience_s / 2)
        if cluster.delete_jobs_after_s is not None:
            deleted = await self._archiving.delete_old(cluster.delete_jobs_after_s, patience_s / 2)
            if deleted:
                log.info("deleted %s archived jobs", deleted)
        return told

    async def change_priority(self, number: JobId, priority: int) -> tuple[bool, str]:
        """Change the priority of operations that wait, be it in the queue or for locks.

        Returns:
            Whether there was one, and a sentence.

        Raises:
            JobLost: no such job.
            InvalidRequest: that is no priority.
        """
        check_priority(priority)
        job = self.find(number) or await self._archived(number)
        running = self._live.get(number)
        if running is None or running.job.status.is_final:
            return False, f"Job {number} has ended ({job.status}); its priority stays."
        waiting = [
            index
            for index, op in enumerate(running.job.ops)
            if op.status in (Status.QUEUED, Status.WAITING)
        ]
        if not waiting:
            return False, f"Job {number} runs; a priority only orders jobs that wait."
        for index in waiting:
            running.change_op(index, priority=priority)
        if self._places.before(number) is not None:
            self._places.stand_in_line(running)
        self._executor.change_priority(running, priority)
        await self._store.commit([running.put()])
        return True, f"Job {number} has priority {priority} now."

    def why(self, number: JobId) -> list[Reason]:
        """Say what a job that has not ended waits for; nothing of any other."""
        running = self._live.get(number)
        if running is None or running.job.status.is_final:
            return []
        standing = Standing(
            running,
            dependencies=self._dependencies.of(number),
            before=self._places.before(number),
            places=self._limit(),
            obstacles=self._executor.obstacles(running),
        )
        return reasons(standing, self.find, self._store.state.config)

    async def explain(self, number: JobId) -> tuple[Job, list[Reason]]:
        """Return a job, and what it waits for.

        Raises:
            JobLost: no such job.
        """
        return self.find(number) or await self._archived(number), self.why(number)

    def read(
        self, batches: Batches, archived: Mapping[JobId, Job] = NOTHING
    ) -> tuple[list[JobId | GntError], list[RunningJob]]:
        """Read jobs and number them; an answer for each, and those that make sense.

        Args:
            batches: for each job its operations in wire form.
            archived: those of the archive that these jobs may depend on.
        """
        answers: list[JobId | GntError] = []
        jobs: list[RunningJob] = []
        for batch in batches:
            try:
                before = [job.id for job in jobs]
                jobs.append(RunningJob(*self._read(batch, before, archived)))
                answers.append(jobs[-1].id)
            except GntError as error:
                answers.append(error)
        return answers, jobs

    def admit(self, jobs: Sequence[RunningJob]) -> None:
        """Queue jobs that are stored."""
        for job in jobs:
            self._live[job.id] = job
            self._enqueue(job)
        self._places.fill()

    async def _store_jobs(self, jobs: Sequence[RunningJob]) -> None:
        try:
            await self._store.commit([job.put() for job in jobs])
            self.admit(jobs)
        finally:
            for job in jobs:
                del self._arriving[job.id]

    def _admitted(self, storing: asyncio.Task[None]) -> None:
        self._tasks.discard(storing)
        if not storing.cancelled() and storing.exception():
            log.info("a submission was not stored: %s", storing.exception())

    def _read(
        self,
        batch: Sequence[Mapping[str, Any]],
        before: list[JobId],
        archived: Mapping[JobId, Job],
    ) -> Submitted:
        submitted = read_job(
            batch, JobId(self._next), now=self._now(), before=before,
            find=lambda number: self.find(number) or archived.get(number),
        )  # fmt: skip
        self._next += 1
        return submitted

    async def _archived(self, number: JobId) -> Job:
        """Return a job that is in the archive.

        Raises:
            JobLost: it is not even there.
        """
        job = await self._archive.find(number)
        if job is None:
            raise JobLost(f"There is no job {number}.", job=number)
        return job

    async def _archived_of(self, batches: Batches) -> dict[JobId, Job]:
        """Return those archived jobs that some of these depend on."""
        numbers = {n for batch in batches for n in dependencies_of(batch) if not self.find(n)}
        found = [await self._archive.find(number) for number in sorted(numbers)]
        return {job.id: job for job in found if job is not None}

    def _needed(self) -> set[JobId]:
        """Return the jobs that others, which have not ended, depend on."""
        jobs = (*self._live.values(), *self._arriving.values())
        return {dependency.job for each in jobs for dependency in each.job.depends}

    def _enqueue(self, running: RunningJob) -> None:
        unmet = (d.job for d in running.job.depends if not self._has_ended(d.job))
        if not self._dependencies.add(running.id, unmet):
            self._places.stand_in_line(running)

    def _has_ended(self, number: JobId) -> bool:
        job = self.find(number)
        return job is None or job.status.is_final

    def leave_place(self, running: RunningJob) -> None:
        """Let another job run while this one waits for its locks."""
        self._places.leave(running.id)

    async def take_place(self, running: RunningJob) -> None:
        """Wait for a place to run."""
        await self._places.take_again(running)

    def _limit(self) -> int:
        return self._store.state.config.cluster.max_running_jobs

    def _start(self, running: RunningJob) -> None:
        running.task = asyncio.get_running_loop().create_task(
            self._run(running), name=f"job {running.id}"
        )
        self._tasks.add(running.task)

    async def _run(self, running: RunningJob) -> None:
        try:
            unmet = next((d for d in running.job.depends if not self._is_met(d)), None)
            if unmet:
                await self._refuse(running, unmet)
            else:
                await self._executor.carry_out(running)
        except (Deposed, Unreachable):
            return  # the store has stopped, and so does the daemon; whoever is master next goes on
        finally:
            if running.task:
                self._tasks.discard(running.task)
            if running.shown.status.is_final:
                self._ended(running)
            self._places.leave(running.id)

    def _is_met(self, dependency: Dependency) -> bool:
        job = self.find(dependency.job)
        return job is not None and job.status in dependency.statuses

    async def _refuse(self, running: RunningJob, unmet: Dependency) -> None:
        why = f"Job {unmet.job}, which this one depends on, did not end as required."
        failure = Failure(code=Conflict.code, message=why)
        await self._close_all(running, Status.ERROR, failure)

    async def _cancel_queued(self, running: RunningJob) -> None:
        failure = Failure(code=Cancelled.code, message=f"Job {running.id} was cancelled.")
        await self._close_all(running, Status.CANCELED, failure)
        self._ended(running)

    async def _close_all(self, running: RunningJob, status: Status, failure: Failure) -> None:
        for index, op in enumerate(running.job.ops):
            if not op.status.is_final:
                running.end_op(index, status=status, failure=failure, ended=self._now())
        running.change(ended=self._now())
        await self._store.commit([running.put()])
        running.show()

    async def _in_time(self, storing: Coroutine[Any, Any, object]) -> None:
        """Have a change stored; give up waiting for that after a while.

        Raises:
            Unreachable: it is not known whether it was stored.
        """
        task = asyncio.get_running_loop().create_task(storing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.wait({task}, timeout=SUBMIT_PATIENCE_S)
        if not task.done():
            raise Unreachable(
                "This could not be stored on a majority of the master candidates yet. This "
                "coordinator heeds it; one that takes over meanwhile may not know of it."
            )
        task.result()

    def _ended(self, running: RunningJob) -> None:
        self._live.pop(running.id, None)
        self._executor.release(running)
        for number in self._dependencies.ended(running.id):
            dependant = self._live.get(number)
            if dependant is not None and dependant.task is None:
                self._places.stand_in_line(dependant)
        self._places.fill()


def _not_yet_stored(numbers: Sequence[JobId]) -> str:
    """Say what is known of jobs that no majority has confirmed: whether they run is open."""
    first = numbers[0]
    which = f"job {first}" if len(numbers) == 1 else f"the jobs {first} to {numbers[-1]}"
    return (
        f"It is not known whether {which} will run: no majority of the master candidates has "
        "confirmed to have stored it. If this node stays the master, it will be stored and run "
        "as soon as they answer; if another one becomes master before, it may run there or be "
        f"lost. Once a majority answers, “gnt-job info {first}” on the master tells: a job that "
        "it does not know, or knows as another one, was lost and never ran."
    )
