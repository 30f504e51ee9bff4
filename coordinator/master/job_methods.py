"""What the LUXI methods about jobs do: Ganeti's positional arguments, and its form of answers.

Source: luxi.py of Ganeti 3.0.
"""

from collections.abc import Callable
from typing import Any

from common.errors import GntError, InvalidRequest
from common.model.job import Job
from common.names import JobId
from coordinator.jobs.queue import JobQueue
from coordinator.queries.job_fields import job_values, wire_log

ARCHIVE_PATIENCE_S = 30.0
LONGEST_WAIT_S = 89.0  # less than any client's patience with the socket


class JobMethods:
    """Jobs are submitted, waited for, cancelled, put away, and explained."""

    def __init__(self, queue: JobQueue, now: Callable[[], float]) -> None:
        self._queue, self._now = queue, now

    async def submit(self, ops: Any) -> JobId:
        return _number((await self._queue.submit([_checked(ops)]))[0])

    async def submit_to_drained_queue(self, ops: Any) -> JobId:
        return _number((await self._queue.submit([_checked(ops)], to_drained=True))[0])

    async def submit_many(self, jobs: Any) -> list[list[Any]]:
        if not isinstance(jobs, list):
            raise InvalidRequest("SubmitManyJobs takes a list of jobs.")
        answers = await self._queue.submit([_checked(ops) for ops in jobs])
        return [
            [False, answer.message] if isinstance(answer, GntError) else [True, answer]
            for answer in answers
        ]

    async def wait_for_change(
        self, number: Any, fields: Any, before: Any, log_serial: Any, timeout_s: Any = 60.0
    ) -> Any:
        seen = int(log_serial or 0)

        def differs(job: Job) -> bool:
            return job_values(job, fields) != before or bool(_news(job, seen))

        patience_s = max(0.0, min(float(timeout_s), LONGEST_WAIT_S))
        job = await self._queue.wait_for_change(_job_id(number), differs, patience_s)
        if job is None:
            return "nochange"
        return [job_values(job, fields), _news(job, seen)]

    async def cancel(self, number: Any, kill: bool = False) -> Any:
        if kill:
            raise InvalidRequest(
                "A job is no process that can be killed: cancel it, and it is undone."
            )
        return await self._queue.cancel(_job_id(number))

    async def archive(self, number: Any) -> bool:
        return await self._queue.archive(_job_id(number))

    async def auto_archive(self, age_s: Any, timeout_s: Any = ARCHIVE_PATIENCE_S) -> Any:
        patience_s = max(0.0, min(float(timeout_s), ARCHIVE_PATIENCE_S))
        return await self._queue.auto_archive(None if age_s is None else float(age_s), patience_s)

    async def pick_up(self, number: Any) -> None:
        """Be told of a job in files of the queue: every job is known here once it is stored."""
        await self._queue.explain(_job_id(number))

    async def change_priority(self, number: Any, priority: Any) -> Any:
        return await self._queue.change_priority(_job_id(number), int(priority))

    async def why(self, number: Any) -> Any:
        """Ours: a job's status, and for each thing that it waits for what, and for how long."""
        job, reasons = await self._queue.explain(_job_id(number))
        now = self._now()
        return [
            job.status,
            [[each.what, None if each.since is None else now - each.since] for each in reasons],
        ]


def _checked(ops: Any) -> list[dict[str, Any]]:
    if not isinstance(ops, list) or not all(isinstance(op, dict) for op in ops):
        raise InvalidRequest("A job is a list of operations, each an object with OP_ID.")
    return ops


def _number(answer: JobId | GntError) -> JobId:
    if isinstance(answer, GntError):
        raise answer
    return answer


def _job_id(told: Any) -> JobId:
    try:
        return JobId(int(told))
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"“{told}” is no job number.") from error


def _news(job: Job, seen: int) -> list[Any]:
    """Return log entries after ``seen`` in Ganeti's form."""
    return [wire_log(entry) for op in job.ops for entry in op.log if entry.serial > seen]
