"""The job queue: takes jobs, starts them when their time has come, and tells how they are."""

import logging
from collections.abc import Callable, Sequence

from common.errors import Conflict, Deposed, GntError, Unreachable
from common.model.job import Dependency, Job, Status
from common.names import JobId
from common.tasks import Background
from coordinator.jobs.archiving import Archiving
from coordinator.jobs.cancelling import Cancelling
from coordinator.jobs.executor import Executor
from coordinator.jobs.held import Held
from coordinator.jobs.intake import Intake
from coordinator.jobs.known import KnownJobs
from coordinator.jobs.line import Dependencies
from coordinator.jobs.places import Places
from coordinator.jobs.rules import Rules
from coordinator.jobs.running import RunningJob
from coordinator.jobs.submission import check_priority
from coordinator.jobs.why import Reason, Standing, reasons, why_unstored
from coordinator.operations.base import Batches
from coordinator.operations.follow_up import FollowUps
from coordinator.state.archive import Archive
from coordinator.state.state import State
from coordinator.state.store import Store

log = logging.getLogger(__name__)


class JobQueue:
    """Jobs that have not ended, and the tasks that run them."""

    def __init__(
        self, store: Store, executor: Executor, archive: Archive, now: Callable[[], float]
    ) -> None:
        self._store, self._executor = store, executor
        self._jobs = jobs = KnownJobs(store, archive)
        self._background = background = Background()
        self._dependencies = Dependencies()
        self._held = held = Held()
        self._places = places = Places(self._limit, jobs.live.get, held.may_begin, self._start)
        self._intake = intake = Intake(jobs, store, archive, now, background, self.admit)
        self.rules = Rules(
            store, background, jobs, held, places, lambda: intake.newest, self._start
        )
        self._cancelling = Cancelling(jobs, store, places, executor, background, self._ended)
        self._archiving = Archiving(store, archive, now, jobs.needed)
        executor.queue = self

    def resume(self) -> None:
        """Take up what the predecessor left: running jobs at once, the others in turn.

        Running ones need not wait for a place: they hold locks, and each of them was let in
        before. Jobs that this version cannot read end as errors when their turn has come.
        """
        self._intake.resume()
        self.rules.heed()
        for number in sorted(self._store.state.jobs):
            job = self._store.state.jobs[number]
            if not job.status.is_final:
                running = self._jobs.live[job.id] = RunningJob(job)
                self._executor.reserve(running)
                if any(op.plan is not None and not op.status.is_final for op in job.ops):
                    log.info("job %s is resumed from its journal", job.id)
                    self._places.take(running)
                    self._start(running)
                else:
                    self._enqueue(running)
        self._places.fill()

    async def close(self) -> None:
        """Stop running jobs where they stand; a successor goes on with them."""
        self._places.close()
        await self._background.close()

    def find(self, number: JobId) -> Job | None:
        """Return the newest version of a job that is not archived, or None."""
        return self._jobs.find(number)

    def newest(self, state: State) -> State:
        """Return ``state`` with the jobs that run as they are now."""
        return self._jobs.newest(state)

    async def submit(self, batches: Batches, *, to_drained: bool = False) -> list[JobId | GntError]:
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
        return await self._intake.submit(batches, to_drained=to_drained)

    async def wait_for_change(
        self, number: JobId, differs: Callable[[Job], bool], timeout_s: float
    ) -> Job | None:
        """Return the job as soon as ``differs`` says so or it has ended; None after the time.

        Raises:
            JobLost: no such job.
        """
        return await self._jobs.wait_for_change(number, differs, timeout_s)

    async def cancel(self, number: JobId) -> tuple[bool, str]:
        """Ask a job to end; what a running one has done is undone.

        Once this returns True, the job does not succeed, whoever is master then.

        Returns:
            Whether it will end for that, and a sentence.

        Raises:
            JobLost: no such job.
            Unreachable: the wish is heeded, but could not be stored; a successor may not know it.
        """
        return await self._cancelling.cancel(number)

    async def archive(self, number: JobId) -> bool:
        """Put a job that has ended out of sight; False if it has not ended.

        Raises:
            JobLost: no such job.
        """
        job = await self._jobs.get(number)
        if job.status.is_final:
            await self._archiving.archive(job)
        return job.status.is_final

    async def auto_archive(self, age_s: float | None, patience_s: float) -> tuple[int, int]:
        """Archive jobs that have ended; see ``Archiving``."""
        return await self._archiving.auto_archive(age_s, patience_s)

    async def change_priority(self, number: JobId, priority: int) -> tuple[bool, str]:
        """Change the priority of operations that wait, be it in the queue or for locks.

        Returns:
            Whether there was one, and a sentence.

        Raises:
            JobLost: no such job.
            InvalidRequest: that is no priority.
        """
        check_priority(priority)
        job = await self._jobs.get(number)
        running = self._jobs.unended(number)
        if running is None:
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
        if self._places.before(number) is not None or self._held.let_go(number):
            self._places.stand_in_line(running)
            self._places.fill()
        self._executor.change_priority(running, priority)
        await self._store.commit([running.put()])
        return True, f"Job {number} has priority {priority} now."

    def why(self, number: JobId) -> list[Reason]:
        """Say what a job that has not ended waits for; nothing of any other."""
        running = self._jobs.unended(number)
        if running is None:
            return []
        standing = Standing(
            running,
            dependencies=self._dependencies.of(number),
            before=self._places.before(number),
            places=self._limit(),
            limit=self._held.holds(number),
            obstacles=self._executor.obstacles(running),
            unstored=why_unstored(self._store),
        )
        return reasons(standing, self._jobs.find, self._store.state.config)

    async def explain(self, number: JobId) -> tuple[Job, list[Reason]]:
        """Return a job, and what it waits for.

        Raises:
            JobLost: no such job.
        """
        return await self._jobs.get(number), self.why(number)

    def read(self, jobs: FollowUps) -> tuple[list[JobId | GntError], list[RunningJob]]:
        """Read and number jobs of an operation; an answer for each, and those that make sense."""
        return self._intake.read(jobs)

    def admit(self, jobs: Sequence[RunningJob]) -> None:
        """Queue jobs that are stored."""
        for job in jobs:
            self._jobs.live[job.id] = job
            self._enqueue(job)
        self._places.fill()

    def leave_place(self, running: RunningJob) -> None:
        """Let another job run while this one waits for its locks."""
        self._places.leave(running.id)

    async def take_place(self, running: RunningJob) -> None:
        """Wait for a place to run."""
        await self._places.take_again(running)

    def _enqueue(self, running: RunningJob) -> None:
        if self.rules.reject(running):
            return
        unmet = (d.job for d in running.job.depends if not self._has_ended(d.job))
        if not self._dependencies.add(running.id, unmet):
            self._places.stand_in_line(running)

    def _has_ended(self, number: JobId) -> bool:
        job = self._jobs.find(number)
        return job is None or job.status.is_final

    def _limit(self) -> int:
        return self._store.state.config.cluster.max_running_jobs

    def _start(self, running: RunningJob, refusal: GntError | None = None) -> None:
        self._held.note_begun(running.job)
        running.task = self._background.start(self._run(running, refusal), name=f"job {running.id}")

    async def _run(self, running: RunningJob, refusal: GntError | None) -> None:
        try:
            unmet = next((d for d in running.job.depends if not self._is_met(d)), None)
            if unmet and refusal is None:
                why = f"Job {unmet.job}, which this one depends on, did not end as required."
                refusal = Conflict(why)
            if refusal is not None:
                await self._executor.give_up(running, refusal)
            else:
                await self._executor.carry_out(running)
        except (Deposed, Unreachable):
            return  # the store has stopped, and so does the daemon; whoever is master next goes on
        finally:
            if running.shown.status.is_final:
                self._ended(running)
            self._places.leave(running.id)

    def _is_met(self, dependency: Dependency) -> bool:
        job = self._jobs.find(dependency.job)
        return job is not None and job.status in dependency.statuses

    def _ended(self, running: RunningJob) -> None:
        self._jobs.live.pop(running.id, None)
        self._executor.release(running)
        for number in self._held.ended(running.id):
            self._places.stand_in_line(self._jobs.live[number])
        for number in self._dependencies.ended(running.id):
            dependant = self._jobs.live.get(number)
            if dependant is not None and dependant.task is None:
                self._places.stand_in_line(dependant)
        self._places.fill()
