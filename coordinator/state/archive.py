"""Archived jobs: they are on disk only, and are asked for one by one or page by page."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import NamedTuple

from common.errors import NodeFailure
from common.messages import Report, from_json
from common.model.job import ArchivedJob, Job, Timestamp
from common.model.stamp import Stamp
from common.names import LARGEST_COUNT, JobId
from common.noderpc.replica import ArchivePage, Replica, Row
from coordinator.state.rows import from_row

FIRST, LAST = JobId(0), JobId(LARGEST_COUNT)
PAGE_JOBS = 200
LOOKS, PAUSE_S = 50, 0.1


class Old(NamedTuple):
    """An archived job, as far as it matters for when it is deleted."""

    id: JobId
    ended: Timestamp


class Archive:
    """What the replica of this node has of the archive.

    The calls raise NodeFailure or Unreachable where it cannot be read.

    Args:
        replica: gives that replica.
        stamp: gives that of the newest durable state: what was archived by then is found.
    """

    def __init__(self, replica: Callable[[], Replica], stamp: Callable[[], Stamp]) -> None:
        self._replica, self._stamp = replica, stamp

    async def find(self, number: JobId) -> Job | None:
        """Return an archived job, or None.

        Raises:
            InvalidRequest: another version wrote it, and this one cannot read it.
        """
        page = await self._read(number, number)
        return next((_job(row) for row in page.rows), None)

    async def find_several(self, numbers: Iterable[JobId]) -> dict[JobId, Job]:
        """Return those of some jobs that are archived; errors as of ``find``."""
        found = [await self.find(number) for number in sorted(numbers)]
        return {job.id: job for job in found if job is not None}

    async def newest_first(self, last: JobId = LAST) -> AsyncIterator[Job]:
        """Yield archived jobs from ``last`` on, down to the oldest."""
        while last > FIRST:
            page = await self._read(FIRST, last, newest_first=True)
            for row in page.rows:
                yield _job(row)
            if not page.more:
                return
            last = JobId(int(page.rows[-1].id) - 1)

    async def oldest(self) -> list[Old]:
        """Return the archived jobs with the lowest numbers, some hundreds at most."""
        page = await self._read(FIRST, LAST)
        ages = [from_json(bytes(row.body), _Wrapped, what="an archived job") for row in page.rows]
        return [
            Old(JobId(int(row.id)), age.job.ended or age.job.received)
            for row, age in zip(page.rows, ages, strict=True)
        ]

    async def _read(self, first: JobId, last: JobId, *, newest_first: bool = False) -> ArchivePage:
        """Read a page; this replica may be a moment behind the majority."""
        newest = self._stamp()
        for _ in range(LOOKS):
            page = await self._replica().read_archive(
                first=first, last=last, newest_first=newest_first, limit=PAGE_JOBS
            )
            if page.stamp.age >= newest.age:
                return page
            await asyncio.sleep(PAUSE_S)
        raise NodeFailure(
            "The archive cannot be read: this node does not store the state just now. “gnt-cluster "
            "verify” tells more."
        )


class _Age(Report):
    """What any version writes; another one's jobs are deleted when they are old, too."""

    received: Timestamp = 0.0
    ended: Timestamp | None = None


class _Wrapped(Report):
    job: _Age


def _job(row: Row) -> Job:
    item = from_row(row)
    assert isinstance(item, ArchivedJob)
    return item.job
