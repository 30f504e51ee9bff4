"""Put jobs that have ended out of sight, and in the end out of the world.

A job leaves the state and enters the archive with one commit. Whatever there is to do is done in
small commits, so that it holds up nobody, and may be broken off between any two of them.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import takewhile

from msgspec.structs import replace

from common.messages import to_json
from common.model.job import ArchivedJob, Job
from common.names import JobId
from coordinator.state.archive import Archive
from coordinator.state.rows import Delete, Put, Update
from coordinator.state.store import Store

log = logging.getLogger(__name__)

BATCH_JOBS, BATCH_BYTES = 200, 2**20  # of one commit


class Archiving:
    """Moves jobs from the state to the archive, and deletes them there.

    Args:
        store: the state.
        archive: where to.
        now: seconds since 1970.
        needed: jobs that others, which have not ended, depend on; they stay.
    """

    def __init__(
        self,
        store: Store,
        archive: Archive,
        now: Callable[[], float],
        needed: Callable[[], Collection[JobId]],
    ) -> None:
        self._store, self._archive, self._now, self._needed = store, archive, now, needed

    async def archive(self, job: Job) -> None:
        """Put one job out of sight.

        The newest one, and one that others depend on, stays in the state for the time being, only
        marked: the one keeps its number from being given again, the other is still looked at.
        """
        if job.id not in self._store.state.jobs:
            return  # it is out of sight
        if self._leaving([job]):
            await self._store.commit(_moved([job]))
        else:
            await self._store.commit([Put(replace(job, archived=True))])

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
        told = await self._archive_old(age_s, patience_s / 2)
        if cluster.delete_jobs_after_s is not None:
            deleted = await self._delete_old(cluster.delete_jobs_after_s, patience_s / 2)
            if deleted:
                log.info("deleted %s archived jobs", deleted)
        return told

    async def _archive_old(self, age_s: float, patience_s: float) -> tuple[int, int]:
        """Archive jobs that ended longer ago than ``age_s``, as many as there is time for.

        Args:
            age_s: seconds; negative: all that have ended.
            patience_s: begin nothing after that.

        Returns:
            How many were archived, and how many are left in sight.
        """
        limit = self._now() - age_s
        until = asyncio.get_running_loop().time() + patience_s
        jobs = self._store.state.jobs
        old = [
            job
            for _, job in sorted(jobs.items())
            if job.archived or age_s < 0 or (job.ended or job.received) < limit
        ]
        done = 0
        for batch in _batches(self._leaving(old)):
            if done and asyncio.get_running_loop().time() >= until:
                break
            leaving = self._leaving(batch)  # others may depend on them by now
            await self._store.commit(_moved(leaving))
            done += len(leaving)
        return done, sum(not job.archived for job in self._store.state.jobs.values())

    async def _delete_old(self, age_s: float, patience_s: float) -> int:
        """Delete archived jobs that ended longer ago than ``age_s``; return how many.

        By number, the lowest first: one that took very long keeps those after it a little longer.
        """
        limit = self._now() - age_s
        until = asyncio.get_running_loop().time() + patience_s
        done = 0
        while True:
            due = list(takewhile(lambda job: job.ended < limit, await self._archive.oldest()))
            if not due:
                return done
            last = ArchivedJob(job=Job(id=due[-1].id, ops=(), received=0.0))
            await self._store.commit([Delete(last)])
            done += len(due)
            if asyncio.get_running_loop().time() >= until:
                return done

    def _leaving(self, jobs: Sequence[Job]) -> list[Job]:
        """Return those of some jobs that may leave the state now."""
        state, needed = self._store.state, self._needed()
        return [
            job
            for job in jobs
            if job.status.is_final
            and job.id in state.jobs
            and job.id != state.newest_job
            and job.id not in needed
        ]


def _moved(jobs: Sequence[Job]) -> list[Update]:
    """Return the updates that bring jobs from the state to the archive."""
    put = [Put(ArchivedJob(job=replace(job, archived=True))) for job in jobs]
    return [*(Delete(job) for job in jobs), *put]


def _batches(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += len(to_json(job))
        if len(batch) >= BATCH_JOBS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
