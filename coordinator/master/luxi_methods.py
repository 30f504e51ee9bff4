"""What each LUXI method does: Ganeti's names and positional arguments.

Source: luxi.py of Ganeti 3.0.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from common.errors import GntError, InvalidRequest
from common.luxi.answers import Request
from common.model.job import Job
from common.names import JobId
from coordinator.jobs.queue import JobQueue
from coordinator.master.figures import FigureTeller
from coordinator.master.rest_users import RestUserBook
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.questions import answer, read_question
from coordinator.queries.classic import (
    config_values,
    query_exports,
    query_jobs,
    query_objects,
    query_tags,
)
from coordinator.queries.cluster_info import cluster_info
from coordinator.queries.feed import Feed
from coordinator.queries.job_fields import job_values, wire_log
from coordinator.queries.query import query, query_fields
from coordinator.queries.source import Source
from coordinator.state.rows import Put
from coordinator.state.store import Store

END_OF_TIME = 2.0**35  # year 3058
ARCHIVE_PATIENCE_S = 30.0
LONGEST_WAIT_S = 89.0  # less than any client's patience with the socket

Method = Callable[..., Awaitable[Any]]


class LuxiMethods:
    """Everything a client may ask for. ``__call__`` is the server's handler."""

    def __init__(
        self,
        store: Store,
        queue: JobQueue,
        source: Callable[[], Source],
        look: Callable[[], Awaitable[Look]],
        feed: Feed,
        figures: FigureTeller,
        now: Callable[[], float],
        new_uuid: Callable[[], str],
        check_master: Callable[[], Awaitable[None]],
    ) -> None:
        self._now, self._new_uuid = now, new_uuid
        self._store, self._queue, self._source, self._look = store, queue, source, look
        self._check_master, self._feed = check_master, feed
        self._asking = asyncio.Lock()
        rest_users = RestUserBook(store)
        self._methods: dict[str, Method] = {
            "Query": self._query,
            "QueryFields": self._query_fields,
            "QueryInstances": self._classic("instance"),
            "QueryNodes": self._classic("node"),
            "QueryGroups": self._classic("group"),
            "QueryNetworks": self._classic("network"),
            "QueryFilters": self._classic("filter"),
            "QueryJobs": self._query_jobs,
            "QueryExports": self._query_exports,
            "QueryConfigValues": self._query_config_values,
            "QueryClusterInfo": self._query_cluster_info,
            "QueryTags": self._query_tags,
            "SubmitJob": self._submit_job,
            "SubmitJobToDrainedQueue": self._submit_job_to_drained_queue,
            "SubmitManyJobs": self._submit_many_jobs,
            "WaitForJobChange": self._wait_for_job_change,
            "CancelJob": self._cancel_job,
            "ArchiveJob": self._archive_job,
            "AutoArchiveJobs": self._auto_archive_jobs,
            "PickupJob": self._pick_up_job,
            "ChangeJobPriority": self._change_job_priority,
            "WhyJob": self._why_job,
            "ReplaceFilter": self._replace_filter,
            "DeleteFilter": self._queue.rules.delete,
            "SetDrainFlag": self._set_drain_flag,
            "SetWatcherPause": self._set_watcher_pause,
            "AskAllocator": self._ask_allocator,
            "Subscribe": self._subscribe,
            "NextChanges": self._next_changes,
            "Figures": figures.tell,
            "RestUsers": rest_users.read,
            "ChangeRestUsers": rest_users.change,
        }

    async def __call__(self, request: Request) -> Any:
        """Carry out one request.

        Raises:
            InvalidRequest: no such method.
            Deposed: this node turns out to be master no more.
            GntError: as the method says.
        """
        if request.method not in self._methods:
            raise InvalidRequest(f"There is no LUXI method “{request.method}”.")
        await self._check_master()
        return await self._methods[request.method](*request.args)

    async def _query(self, what: str, fields: Any, qfilter: Any = None) -> Any:
        return await query(what, fields, qfilter, self._source())

    async def _query_fields(self, what: str, fields: Any = None) -> Any:
        return query_fields(what, fields)

    def _classic(self, what: str) -> Method:
        async def ask(names: Any, fields: Any, lock: bool = False) -> Any:
            return await query_objects(what, names or (), fields, self._source(), lock=lock)

        return ask

    async def _query_jobs(self, ids: Any, fields: Any) -> Any:
        return await query_jobs(ids, fields, self._source())

    async def _query_exports(self, nodes: Any, lock: bool = False) -> Any:  # noqa: ARG002
        return await query_exports(nodes or (), self._source())

    async def _query_config_values(self, fields: Any) -> Any:
        return config_values(fields, self._store.state.config)

    async def _query_cluster_info(self) -> Any:
        return cluster_info(self._store.state.config)

    async def _query_tags(self, kind: str, name: str = "") -> Any:
        return query_tags(kind, name, self._store.state.config)

    async def _submit_job(self, ops: Any) -> JobId:
        return _number((await self._queue.submit([_checked(ops)]))[0])

    async def _submit_job_to_drained_queue(self, ops: Any) -> JobId:
        return _number((await self._queue.submit([_checked(ops)], to_drained=True))[0])

    async def _submit_many_jobs(self, jobs: Any) -> list[list[Any]]:
        if not isinstance(jobs, list):
            raise InvalidRequest("SubmitManyJobs takes a list of jobs.")
        answers = await self._queue.submit([_checked(ops) for ops in jobs])
        return [
            [False, answer.message] if isinstance(answer, GntError) else [True, answer]
            for answer in answers
        ]

    async def _wait_for_job_change(
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

    async def _cancel_job(self, number: Any, kill: bool = False) -> Any:
        if kill:
            raise InvalidRequest(
                "A job is no process that can be killed: cancel it, and it is undone."
            )
        return await self._queue.cancel(_job_id(number))

    async def _archive_job(self, number: Any) -> bool:
        return await self._queue.archive(_job_id(number))

    async def _auto_archive_jobs(self, age_s: Any, timeout_s: Any = ARCHIVE_PATIENCE_S) -> Any:
        patience_s = max(0.0, min(float(timeout_s), ARCHIVE_PATIENCE_S))
        return await self._queue.auto_archive(None if age_s is None else float(age_s), patience_s)

    async def _pick_up_job(self, number: Any) -> None:
        """Be told of a job in files of the queue: every job is known here once it is stored."""
        await self._queue.explain(_job_id(number))

    async def _change_job_priority(self, number: Any, priority: Any) -> Any:
        return await self._queue.change_priority(_job_id(number), int(priority))

    async def _why_job(self, number: Any) -> Any:
        """Ours: a job's status, and for each thing that it waits for what, and for how long."""
        job, reasons = await self._queue.explain(_job_id(number))
        now = self._now()
        return [
            job.status,
            [[each.what, None if each.since is None else now - each.since] for each in reasons],
        ]

    async def _replace_filter(
        self, uuid: Any, priority: Any, predicates: Any, action: Any, reason: Any
    ) -> str:
        wish = {
            "priority": priority,
            "predicates": predicates,
            "action": action,
            "reason": reason,
        }
        return await self._queue.rules.replace(uuid or self._new_uuid(), wish)

    async def _set_drain_flag(self, drained: Any) -> bool:
        await self._store.commit(
            lambda state: [Put(replace(state.config.cluster, queue_drained=bool(drained)))]
        )
        return True

    async def _ask_allocator(self, question: Any) -> Any:
        """Ours, not Ganeti's: it has no questions to the allocator that are no jobs."""
        asked = read_question(question)
        # It may take a second, in which the loop has other things to do; one at a time is enough.
        async with self._asking:
            return await asyncio.to_thread(answer, await self._look(), asked)

    async def _subscribe(self, fields: Any) -> int:
        """Ours: begin to be told what changes; the fields wanted of each kind of object."""
        return self._feed.subscribe(fields)

    async def _next_changes(self, number: Any, timeout_s: Any = 60.0) -> dict[str, Any]:
        """Ours: see ``Feed.next``."""
        return await self._feed.next(int(number), max(0.0, float(timeout_s)))

    async def _set_watcher_pause(self, until: Any) -> Any:
        pause = None if until is None else _moment(until)
        await self._store.commit(
            lambda state: [Put(replace(state.config.cluster, watcher_pause=pause))]
        )
        return pause


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


def _moment(told: Any) -> float:
    """Read a time in seconds since 1970; one that is not of this world would spoil the state."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told < END_OF_TIME:
        raise InvalidRequest(f"“{told}” is no time in seconds since 1970.")
    return float(told)


def _news(job: Job, seen: int) -> list[Any]:
    """Return log entries after ``seen`` in Ganeti's form."""
    return [wire_log(entry) for op in job.ops for entry in op.log if entry.serial > seen]
