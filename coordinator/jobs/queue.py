"""The job queue: takes jobs, starts them when their time has come, and tells how they are."""

import asyncio
import heapq
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from common.errors import Conflict, Deposed, GntError, Unreachable
from common.luxi.failures import JobLost, QueueDrained
from common.model.job import Dependency, Failure, Job, Status
from common.names import JobId
from coordinator.jobs.executor import Executor
from coordinator.jobs.running import RunningJob
from coordinator.jobs.submission import check_priority, read_job
from coordinator.operations.base import Batches
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.store import Store

log = logging.getLogger(__name__)

SUBMIT_PATIENCE_S = 20.0  # for a majority that has just been lost, without our knowing yet


class JobQueue:
    """Jobs that have not ended, and the tasks that run them."""

    def __init__(self, store: Store, executor: Executor, now: Callable[[], float]) -> None:
        self._store, self._executor, self._now = store, executor, now
        self._live: dict[JobId, RunningJob] = {}
        self._ready: list[tuple[int, JobId]] = []  # heap: priority, then age
        self._dependants: dict[JobId, list[JobId]] = {}
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._next = 1 + store.state.newest_job
        self._closed = False
        executor.queue = self

    def resume(self) -> None:
        """Take up what the predecessor left: running jobs at once, the others in turn.

        Running ones are not counted against the limit: they hold locks, and each of them
        was let in before.
        """
        for number in sorted(self._store.state.jobs):
            job = self._store.state.jobs[number]
            if not job.status.is_final:
                running = self._live[job.id] = RunningJob(job)
                if any(op.plan is not None and not op.status.is_final for op in job.ops):
                    log.info("job %s is resumed from its journal", job.id)
                    self._start(running)
                else:
                    self._executor.reserve(running)
                    self._enqueue(running)
        self._fill()

    async def close(self) -> None:
        """Stop running jobs where they stand; a successor goes on with them."""
        self._closed = True
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
            Unreachable: it could not be stored yet, and still may be.
        """
        self._store.check_writable()
        if self._store.state.config.cluster.queue_drained and not to_drained:
            raise QueueDrained(
                "The job queue is drained and takes no jobs; “gnt-cluster queue undrain” opens it."
            )
        answers, jobs = self.read(batches)
        if jobs:
            storing = asyncio.get_running_loop().create_task(
                self._store_jobs(jobs), name="submission"
            )
            self._tasks.add(storing)
            storing.add_done_callback(self._admitted)
            await asyncio.wait({storing}, timeout=SUBMIT_PATIENCE_S)
            if not storing.done():
                why = " ".join(f"{name}: {error}" for name, error in self._store.troubles.items())
                raise Unreachable(
                    "The job could not be stored on a majority of the master candidates yet; it "
                    f"will run as soon as it is. “gnt-job list” then shows it. {why}".rstrip(),
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
            raise JobLost(f"There is no job {number}.", job=number)
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

        Returns:
            Whether it will end for that, and a sentence.

        Raises:
            JobLost: no such job.
        """
        job = self.find(number)
        if job is None:
            raise JobLost(f"There is no job {number}.", job=number)
        running = self._live.get(number)
        if running is None or job.status.is_final:
            return False, f"Job {number} has ended already ({job.status})."
        if running.past_return:
            return False, f"Job {number} has passed its point of no return and runs to its end."
        running.cancel_wanted.set()
        if running.task is None:
            await self._cancel_queued(running)
            return True, f"Job {number} is cancelled."
        return True, f"Job {number} is being cancelled; what it did is undone first."

    async def archive(self, number: JobId) -> bool:
        """Put a job that has ended out of sight; False if it has not ended."""
        job = self.find(number)
        if job is None:
            raise JobLost(f"There is no job {number}.", job=number)
        if not job.status.is_final:
            return False
        await self._store.commit([Put(replace(job, archived=True))])
        return True

    async def auto_archive(self, age_s: float) -> tuple[int, int]:
        """Archive all jobs that ended longer ago than ``age_s``; negative: all that ended.

        Returns:
            How many were archived, and how many are left.
        """
        jobs = [job for job in self._store.state.jobs.values() if not job.archived]
        limit = self._now() - age_s
        old = [
            job
            for job in jobs
            if job.id not in self._live
            and job.status.is_final
            and (age_s < 0 or (job.ended or job.received) < limit)
        ]
        await self._store.commit([Put(replace(job, archived=True)) for job in old])
        return len(old), len(jobs) - len(old)

    async def change_priority(self, number: JobId, priority: int) -> tuple[bool, str]:
        """Change the priority of operations that have not begun."""
        check_priority(priority)
        running = self._live.get(number)
        if running is None:
            return False, f"Job {number} is not waiting."
        for index, op in enumerate(running.job.ops):
            if op.status is Status.QUEUED:
                running.change_op(index, priority=priority)
        if running.task is None:
            self._enqueue(running)
        await self._store.commit([running.put()])
        return True, f"Job {number} has priority {priority} now."

    def read(self, batches: Batches) -> tuple[list[JobId | GntError], list[RunningJob]]:
        """Read jobs and number them; an answer for each, and those that make sense."""
        answers: list[JobId | GntError] = []
        jobs: list[RunningJob] = []
        for batch in batches:
            try:
                jobs.append(RunningJob(self._read(batch, [job.id for job in jobs])))
                answers.append(jobs[-1].id)
            except GntError as error:
                answers.append(error)
        return answers, jobs

    def admit(self, jobs: Sequence[RunningJob]) -> None:
        """Queue jobs that are stored."""
        for job in jobs:
            self._live[job.id] = job
            self._enqueue(job)
        self._fill()

    async def _store_jobs(self, jobs: Sequence[RunningJob]) -> None:
        await self._store.commit([job.put() for job in jobs])
        self.admit(jobs)

    def _admitted(self, storing: asyncio.Task[None]) -> None:
        self._tasks.discard(storing)
        if not storing.cancelled() and storing.exception():
            log.info("a submission was not stored: %s", storing.exception())

    def _read(self, batch: Sequence[Mapping[str, Any]], before: list[JobId]) -> Job:
        job = read_job(
            batch, JobId(self._next), now=self._now(), before=before,
            exists=lambda number: self.find(number) is not None,
        )  # fmt: skip
        self._next += 1
        return job

    def _enqueue(self, running: RunningJob) -> None:
        waits = [d.job for d in running.job.depends if not self._has_ended(d.job)]
        for number in waits:
            self._dependants.setdefault(number, []).append(running.id)
        if not waits:
            priority = min(op.priority for op in running.job.ops)
            heapq.heappush(self._ready, (priority, running.id))

    def _has_ended(self, number: JobId) -> bool:
        job = self.find(number)
        return job is None or job.status.is_final

    def _fill(self) -> None:
        """Start ready jobs as long as there is room."""
        while (
            self._ready
            and not self._closed
            and self._running < self._store.state.config.cluster.max_running_jobs
        ):
            _, number = heapq.heappop(self._ready)
            running = self._live.get(number)
            if running is not None and running.task is None:
                self._start(running)

    def _start(self, running: RunningJob) -> None:
        self._running += 1
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
            self._running -= 1
            if running.task:
                self._tasks.discard(running.task)
            if running.job.status.is_final:
                self._ended(running)
            if not self._closed:
                self._fill()

    def _is_met(self, dependency: Dependency) -> bool:
        job = self.find(dependency.job)
        return job is not None and job.status in dependency.statuses

    async def _refuse(self, running: RunningJob, unmet: Dependency) -> None:
        why = f"Job {unmet.job}, which this one depends on, did not end as required."
        failure = Failure(code=Conflict.code, message=why)
        await self._close_all(running, Status.ERROR, failure)

    async def _cancel_queued(self, running: RunningJob) -> None:
        failure = Failure(code="cancelled", message=f"Job {running.id} was cancelled.")
        await self._close_all(running, Status.CANCELED, failure)
        self._ended(running)

    async def _close_all(self, running: RunningJob, status: Status, failure: Failure) -> None:
        for index in range(len(running.job.ops)):
            running.change_op(index, status=status, failure=failure, ended=self._now())
        running.change(ended=self._now())
        await self._store.commit([running.put()])
        running.show()

    def _ended(self, running: RunningJob) -> None:
        self._live.pop(running.id, None)
        self._executor.release(running)
        for number in self._dependants.pop(running.id, ()):
            dependant = self._live.get(number)
            if dependant is not None and dependant.task is None:
                self._enqueue(dependant)
