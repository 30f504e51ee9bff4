"""Archived jobs for a query: those it names, or the newest that fit its filter.

They are not in memory. A filter that looks at ``archived`` is meant for them; any other query is
about the jobs in sight.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from common.model.job import Job
from common.names import JobId
from coordinator.queries.filter import compile_filter, fields_of, names_asked
from coordinator.queries.job_fields import JOB_FIELDS, JobRow
from coordinator.queries.source import Source
from coordinator.state.archive import LAST, Archive

MOST = 1000  # of the archive in one answer, the newest; a filter by number reaches older ones
TURN = 20  # jobs, some milliseconds; then others get a turn


async def with_archived(source: Source, qfilter: Any) -> Source:
    """Return the source with what a query of jobs needs of the archive."""
    if source.archive is None:
        return source
    names = names_asked(qfilter, "id")
    if names is not None:
        return replace(source, archived=await _named(source.archive, source, names))
    if "archived" not in fields_of(qfilter):
        return source
    return replace(source, archived=await _newest(source.archive, qfilter))


async def _named(archive: Archive, source: Source, names: Iterable[Any]) -> Mapping[JobId, Job]:
    numbers = {JobId(int(name)) for name in names if str(name).isdecimal() and len(str(name)) < 16}
    return await archive.find_several(n for n in numbers if n not in source.state.jobs)


async def _newest(archive: Archive, qfilter: Any) -> Mapping[JobId, Job]:
    fits = compile_filter(qfilter, JOB_FIELDS)
    chosen: dict[JobId, Job] = {}
    looked = 0
    async for job in archive.newest_first(highest(qfilter)):
        looked += 1
        if fits(JobRow(job)):
            chosen[job.id] = job
            if len(chosen) == MOST:
                break
        if looked % TURN == 0:
            await asyncio.sleep(0)
    return chosen


def highest(qfilter: Any) -> JobId:
    """Return the highest number that a filter lets through, as far as that is easy to see."""
    match qfilter:
        case ["&", *parts]:
            return min((highest(part) for part in parts), default=LAST)
        case ["<", "id", int() as number]:
            return JobId(max(0, min(number - 1, LAST)))
        case ["<=", "id", int() as number]:
            return JobId(max(0, min(number, LAST)))
        case _:
            return LAST
