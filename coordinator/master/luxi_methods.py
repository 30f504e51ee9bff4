"""What each LUXI method does: Ganeti's names and positional arguments.

Source: luxi.py of Ganeti 3.0.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.luxi.answers import Request
from coordinator.jobs.queue import JobQueue
from coordinator.master.figures import FigureTeller
from coordinator.master.job_methods import JobMethods
from coordinator.master.rest_users import RestUserBook
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.questions import Question, answer, read_question
from coordinator.queries.classic import (
    config_values,
    query_exports,
    query_jobs,
    query_objects,
    query_tags,
)
from coordinator.queries.cluster_info import cluster_info
from coordinator.queries.config_data import config_data
from coordinator.queries.feed import Feed
from coordinator.queries.query import query, query_fields
from coordinator.queries.source import Source
from coordinator.state.rows import Put
from coordinator.state.store import Store

END_OF_TIME = 2.0**35  # year 3058

Method = Callable[..., Awaitable[Any]]


class LuxiMethods:
    """Everything a client may ask for. ``__call__`` is the server's handler."""

    def __init__(
        self,
        store: Store,
        queue: JobQueue,
        source: Callable[[], Source],
        look: Callable[[Question], Awaitable[Look]],
        feed: Feed,
        figures: FigureTeller,
        watcher_hooks: Callable[[], Awaitable[list[str]]],
        now: Callable[[], float],
        new_uuid: Callable[[], str],
        check_master: Callable[[], Awaitable[None]],
    ) -> None:
        self._new_uuid = new_uuid
        self._store, self._queue, self._source, self._look = store, queue, source, look
        self._check_master, self._feed = check_master, feed
        self._asking = asyncio.Lock()
        jobs, rest_users = JobMethods(queue, now), RestUserBook(store)
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
            "ExportConfiguration": self._export_configuration,
            "SubmitJob": jobs.submit,
            "SubmitJobToDrainedQueue": jobs.submit_to_drained_queue,
            "SubmitManyJobs": jobs.submit_many,
            "WaitForJobChange": jobs.wait_for_change,
            "CancelJob": jobs.cancel,
            "ArchiveJob": jobs.archive,
            "AutoArchiveJobs": jobs.auto_archive,
            "PickupJob": jobs.pick_up,
            "ChangeJobPriority": jobs.change_priority,
            "WhyJob": jobs.why,
            "ReplaceFilter": self._replace_filter,
            "DeleteFilter": self._queue.rules.delete,
            "SetDrainFlag": self._set_drain_flag,
            "SetWatcherPause": self._set_watcher_pause,
            "RunWatcherHooks": watcher_hooks,
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

    async def _export_configuration(self) -> Any:
        # All of it takes a second where instances are thousands.
        return await asyncio.to_thread(config_data, self._store.state)

    async def _query_tags(self, kind: str, name: str = "") -> Any:
        return query_tags(kind, name, self._store.state.config)

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
            return await asyncio.to_thread(answer, await self._look(asked), asked)

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


def _moment(told: Any) -> float:
    """Read a time in seconds since 1970; one that is not of this world would spoil the state."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told < END_OF_TIME:
        raise InvalidRequest(f"“{told}” is no time in seconds since 1970.")
    return float(told)
