"""The long work of this node: begun once for each id, watched and cancelled by it."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from common.errors import Bug, GntError, NotFound
from common.names import TaskId
from common.noderpc.tasks import TaskState, TaskStatus
from common.tasks import Background
from noded.system.patience import without_bounds

MOST_KEPT = 1000  # tasks that have ended; the oldest are forgotten first
LONGEST_WATCH_S = 30.0

log = logging.getLogger(__name__)


class Progress:
    """What the work of a task tells those who watch it."""

    def __init__(self, told: Callable[[str, float | None], None]) -> None:
        self._told = told

    def tell(self, message: str, share: float | None = None) -> None:
        """Say how far the work is, as a sentence and as a share from 0 to 1."""
        self._told(message, share)


Work = Callable[[Progress], Awaitable[None]]


class TaskRegistry:
    """Runs long work in the background; it outlives the call and the coordinator it is for."""

    def __init__(self) -> None:
        self._background = Background()
        self._entries: dict[TaskId, _Entry] = {}
        self._over: deque[TaskId] = deque()  # in the order they ended

    def begin(self, task: TaskId, work: Work) -> None:
        """Begin ``work`` unless a task of that id was begun or cancelled before.

        An expected error (``GntError``) that leaves ``work`` becomes the status FAILED with
        its code and detail.
        """
        if task in self._entries:
            return
        entry = self._entries[task] = _Entry(TaskStatus(id=task, state=TaskState.RUNNING))
        entry.runner = self._background.start(self._run(entry, work), name=f"task {task}")
        entry.runner.add_done_callback(lambda _: self._ended(entry))

    async def watch(self, task: TaskId, *, seen: str, wait_s: float) -> TaskStatus:
        """Return the status once its message differs from ``seen``, it ended, or time is up.

        Raises:
            NotFound: no such task; noded was restarted, or it was forgotten.
        """
        entry = self._entries.get(task)
        if entry is None:
            raise NotFound(
                f"This node knows no task {task}; noded was restarted or has forgotten it.",
                task=task,
            )
        try:
            async with asyncio.timeout(min(max(wait_s, 0.0), LONGEST_WATCH_S)):
                while entry.is_running and entry.status.message == seen:
                    await entry.news()
        except TimeoutError:
            pass
        return entry.status

    async def cancel(self, task: TaskId) -> None:
        """Cancel a task and return when it has ended; one that is over stays as it is.

        An unknown id is remembered as cancelled: a ``begin`` that was overtaken on its way
        must not start what its caller has given up.
        """
        entry = self._entries.get(task)
        if entry is None:
            self._entries[task] = _Entry(_cancelled(task))
            self._remember_end(task)
        elif entry.runner and entry.is_running:
            entry.runner.cancel()
            await asyncio.wait([entry.runner])

    @property
    def running(self) -> tuple[TaskId, ...]:
        """Return the ids of the tasks that go on, oldest first."""
        return tuple(task for task, entry in self._entries.items() if entry.is_running)

    async def close(self) -> None:
        """Cancel all tasks, for noded's end."""
        await self._background.close()

    async def _run(self, entry: "_Entry", work: Work) -> None:
        task = entry.status.id

        def told(message: str, share: float | None) -> None:
            entry.become(TaskState.RUNNING, message=message, share=share)

        try:
            with without_bounds():
                await work(Progress(told))
        except asyncio.CancelledError:
            entry.become(TaskState.CANCELLED, message="It was cancelled.")
            raise
        except GntError as error:
            entry.fail(error)
        except Exception as error:
            log.exception("Task %s failed unexpectedly.", task)
            entry.fail(Bug(f"An internal error: {type(error).__name__}: {error}."))
        else:
            entry.become(TaskState.DONE, message=entry.status.message, share=1.0)

    def _ended(self, entry: "_Entry") -> None:
        if entry.is_running:  # cancelled before its first step, it ran no code of its own
            entry.become(TaskState.CANCELLED, message="It was cancelled.")
        self._remember_end(entry.status.id)

    def _remember_end(self, task: TaskId) -> None:
        self._over.append(task)
        if len(self._over) > MOST_KEPT:
            del self._entries[self._over.popleft()]


class _Entry:
    """A task's status and those who wait for news of it."""

    def __init__(self, status: TaskStatus) -> None:
        self.status = status
        self.runner: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    @property
    def is_running(self) -> bool:
        return self.status.state is TaskState.RUNNING

    async def news(self) -> None:
        await self._news.wait()

    def become(self, state: TaskState, **fields: Any) -> None:
        self.status = TaskStatus(id=self.status.id, state=state, **fields)
        self._news.set()
        self._news = asyncio.Event()  # those who waited look at the status; the next wait anew

    def fail(self, error: GntError) -> None:
        self.become(
            TaskState.FAILED,
            message=error.message,
            error_code=error.code,
            error_detail=error.detail,
        )


def _cancelled(task: TaskId) -> TaskStatus:
    return TaskStatus(
        id=task, state=TaskState.CANCELLED, message="It was cancelled before it began."
    )
