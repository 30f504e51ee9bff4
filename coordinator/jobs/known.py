"""The jobs there are: in memory until they have ended, in the state from then on, then archived."""

import asyncio
from collections.abc import Callable

from common.luxi.failures import JobLost
from common.model.job import Job
from common.names import JobId
from coordinator.jobs.running import RunningJob
from coordinator.state.archive import Archive
from coordinator.state.state import State
from coordinator.state.store import Store


class KnownJobs:
    """Finds a job wherever it is."""

    def __init__(self, store: Store, archive: Archive) -> None:
        self._store, self._archive = store, archive
        self.live: dict[JobId, RunningJob] = {}  # have not ended
        self.arriving: dict[JobId, RunningJob] = {}  # are being stored for the first time

    def unended(self, number: JobId) -> RunningJob | None:
        """Return a job that has not ended; None for one that has, even if that is not shown yet."""
        running = self.live.get(number)
        return None if running is None or running.job.status.is_final else running

    def find(self, number: JobId) -> Job | None:
        """Return the newest version of a job that is not archived, or None."""
        live = self.live.get(number)
        return live.shown if live else self._store.state.jobs.get(number)

    async def get(self, number: JobId) -> Job:
        """Return the newest version of a job, archived or not.

        Raises:
            JobLost: no such job.
        """
        job = self.find(number) or await self._archive.find(number)
        if job is None:
            raise JobLost(f"There is no job {number}.", job=number)
        return job

    async def wait_for_change(
        self, number: JobId, differs: Callable[[Job], bool], timeout_s: float
    ) -> Job | None:
        """Return the job as soon as ``differs`` says so or it has ended; None after the time.

        Raises:
            JobLost: no such job.
        """
        job = await self.get(number)
        try:
            async with asyncio.timeout(timeout_s):
                while not (job.status.is_final or differs(job)):
                    live = self.live.get(number)
                    if live is None:
                        break
                    await live.next_change()
                    job = live.shown
        except TimeoutError:
            return None
        return self.find(number) or job

    def newest(self, state: State) -> State:
        """Return ``state`` with the jobs that run as they are now."""
        return state.showing(running.shown for running in self.live.values())

    def needed(self) -> set[JobId]:
        """Return the jobs on which others depend that have not ended."""
        jobs = (*self.live.values(), *self.arriving.values())
        return {dependency.job for each in jobs for dependency in each.job.depends}
